// SPDX-License-Identifier: Apache-2.0
// What the head of an HTTP answer, of any store, says about the bytes that follow it. Pure; untrusted input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/client.h"
#include "http/refusal.h"
#include "initializers/facts/provider.h"

namespace muster::initializers {

// The size of the whole file, from the answer to a request for its first byte; nullopt: it is not such an answer.
std::optional<uint64_t> SizeOfPart(const http::ResponseHead& head);

// True if the answer is a web page and the extension of the last element of `path` names another kind of file. With
// `unnamed` also if that element has no extension.
bool IsPageInstead(const http::ResponseHead& head, std::string_view path, bool unnamed);

// What is wrong with the head of the answer to a request for bytes of an entry; nullopt if the bytes follow. A whole
// entry may come as 200. A part may only come as 206 with exactly the requested range.
std::optional<std::string> RangeProblem(const http::ResponseHead& head, ByteRange range, uint64_t size);

// The refusal of a successful answer (`status`) that is not the requested range: transient.
http::Refusal WrongRange(std::string_view where, int status);

// True if `header` (ETag, Last-Modified) shows that the answer is of another version: some servers and caches ignore
// conditions. ETags are compared weakly, because compression on the way makes a strong ETag weak.
bool IsOtherVersion(const http::ResponseHead& head, std::string_view header, std::string_view version);

}  // namespace muster::initializers
