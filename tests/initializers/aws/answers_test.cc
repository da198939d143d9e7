// SPDX-License-Identifier: Apache-2.0
#include "initializers/aws/answers.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster::initializers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Shown(const StatusOr<TemporaryKeys>& found) {
  if (!found.ok()) return fmt::format("{}", Message(found.status()));
  return fmt::format("{} {} {} {}", found->keys.access_key, found->keys.secret_key, found->keys.session_token,
                     found->expires_unix);
}

TEST(AwsAnswers, KeysOfAMachine) {
  const struct {
    std::string_view json, expected;
  } rows[] = {
      {R"({"Code":"Success","AccessKeyId":"A","SecretAccessKey":"s/+","Token":"t==","Expiration":"2026-11-23T18:00:00Z"})",
       "A s/+ t== 1795456800"},
      {R"({"AccessKeyId":"A","SecretAccessKey":"s"})", "A s  0"},
      {R"({"AccessKeyId":"A","SecretAccessKey":"s","Token":null,"Expiration":null,"More":[1]})", "A s  0"},
      {R"({"SecretAccessKey":"s"})", "the answer has no AccessKeyId"},
      {R"({"AccessKeyId":"A"})", "the answer has no SecretAccessKey"},
      {R"({"AccessKeyId":7,"SecretAccessKey":"s"})", "the answer has no AccessKeyId"},
      {R"([])", "the answer has no AccessKeyId"},
      {"<html>", "the answer is not JSON"},
      {R"({"AccessKeyId":"A")", "the answer is not JSON"},
      {"", "the answer is not JSON"},
      {R"({"Code":"AssumeRoleUnauthorizedAccess","Message":"EC2 cannot\nassume it"})",
       "AssumeRoleUnauthorizedAccess: EC2 cannot assume it"},
      {R"({"Code":"Failed"})", "Failed: "},
  };
  for (const auto& row : rows) EXPECT_EQ(Shown(ParseMachineKeys(row.json)), row.expected) << row.json;
  EXPECT_TRUE(absl::IsPermissionDenied(ParseMachineKeys(R"({"Code":"Failed"})").status()));
  EXPECT_FALSE(ParseMachineKeys(R"({"AccessKeyId":"A","SecretAccessKey":"s","Expiration":"tomorrow"})").ok());
}

TEST(AwsAnswers, KeysOfAProcess) {
  const struct {
    std::string_view json, expected;
  } rows[] = {
      {R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"s/+","SessionToken":"t==","Expiration":"2026-11-23T18:00:00Z"})",
       "A s/+ t== 1795456800"},
      {R"( {"Version":1,"AccessKeyId":"A","SecretAccessKey":"s","Expiration":"2026-11-23T19:00:00.5+01:00"} )",
       "A s  1795456800"},
      {R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"s","AccountId":"1"})", "A s  0"},
      {R"({"Version":1.0,"AccessKeyId":"A","SecretAccessKey":"s","SessionToken":null,"Expiration":null})", "A s  0"},
      {R"({"AccessKeyId":"A","SecretAccessKey":"s"})", "the answer has no Version"},
      {R"({"Version":2,"AccessKeyId":"A","SecretAccessKey":"s"})",
       "the Version of the answer is '2', and only 1 is known"},
      {R"({"Version":"1","AccessKeyId":"A","SecretAccessKey":"s"})",
       "the Version of the answer is '\"1\"', and only 1 is known"},
      {R"({"Version":1,"SecretAccessKey":"s"})", "the answer has no AccessKeyId"},
      {R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":""})", "the answer has no SecretAccessKey"},
      {R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"s","Token":"t"})", "A s  0"},
      {R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"s","Expiration":1795456800})",
       "'1795456800' is not a time; write it as 2026-11-22T01:02:03Z"},
      {R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"s","Expiration":""})",
       "'' is not a time; write it as 2026-11-22T01:02:03Z"},
      {R"([1])", "the answer has no Version"},
      {"AKID secret", "the answer is not JSON"},
      {"", "the answer is not JSON"},
  };
  for (const auto& row : rows) EXPECT_EQ(Shown(ParseProcessKeys(row.json)), row.expected) << row.json;
}

TEST(AwsAnswers, KeysOfSingleSignOn) {
  const struct {
    std::string_view json, expected;
  } rows[] = {
      {R"({"roleCredentials":{"accessKeyId":"A","secretAccessKey":"s","sessionToken":"t","expiration":1795456800999}})",
       "A s t 1795456800"},
      {R"({"accessKeyId":"A","secretAccessKey":"s"})", "A s  0"},
      {R"({"roleCredentials":{"accessKeyId":"A"}})", "the answer has no secretAccessKey"},
      {R"({"roleCredentials":null})", "the answer has no accessKeyId"},
      {"<html>", "the answer is not JSON"},
  };
  for (const auto& row : rows) EXPECT_EQ(Shown(ParseSsoKeys(row.json)), row.expected) << row.json;
}

// A line break would begin a new header.
TEST(AwsAnswers, WhatNoHeaderCanHave) {
  for (const char* bad : {"a\\r\\nX-Other: 1", "a b", "a\\u0000", "\\u00e4", "a\\u007f"}) {
    for (const char* name : {"AccessKeyId", "SecretAccessKey", "Token"}) {
      std::string json = R"({"AccessKeyId":"good","SecretAccessKey":"good","Token":"good"})";
      const size_t at = json.find("good", json.find(fmt::format("\"{}\"", name)));
      json.replace(at, 4, bad);
      const std::string said = Shown(ParseMachineKeys(json));
      EXPECT_THAT(said, HasSubstr(fmt::format("the {} of the answer has a blank or a character", name))) << json;
      EXPECT_THAT(said, Not(HasSubstr("Other"))) << "it may be a secret";
      json.replace(json.find("\"Token\""), 7, R"("Version":1,"SessionToken")");
      EXPECT_THAT(Shown(ParseProcessKeys(json)), HasSubstr("of the answer has a blank or a character")) << json;
    }
  }
}

TEST(AwsAnswers, AWordIsTheFirstLineOfAnAnswer) {
  const struct {
    std::string_view text, expected;
  } rows[] = {{"training-node", "training-node"},
              {" node \r\nother\n", "node"},
              {"AQAE==\n", "AQAE=="},
              {"", "none"},
              {"\nnode", "none"},
              {"<html>", "none"},
              {"please log in", "none"},
              {"n\xc3\xa4", "none"}};
  for (const auto& row : rows) EXPECT_EQ(ParseWord(row.text).value_or("none"), row.expected) << row.text;
}

}  // namespace
}  // namespace muster::initializers
