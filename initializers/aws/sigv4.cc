// SPDX-License-Identifier: Apache-2.0
#include "initializers/aws/sigv4.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "base/text.h"
#include "http/percent.h"
#include "initializers/facts/digest.h"

namespace muster::initializers {
namespace {

std::string Sha256Hex(std::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return ToHex({reinterpret_cast<const char*>(digest), sizeof(digest)});
}

std::string HmacSha256(std::string_view key, std::string_view text) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  return digest;
}

// The form "20130524T000000Z".
std::string Timestamp(int64_t unix_seconds) {
  using namespace std::chrono;
  const auto time = sys_days{} + seconds{unix_seconds};
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{time - day};
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

// Removes white space at both ends, and makes any between one blank.
std::string Trimmed(std::string_view value) {
  std::string trimmed;
  bool pending = false;
  for (char c : value) {
    if (c == ' ' || (c >= '\t' && c <= '\r')) {
      pending = !trimmed.empty();
      continue;
    }
    if (pending) trimmed += ' ';
    pending = false;
    trimmed += c;
  }
  return trimmed;
}

}  // namespace

HeaderList Sign(const SigningRequest& request, const SigningScope& scope, const AwsKeys& keys, int64_t unix_seconds) {
  const bool s3 = scope.service == "s3";
  const std::string timestamp = Timestamp(unix_seconds);
  const std::string payload_hash = Sha256Hex(request.body);

  HeaderList added = {{"x-amz-date", timestamp}};
  if (s3) added.emplace_back("x-amz-content-sha256", payload_hash);
  if (!keys.session_token.empty()) added.emplace_back("x-amz-security-token", keys.session_token);

  std::map<std::string, std::string> signed_headers;
  auto take = [&signed_headers](std::string_view name, std::string_view value) {
    auto [found, fresh] = signed_headers.try_emplace(Lower(name), Trimmed(value));
    if (!fresh) found->second += "," + Trimmed(value);
  };
  take("host", request.host);
  for (const auto& [name, value] : request.headers) take(name, value);
  for (const auto& [name, value] : added) take(name, value);

  std::string canonical = request.method + '\n' + (s3 ? request.path : http::PercentEncode(request.path, "/")) + '\n' +
                          http::CanonicalQuery(request.query) + '\n';
  std::string names;
  for (const auto& [name, value] : signed_headers) {
    canonical += fmt::format("{}:{}\n", name, value);
    if (!names.empty()) names += ';';
    names += name;
  }
  canonical += '\n' + names + '\n' + payload_hash;

  const std::string date = timestamp.substr(0, 8);
  const std::string credential_scope = date + '/' + scope.region + '/' + scope.service + "/aws4_request";
  const std::string to_sign = "AWS4-HMAC-SHA256\n" + timestamp + '\n' + credential_scope + '\n' + Sha256Hex(canonical);
  std::string key = "AWS4" + keys.secret_key;
  for (std::string_view step : {std::string_view(date), std::string_view(scope.region), std::string_view(scope.service),
                                std::string_view("aws4_request")}) {
    key = HmacSha256(key, step);
  }
  added.emplace_back("Authorization",
                     fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}", keys.access_key,
                                 credential_scope, names, ToHex(HmacSha256(key, to_sign))));
  return added;
}

}  // namespace muster::initializers
