// SPDX-License-Identifier: Apache-2.0
#include "initializers/stores/storage_config.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "initializers/aws/identity.h"
#include "initializers/aws/settings.h"
#include "tests/initializers/aws_case.h"

namespace muster::initializers {
namespace {

using ::testing::StartsWith;

constexpr char kUri[] = "s3://bucket/key";

// "NAME=value ..." of the variables that the configuration may set, after it was merged with other variables.
std::string Read(const std::string& config, const std::string& over = "") {
  const AwsCase given = {.variables = {{"STORAGE_CONFIG", config},
                                       {"STORAGE_OVERRIDE_CONFIG", over},
                                       {"AWS_REGION", "pods"},
                                       {"AWS_SESSION_TOKEN", "pods"}}};
  const auto variables = WithStorageConfig(given.Variables(), kUri);
  if (!variables.ok()) return "error: " + std::string(variables.status().message());
  std::vector<std::string> parts;
  for (std::string_view name : {"AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION",
                                "AWS_CA_BUNDLE", "S3_VERIFY_SSL", "awsAnonymousCredential", "AWS_SESSION_TOKEN"}) {
    if (const auto value = variables->environment.Get(name)) parts.push_back(fmt::format("{}={}", name, *value));
  }
  return Join(parts, " ");
}

TEST(StorageConfig, StandsInPlaceOfVariables) {
  const struct {
    std::string config, over, variables;
  } rows[] = {
      {"", "", "AWS_REGION=pods AWS_SESSION_TOKEN=pods"},
      {" {} ", "{}", "AWS_REGION=pods AWS_SESSION_TOKEN=pods"},
      {R"({"type":"s3"})", "", "AWS_REGION=pods AWS_SESSION_TOKEN=pods"},
      {R"({"type":"s3","endpoint_url":"http://m","access_key_id":"k","secret_access_key":"s","region":"r",
           "ca_bundle":"/c","verify_ssl":"0","anonymous":"true","bucket":"b"})",
       "",
       "AWS_ENDPOINT_URL_S3=http://m AWS_ACCESS_KEY_ID=k AWS_SECRET_ACCESS_KEY=s AWS_REGION=r AWS_CA_BUNDLE=/c "
       "S3_VERIFY_SSL=0 awsAnonymousCredential=true AWS_SESSION_TOKEN="},
      {R"({"type":"s3","verify_ssl":false,"anonymous":1,"region":null})", "",
       "AWS_REGION=pods S3_VERIFY_SSL=false awsAnonymousCredential=1 AWS_SESSION_TOKEN=pods"},
      {R"({"type":"s3","access_key_id":"k"})", "",
       "AWS_ACCESS_KEY_ID=k AWS_SECRET_ACCESS_KEY= AWS_REGION=pods AWS_SESSION_TOKEN="},
      {R"({"type":"gs","region":"a"})", R"({"type":"s3","region":"b"})", "AWS_REGION=b AWS_SESSION_TOKEN=pods"},
      {"", R"({"type":"s3","region":"b"})", "AWS_REGION=b AWS_SESSION_TOKEN=pods"},
  };
  for (const auto& row : rows) EXPECT_EQ(Read(row.config, row.over), row.variables) << row.config;
}

TEST(StorageConfig, ThatIsNoneIsRefused) {
  const struct {
    std::string config, over, words;
  } rows[] = {
      {"{secret", "", "STORAGE_CONFIG is not JSON: wrong at line 1, column 2"},
      {R"("secret")", "", "STORAGE_CONFIG is not a JSON object"},
      {R"({"type":"s3"})", "[]", "STORAGE_OVERRIDE_CONFIG is not a JSON object"},
      {R"({"type":"s3","region":{}})", "", "region of STORAGE_CONFIG is not text"},
      {R"({"type":"s3","region":"r"})", R"({"region":["secret"]})", "region of STORAGE_OVERRIDE_CONFIG is not text"},
      {R"({"type":"webhdfs"})", "", "STORAGE_CONFIG is of the type 'webhdfs', but s3://bucket/key needs s3"},
      {R"({"type":"s3"})", R"({"type":"gs"})",
       "STORAGE_OVERRIDE_CONFIG is of the type 'gs', but s3://bucket/key needs s3"},
      {"", R"({"region":"r"})", "STORAGE_OVERRIDE_CONFIG is of the type '', but s3://bucket/key needs s3"},
      {R"({"type":7})", "", "STORAGE_CONFIG is of the type '', but s3://bucket/key needs s3"},
  };
  for (const auto& row : rows) EXPECT_EQ(Read(row.config, row.over), "error: " + row.words);
}

// An error names the field that the user wrote, not the variable that it stands for.
TEST(StorageConfig, IsNamedInErrors) {
  auto error = [](const std::string& config, const std::string& over) -> std::string {
    const AwsCase given = {.variables = {{"STORAGE_CONFIG", config},
                                         {"STORAGE_OVERRIDE_CONFIG", over},
                                         {"AWS_USE_FIPS_ENDPOINT", "maybe"},
                                         {"AWS_SECRET_ACCESS_KEY", "pods"}}};
    const auto variables = WithStorageConfig(given.Variables(), kUri);
    if (!variables.ok()) return std::string(Message(variables.status()));
    const auto settings = AwsConfig::Read(variables->environment, given.Files(), kHome, variables->name_of);
    const auto place = FindS3Place(*settings, "bucket");
    if (!place.ok()) return std::string(Message(place.status()));
    return std::string(Message(FindAwsIdentity(*settings).status()));
  };
  constexpr std::string_view kEndpoint = R"("endpoint_url":"http://m")";
  const struct {
    std::string config, over, words;
  } rows[] = {
      {R"({"type":"s3","endpoint_url":"m:9000/"})", "", "endpoint_url of STORAGE_CONFIG: "},
      {R"({"type":"s3","endpoint_url":"http://m"})", R"({"endpoint_url":"m"})",
       "endpoint_url of STORAGE_OVERRIDE_CONFIG: "},
      {fmt::format(R"({{"type":"s3",{},"region":"a b"}})", kEndpoint), "",
       "region of STORAGE_CONFIG is 'a b'; it must"},
      {fmt::format(R"({{"type":"s3",{},"verify_ssl":"never"}})", kEndpoint), "",
       "verify_ssl of STORAGE_CONFIG is 'never'; it must"},
      {fmt::format(R"({{"type":"s3",{}}})", kEndpoint), R"({"anonymous":7})",
       "the credentials for S3: anonymous of STORAGE_OVERRIDE_CONFIG is '7'; it must"},
      {fmt::format(R"({{"type":"s3",{},"access_key_id":"k"}})", kEndpoint), "",
       "the credentials for S3: access_key_id of STORAGE_CONFIG is set but secret_access_key of STORAGE_CONFIG is "
       "not;"},
      {fmt::format(R"({{"type":"s3",{},"secret_access_key":"k"}})", kEndpoint), "",
       "the credentials for S3: secret_access_key of STORAGE_CONFIG is set but access_key_id of STORAGE_CONFIG is "
       "not;"},
      {fmt::format(R"({{"type":"s3",{},"access_key_id":"k","secret_access_key":"a b"}})", kEndpoint), "",
       "the credentials for S3: secret_access_key of STORAGE_CONFIG has a blank"},
      {R"({"type":"s3"})", "", "AWS_USE_FIPS_ENDPOINT is 'maybe'; it must"},
  };
  for (const auto& row : rows) EXPECT_THAT(error(row.config, row.over), StartsWith(row.words)) << row.config;
}

}  // namespace
}  // namespace muster::initializers
