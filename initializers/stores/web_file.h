// SPDX-License-Identifier: Apache-2.0
// One file of a web server: https://HOST/PATH. A strong ETag, else Last-Modified, fixes its version; Repr-Digest, or
// Content-Digest of the whole file (RFC 9530), verifies it if it is sent.
// Redirects, never from https to http, are resolved before anything is moved, and again when a signature expires.
// If a server refuses HEAD (a URL signed for GET), the first byte is requested instead. A web page is refused, as a
// login or an error, if the path names another kind of file or has no extension, unless `allow_html`.
//
// A file without a version comes in one piece, over one connection: parts of it might be of two versions.
#pragma once

#include <memory>

#include "http/conversation.h"
#include "initializers/facts/provider.h"
#include "initializers/facts/source.h"

namespace muster::initializers {

std::unique_ptr<Provider> MakeWebFile(boost::asio::io_context& loop, http::Persistence persistence,
                                      const Source& source, bool allow_html);

// The strongest known hash in a header like `sha-256=:base64:, ...`; nullopt: no known hash.
std::optional<Expectation> ParseDigestHeader(std::string_view value);

// The hash of the file as it is stored. Content-Digest is the hash of the answer's bytes; `whole` says that these are
// the whole file (RFC 9530). In the answer to a range, Repr-Digest is the hash of the whole file.
std::optional<Expectation> DigestOf(const http::ResponseHead& head, bool whole);

}  // namespace muster::initializers
