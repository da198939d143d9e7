// What the servers that hand out Google's bearer tokens answer: OAuth's and STS's endpoints, the metadata server, the
// IAM credentials API; and the subject tokens that are exchanged. Pure; outside bytes. No message shows a token.
//
// Reference: RFC 6749 5 (answers), RFC 8693 2.2.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::initializers {

inline constexpr int64_t kUsualTokenLife = 3600;           // seconds; where nothing else is said
inline constexpr int64_t kLongestTokenLife = 86'400;       // seconds
inline constexpr size_t kLongestToken = size_t{16} << 10;  // bytes

struct BearerToken {
  std::string text;                // fit for a header, kLongestToken at most
  int64_t life = kUsualTokenLife;  // seconds from when it was asked for; from 0 to kLongestTokenLife
};

// {access_token, expires_in}: of the OAuth and STS endpoints, and the metadata server. InvalidArgument: it has none.
StatusOr<BearerToken> ParseOauthToken(std::string_view json);

// {accessToken, expireTime}: of generateAccessToken; `unix_now` by the server's clock.
StatusOr<BearerToken> ParseIamToken(std::string_view json, int64_t unix_now);

// A subject token as a file or a URL has it: the text itself, or that field of a JSON object. Empty: there is none.
std::string SubjectTokenIn(std::string_view text, const std::string& field);

// Why an answer of that status is a refusal, in one line: {"error": "invalid_grant", "error_description": ...},
// {"error": {"status": ..., "message": ...}}, or text.
std::string ToldByGoogle(int status, std::string_view body);

}  // namespace muster::initializers
