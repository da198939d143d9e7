// One file of a web server: https://HOST/PATH. Pinned by a strong ETag, else by Last-Modified; verified by Repr-Digest
// or Content-Digest (RFC 9530) where they are sent. Redirects are followed once, before anything is moved.
#pragma once

#include <memory>

#include "initializers/conversation.h"
#include "initializers/provider.h"
#include "initializers/source.h"

namespace muster::initializers {

std::unique_ptr<Provider> MakeWebFile(boost::asio::io_context& loop, Persistence persistence, const Source& source);

// `sha-256=:base64:` among others -> the best of what is known; nothing: none is.
std::optional<Expectation> ParseDigestHeader(std::string_view value);

// What is wrong with the head of an answer to a request for bytes of an entry; nothing: the bytes follow. A whole entry
// may come as 200; a part only as 206 with exactly the range that was asked for.
std::optional<std::string> RangeProblem(const HttpHead& head, ByteRange range, uint64_t size);

}  // namespace muster::initializers
