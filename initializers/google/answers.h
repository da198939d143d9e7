// SPDX-License-Identifier: Apache-2.0
// Parses the answers of what gives out Google's bearer tokens: OAuth and STS endpoints, metadata server, IAM
// credentials API; and the subject tokens that are exchanged. Pure; untrusted input. No message shows a token.
//
// Sources: RFC 6749 section 5 (answers), RFC 8693 section 2.2.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::initializers {

inline constexpr int64_t kUsualTokenLife = 3600;           // seconds; if the answer names none
inline constexpr int64_t kLongestTokenLife = 86'400;       // seconds
inline constexpr size_t kLongestToken = size_t{16} << 10;  // bytes

struct BearerToken {
  std::string text;                // fit for a header, at most kLongestToken bytes
  int64_t life = kUsualTokenLife;  // seconds from the request; from 0 to kLongestTokenLife
};

// {access_token, expires_in}: from OAuth, STS and the metadata server. InvalidArgument: there is no token.
StatusOr<BearerToken> ParseOauthToken(std::string_view json);

// {accessToken, expireTime}: from generateAccessToken; `unix_now` by the server's clock.
StatusOr<BearerToken> ParseIamToken(std::string_view json, int64_t unix_now);

// The subject token of a file or a URL: the text itself, or that field of a JSON object; empty: there is none.
std::string SubjectTokenIn(std::string_view text, const std::string& field);

// The reason for a refusal with that status, in one line, from {"error": "invalid_grant", "error_description": ...},
// from {"error": {"status": ..., "message": ...}}, or from plain text.
std::string ToldByGoogle(int status, std::string_view body);

}  // namespace muster::initializers
