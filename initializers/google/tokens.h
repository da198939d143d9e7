// Bearer tokens for GCS from the identity that was found (google/identity.h): kept, and renewed before they expire.
//
// Scope kReadScope; of an account that impersonates another, which then has that scope, auth/iam. A service account's
// assertion is RS256 by OpenSSL. An identity that fails is an error that names it and the remedy: never a fall-through
// to another, never anonymous. Reference: RFC 7523 (jwt-bearer), RFC 8693 (token exchange), RFC 6749 6 (refresh).
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

// The assertion: header {"alg":"RS256","typ":"JWT","kid":...}, claims iss, scope, aud, iat, exp (an hour). Pure but for
// OpenSSL. InvalidArgument: the private key is none; says where it is from. `scope`: another one for whoever only
// impersonates.
StatusOr<std::string> SignAssertion(const ServiceAccount& account, int64_t unix_now,
                                    std::string_view scope = kReadScope);

// Asked for each request. Loop thread only.
class BearerSource {
 public:
  virtual ~BearerSource() = default;
  // None: anonymous.
  virtual boost::asio::awaitable<StatusOr<std::optional<std::string>>> Get() = 0;
  // The server refused the last token (401): the next Get() asks for another.
  virtual void Expired() = 0;
  // Get() would answer at once with this.
  virtual std::optional<std::optional<std::string>> AtHand() = 0;
};

std::unique_ptr<BearerSource> MakeBearerSource(const http::Persistence& persistence, const GoogleIdentity& identity);

}  // namespace muster::initializers
