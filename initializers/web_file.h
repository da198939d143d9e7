// One file of a web server: https://HOST/PATH. Pinned by a strong ETag, else by Last-Modified; verified by Repr-Digest,
// or Content-Digest of all of it (RFC 9530), where they are sent. Redirects are followed once, before anything is
// moved, and again where the place they led to holds no longer: a signature expires. From https to http none is.
// A server that refuses HEAD, as one does whose URL is signed for GET, is asked for the first byte. A web page where
// the path names another kind of file, or none, is a login or an error, and refused unless pages are wanted.
//
// What nothing pins comes in one piece, over one connection: parts of it might be of two versions.
#pragma once

#include <memory>

#include "http/conversation.h"
#include "initializers/provider.h"
#include "initializers/source.h"

namespace muster::initializers {

std::unique_ptr<Provider> MakeWebFile(boost::asio::io_context& loop, http::Persistence persistence,
                                      const Source& source, bool allow_html);

// `sha-256=:base64:` among others -> the best of what is known; nothing: none is.
std::optional<Expectation> ParseDigestHeader(std::string_view value);

// Of the file as it is stored. Content-Digest is of what the answer has: `whole` says that this is all of it (RFC
// 9530). A part says the whole's by Repr-Digest.
std::optional<Expectation> DigestOf(const http::ResponseHead& head, bool whole);

}  // namespace muster::initializers
