// SPDX-License-Identifier: Apache-2.0
// Bearer tokens for GCS, from the identity of google/identity.h. They are cached, and renewed before they expire.
//
// The scope is kReadScope; auth/iam for an account that only impersonates another, which then has kReadScope. A service
// account's assertion is signed with RS256 by OpenSSL. If the identity fails, the error names it and the remedy; no
// other identity, nor anonymous access, is tried.
// Sources: RFC 7523 (jwt-bearer), RFC 8693 (token exchange), RFC 6749 section 6 (refresh).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "http/conversation.h"
#include "initializers/google/identity.h"

namespace muster::initializers {

inline constexpr std::string_view kReadScope = "https://www.googleapis.com/auth/devstorage.read_only";

// The assertion: header {"alg":"RS256","typ":"JWT","kid":...}, claims iss, scope, aud, iat, exp (an hour). Pure except
// for OpenSSL. InvalidArgument: the private key is invalid; the message says where it comes from. `scope`: another
// scope for an account that only impersonates.
StatusOr<std::string> SignAssertion(const ServiceAccount& account, int64_t unix_now,
                                    std::string_view scope = kReadScope);

// Call Get() for each request. Loop thread only.
class BearerSource {
 public:
  virtual ~BearerSource() = default;
  // Nullopt: anonymous.
  virtual boost::asio::awaitable<StatusOr<std::optional<std::string>>> Get() = 0;
  // Reports that the server refused the last token (401): the next Get() requests a new one.
  virtual void Expired() = 0;
  // The token that Get() would return at once; nullopt: Get() would have to wait.
  virtual std::optional<std::optional<std::string>> AtHand() = 0;
};

std::unique_ptr<BearerSource> MakeBearerSource(const http::Persistence& persistence, const GoogleIdentity& identity);

}  // namespace muster::initializers
