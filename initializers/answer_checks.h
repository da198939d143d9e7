// What the head of an answer says of the bytes that follow it, whichever store it is of. Pure; outside bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/client.h"
#include "initializers/provider.h"

namespace muster::initializers {

// Of the whole, as the answer to a request for its first byte tells it; nothing: it is no such answer.
std::optional<uint64_t> SizeOfPart(const http::ResponseHead& head);

// The answer is a web page, and the last element of `path` names another kind of file by its extension; `unnamed`: also
// where it has none.
bool IsPageInstead(const http::ResponseHead& head, std::string_view path, bool unnamed);

// What is wrong with the head of an answer to a request for bytes of an entry; nothing: the bytes follow. A whole entry
// may come as 200; a part only as 206 with exactly the range that was asked for.
std::optional<std::string> RangeProblem(const http::ResponseHead& head, ByteRange range, uint64_t size);

// The answer says by `header` (ETag, Last-Modified) that it is of another version, as one does whose server or cache
// heeds no condition. Weakly compared: what compresses on the way weakens an ETag.
bool IsOtherVersion(const http::ResponseHead& head, std::string_view header, std::string_view version);

}  // namespace muster::initializers
