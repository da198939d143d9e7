// SPDX-License-Identifier: Apache-2.0
#include "initializers/google/answers.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster::initializers {
namespace {

std::string Shown(const StatusOr<BearerToken>& token) {
  return token.ok() ? fmt::format("{} {}", token->text, token->life) : std::string(Message(token.status()));
}

TEST(GoogleAnswers, TokensOfOauth) {
  const struct {
    std::string_view json, expected;
  } rows[] = {
      {R"({"access_token":"ya29.a","expires_in":3599,"token_type":"Bearer"})", "ya29.a 3599"},
      {R"({"access_token":"t","expires_in":"120"})", "t 120"},
      {R"({"access_token":"t"})", "t 3600"},
      {R"({"access_token":"t","expires_in":null})", "t 3600"},
      {R"({"access_token":"t","expires_in":"soon"})", "t 3600"},
      {R"({"access_token":"t","expires_in":1.5})", "t 3600"},
      {R"({"access_token":"t","expires_in":-1})", "t 0"},
      {R"({"access_token":"t","expires_in":99999999})", "t 86400"},
      {R"({"access_token":""})", "the answer has no access_token"},
      {R"({"access_token":7})", "the answer has no access_token"},
      {R"({"access_token":"a\r\nX: 1"})",
       "the access_token of the answer has a blank or a character that is not printable ASCII"},
      {R"({"access_token":"a b"})",
       "the access_token of the answer has a blank or a character that is not printable ASCII"},
      {"<html>", "the answer has no access_token"},
      {"", "the answer has no access_token"},
  };
  for (const auto& row : rows) EXPECT_EQ(Shown(ParseOauthToken(row.json)), row.expected) << row.json;
  const std::string longest = fmt::format(R"({{"access_token":"{}"}})", std::string(kLongestToken + 1, 'a'));
  EXPECT_FALSE(ParseOauthToken(longest).ok());
}

TEST(GoogleAnswers, TokensOfIam) {
  constexpr int64_t kNow = 1'795'456'800;  // 2026-11-23T18:00:00Z
  const struct {
    std::string_view json, expected;
  } rows[] = {
      {R"({"accessToken":"ya29.c","expireTime":"2026-11-23T19:00:00Z"})", "ya29.c 3600"},
      {R"({"accessToken":"t","expireTime":"2026-11-23T17:00:00Z"})", "t 0"},
      {R"({"accessToken":"t","expireTime":"2036-11-23T17:00:00Z"})", "t 86400"},
      {R"({"expireTime":"2026-11-23T19:00:00Z"})", "the answer has no accessToken"},
  };
  for (const auto& row : rows) EXPECT_EQ(Shown(ParseIamToken(row.json, kNow)), row.expected) << row.json;
  EXPECT_FALSE(ParseIamToken(R"({"accessToken":"t"})", kNow).ok());
}

TEST(GoogleAnswers, SubjectTokens) {
  EXPECT_EQ(SubjectTokenIn(" eyJh.b.c\n", ""), "eyJh.b.c");
  EXPECT_EQ(SubjectTokenIn(R"({"access_token":"t"})", "access_token"), "t");
  EXPECT_EQ(SubjectTokenIn(R"({"access_token":1})", "access_token"), "");
  EXPECT_EQ(SubjectTokenIn("<html>", "access_token"), "");
  EXPECT_EQ(SubjectTokenIn("\n", ""), "");
}

TEST(GoogleAnswers, ARefusalShowsReasonAndMessage) {
  const struct {
    std::string_view body, expected;
  } rows[] = {
      {R"({"error":"invalid_grant","error_description":"Bad Request"})", "400 'invalid_grant': 'Bad Request'"},
      {R"({"error":{"code":403,"status":"PERMISSION_DENIED","message":"denied"}})",
       "400 'PERMISSION_DENIED': 'denied'"},
      {R"({"error":"invalid_grant"})", "400 'invalid_grant'"},
      {"not found\n", "400: 'not found'"},
      {"{}", "400"},
      {"", "400"},
  };
  for (const auto& row : rows) EXPECT_EQ(ToldByGoogle(400, row.body), row.expected) << row.body;
}

}  // namespace
}  // namespace muster::initializers
