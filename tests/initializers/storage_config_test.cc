#include "initializers/storage_config.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/initializers/aws_case.h"

namespace muster::initializers {
namespace {

constexpr char kUri[] = "s3://bucket/key";

// "NAME=value ..." of those that the configuration may say, and what stands beside it.
std::string Read(const std::string& config, const std::string& over = "") {
  const AwsCase given = {.variables = {{"STORAGE_CONFIG", config},
                                       {"STORAGE_OVERRIDE_CONFIG", over},
                                       {"AWS_REGION", "pods"},
                                       {"AWS_SESSION_TOKEN", "pods"}}};
  const auto getenv = WithStorageConfig(given.Variables(), kUri);
  if (!getenv.ok()) return "error: " + std::string(getenv.status().message());
  std::vector<std::string> parts;
  for (std::string_view name : {"AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION",
                                "AWS_CA_BUNDLE", "S3_VERIFY_SSL", "awsAnonymousCredential", "AWS_SESSION_TOKEN"}) {
    if (const auto value = (*getenv)(name)) parts.push_back(fmt::format("{}={}", name, *value));
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
      {R"({"type":"gs","region":"a"})", R"({"type":"s3","region":"b"})", "AWS_REGION=b AWS_SESSION_TOKEN=pods"},
      {"", R"({"type":"s3","region":"b"})", "AWS_REGION=b AWS_SESSION_TOKEN=pods"},
  };
  for (const auto& row : rows) EXPECT_EQ(Read(row.config, row.over), row.variables) << row.config;
}

TEST(StorageConfig, ThatIsNoneIsRefused) {
  const struct {
    std::string config, over, words;
  } rows[] = {
      {"{secret", "", "STORAGE_CONFIG is no JSON object"},
      {R"("secret")", "", "STORAGE_CONFIG is no JSON object"},
      {R"({"type":"s3"})", "[]", "STORAGE_OVERRIDE_CONFIG is no JSON object"},
      {R"({"type":"s3","region":{}})", "", "STORAGE_CONFIG: 'region' is no text"},
      {R"({"type":"webhdfs"})", "", "STORAGE_CONFIG is of the type 'webhdfs', and s3://bucket/key of s3"},
      {R"({"type":7})", "", "STORAGE_CONFIG is of the type '', and s3://bucket/key of s3"},
  };
  for (const auto& row : rows) EXPECT_EQ(Read(row.config, row.over), "error: " + row.words);
}

}  // namespace
}  // namespace muster::initializers
