// SPDX-License-Identifier: Apache-2.0
// The endpoints of S3 and STS. The addresses were compared, on random settings, with those that botocore 1.44.5 uses.
#include "initializers/aws/settings.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/initializers/aws_case.h"

namespace muster::initializers {
namespace {

using ::testing::HasSubstr;

StatusOr<S3Place> PlaceOf(const AwsCase& given, std::string_view bucket) {
  MUSTER_ASSIGN_OR_RETURN(const AwsConfig config, AwsConfig::Read(given.Variables(), given.Files(), kHome));
  return FindS3Place(config, bucket);
}

// "URL of key 'k'" followed by the region, or "error: ...".
std::string Find(const AwsCase& given, std::string_view bucket = "bucket", std::string_view key = "k") {
  auto place = PlaceOf(given, bucket);
  if (!place.ok()) return "error: " + std::string(place.status().message());
  const S3Address address = AddressOf(*place, bucket, key);
  EXPECT_TRUE(address.origin.ends_with("//" + address.host)) << address.origin << " " << address.host;
  return fmt::format("{}{} {}", address.origin, address.path, place->region);
}

using Variables = std::map<std::string, std::string, std::less<>>;

TEST(S3Place, RegionsInOrder) {
  AwsCase given = {.variables = {{"REGION", "a-1"}, {"AWS_REGION", "b-1"}, {"AWS_DEFAULT_REGION", "c-1"}},
                   .config = "[default]\nregion = d-1\n"};
  EXPECT_EQ(Find(given), "https://bucket.s3.a-1.amazonaws.com/k a-1");
  given.variables.erase("REGION");
  EXPECT_EQ(Find(given), "https://bucket.s3.b-1.amazonaws.com/k b-1");
  given.variables.erase("AWS_REGION");
  EXPECT_EQ(Find(given), "https://bucket.s3.c-1.amazonaws.com/k c-1");
  given.variables.erase("AWS_DEFAULT_REGION");
  EXPECT_EQ(Find(given), "https://bucket.s3.d-1.amazonaws.com/k d-1");
  given.config.clear();
  EXPECT_EQ(Find(given), "https://bucket.s3.amazonaws.com/k ");
  // Kubeflow's default is "auto": there is such a region at other stores, but not at AWS.
  given.variables["REGION"] = "auto";
  EXPECT_EQ(Find(given), "https://bucket.s3.amazonaws.com/k ");
  given.variables["ENDPOINT"] = "https://r2.example";
  EXPECT_EQ(Find(given), "https://r2.example/bucket/k auto");
  for (const std::string& bad : {std::string("eu west"), std::string("eu/west"), std::string("eu-west-1.evil.example"),
                                 std::string("-a"), std::string(64, 'a')}) {
    given.variables["REGION"] = bad;
    EXPECT_EQ(Find(given), "error: REGION is '" + bad + "'; it must be a region, like eu-west-1");
  }
}

TEST(S3Place, EndpointsInOrder) {
  // Each setting is removed after it has won.
  AwsCase given = {.variables = {{"ENDPOINT", "kubeflow:9000"},
                                 {"AWS_ENDPOINT_URL_S3", "http://aws-s3:1/base/"},
                                 {"AWS_ENDPOINT_URL", "http://aws:2"},
                                 {"S3_ENDPOINT_URL", "https://s5cmd"},
                                 {"S3_ENDPOINT", "kserve:3"},
                                 {"S3_USE_HTTPS", "0"}},
                   .config =
                       "[default]\nservices = x\nendpoint_url = https://profile\n[services x]\ns3 =\n"
                       "  endpoint_url = https://services\n"};
  EXPECT_EQ(Find(given), "https://kubeflow:9000/bucket/k ");
  given.variables.erase("ENDPOINT");
  EXPECT_EQ(Find(given), "http://aws-s3:1/base/bucket/k ");
  given.variables.erase("AWS_ENDPOINT_URL_S3");
  EXPECT_EQ(Find(given), "http://aws:2/bucket/k ");
  given.variables["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "true";
  EXPECT_EQ(Find(given), "https://s5cmd/bucket/k ");
  given.variables.erase("S3_ENDPOINT_URL");
  EXPECT_EQ(Find(given), "http://kserve:3/bucket/k ");
  given.variables.erase("S3_USE_HTTPS");
  EXPECT_EQ(Find(given), "https://kserve:3/bucket/k ");
  given.variables.erase("S3_ENDPOINT");
  EXPECT_EQ(Find(given), "https://bucket.s3.amazonaws.com/k ");
  given.variables.clear();
  EXPECT_EQ(Find(given), "https://services/bucket/k ");
  given.config =
      "[default]\nservices = x\nendpoint_url = https://profile\n[services x]\nsts =\n  endpoint_url = https://s\n";
  EXPECT_EQ(Find(given), "https://profile/bucket/k ");
  given.config = "[default]\nservices = y\n";
  EXPECT_EQ(Find(given),
            "error: services in profile default of /home/u/.aws/config is 'y'; there is no [services y] in "
            "/home/u/.aws/config");
}

TEST(S3Place, EndpointsThatAreNone) {
  const struct {
    Variables variables;
    std::string_view error;
  } rows[] = {
      {{{"AWS_ENDPOINT_URL", "minio:9000"}}, "AWS_ENDPOINT_URL: 'minio:9000' is not an endpoint: it lacks the scheme"},
      {{{"S3_ENDPOINT_URL", "ftp://x"}}, "S3_ENDPOINT_URL: 'ftp://x' is not an endpoint: its scheme is neither"},
      {{{"ENDPOINT", "a b"}}, "ENDPOINT: 'https://a b' is not an endpoint: its host is not a host name or IP address"},
      {{{"S3_ENDPOINT", "x"}, {"S3_USE_HTTPS", "perhaps"}}, "S3_USE_HTTPS is 'perhaps'; it must be true or false"},
      {{{"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "x"}}, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is 'x'"},
  };
  for (const auto& row : rows) EXPECT_THAT(Find({.variables = row.variables}), HasSubstr(row.error));
}

TEST(S3Place, AwsItself) {
  const struct {
    Variables variables;
    std::string_view bucket, url;
  } rows[] = {
      {{{"AWS_REGION", "eu-west-1"}}, "my-bucket", "https://my-bucket.s3.eu-west-1.amazonaws.com/k eu-west-1"},
      {{{"AWS_REGION", "eu-west-1"}}, "my.bucket", "https://s3.eu-west-1.amazonaws.com/my.bucket/k eu-west-1"},
      {{{"AWS_REGION", "us-east-1"}}, "My_Bucket", "https://s3.us-east-1.amazonaws.com/My_Bucket/k us-east-1"},
      {{{"AWS_REGION", "us-east-1"}}, "ab", "https://s3.us-east-1.amazonaws.com/ab/k us-east-1"},
      {{{"AWS_REGION", "us-east-1"}}, "-ab", "https://s3.us-east-1.amazonaws.com/-ab/k us-east-1"},
      {{{"AWS_REGION", "us-east-1"}}, "1.2.3.4", "https://s3.us-east-1.amazonaws.com/1.2.3.4/k us-east-1"},
      {{}, "my.bucket", "https://s3.amazonaws.com/my.bucket/k "},
      {{{"AWS_REGION", "aws-global"}}, "bucket", "https://bucket.s3.amazonaws.com/k "},
      {{{"AWS_REGION", "cn-north-1"}}, "bucket", "https://bucket.s3.cn-north-1.amazonaws.com.cn/k cn-north-1"},
      {{{"AWS_REGION", "us-gov-west-1"}}, "bucket", "https://bucket.s3.us-gov-west-1.amazonaws.com/k us-gov-west-1"},
      {{{"AWS_REGION", "us-iso-east-1"}}, "bucket", "https://bucket.s3.us-iso-east-1.c2s.ic.gov/k us-iso-east-1"},
      {{{"AWS_REGION", "us-isob-east-1"}}, "bucket", "https://bucket.s3.us-isob-east-1.sc2s.sgov.gov/k us-isob-east-1"},
      {{{"AWS_REGION", "eu-isoe-west-1"}},
       "bucket",
       "https://bucket.s3.eu-isoe-west-1.cloud.adc-e.uk/k eu-isoe-west-1"},
      {{{"AWS_REGION", "us-isof-south-1"}},
       "bucket",
       "https://bucket.s3.us-isof-south-1.csp.hci.ic.gov/k us-isof-south-1"},
      {{{"AWS_REGION", "eusc-de-east-1"}}, "bucket", "https://bucket.s3.eusc-de-east-1.amazonaws.eu/k eusc-de-east-1"},
      {{{"AWS_REGION", "eu-west-1"}, {"AWS_USE_DUALSTACK_ENDPOINT", "true"}},
       "bucket",
       "https://bucket.s3.dualstack.eu-west-1.amazonaws.com/k eu-west-1"},
      {{{"AWS_REGION", "us-west-2"}, {"AWS_USE_FIPS_ENDPOINT", "true"}},
       "bucket",
       "https://bucket.s3-fips.us-west-2.amazonaws.com/k us-west-2"},
      {{{"AWS_USE_DUALSTACK_ENDPOINT", "true"}, {"AWS_USE_FIPS_ENDPOINT", "true"}},
       "bucket",
       "https://bucket.s3-fips.dualstack.us-east-1.amazonaws.com/k "},
      {{{"AWS_REGION", "cn-north-1"}, {"AWS_USE_FIPS_ENDPOINT", "true"}},
       "bucket",
       "error: FIPS endpoints are wanted (AWS_USE_FIPS_ENDPOINT, or use_fips_endpoint in the profile), but cn-north-1 "
       "has "
       "none"},
      {{{"AWS_REGION", "eu-west-1"}, {"S3_USE_ACCELERATE", "true"}},
       "bucket",
       "https://bucket.s3-accelerate.amazonaws.com/k eu-west-1"},
      {{{"S3_USE_ACCELERATE", "1"}, {"AWS_USE_DUALSTACK_ENDPOINT", "true"}},
       "bucket",
       "https://bucket.s3-accelerate.dualstack.amazonaws.com/k "},
  };
  for (const auto& row : rows) EXPECT_EQ(Find({.variables = row.variables}, row.bucket), row.url);
}

TEST(S3Place, AccelerateThatCannotBe) {
  const struct {
    Variables variables;
    std::string_view bucket, why;
  } rows[] = {
      {{}, "my.bucket", "the bucket's name cannot be part of its host"},
      {{{"AWS_ENDPOINT_URL", "http://minio:9000"}}, "bucket", "a custom endpoint is set"},
      {{{"AWS_USE_FIPS_ENDPOINT", "true"}}, "bucket", "FIPS endpoints are wanted"},
      {{{"AWS_REGION", "cn-north-1"}}, "bucket", "the region has none"},
  };
  for (auto row : rows) {
    row.variables["S3_USE_ACCELERATE"] = "true";
    EXPECT_THAT(Find({.variables = row.variables}, row.bucket),
                HasSubstr(fmt::format("S3 Transfer Acceleration is wanted (S3_USE_ACCELERATE, or "
                                      "use_accelerate_endpoint in the profile), but {}; unset one of them",
                                      row.why)));
  }
}

TEST(S3Place, TheAddressingStyleDecidesTheUrl) {
  auto of = [](std::string endpoint, std::string style, std::string_view bucket) {
    AwsCase given;
    if (!endpoint.empty()) given.variables["AWS_ENDPOINT_URL"] = endpoint;
    if (style == "kserve") {
      given.variables["S3_USER_VIRTUAL_BUCKET"] = "true";
    } else if (!style.empty()) {
      given.config = "[default]\ns3 =\n  addressing_style = " + style + "\n";
    }
    return Find(given, bucket);
  };
  const struct {
    std::string endpoint, style;
    std::string_view bucket, url;
  } rows[] = {
      {"", "path", "bucket", "https://s3.amazonaws.com/bucket/k "},
      {"", "auto", "bucket", "https://bucket.s3.amazonaws.com/k "},
      {"", "virtual", "my.bucket", "https://s3.amazonaws.com/my.bucket/k "},
      {"https://h", "", "bucket", "https://h/bucket/k "},
      {"https://h", "auto", "bucket", "https://h/bucket/k "},
      {"https://h/base", "virtual", "bucket", "https://bucket.h/base/k "},
      {"https://h", "kserve", "bucket", "https://bucket.h/k "},
      {"http://h:9000", "kserve", "my.bucket", "http://my.bucket.h:9000/k "},
      {"https://h", "kserve", "my.bucket", "https://h/my.bucket/k "},
      {"http://h", "kserve", "a..b", "http://h/a..b/k "},
      {"http://10.0.0.1:9000", "kserve", "bucket", "http://10.0.0.1:9000/bucket/k "},
      {"http://[::1]:9000", "virtual", "bucket", "http://[::1]:9000/bucket/k "},
      {"", "vhost", "bucket",
       "error: s3.addressing_style in profile default of /home/u/.aws/config is 'vhost'; it must be auto, virtual or "
       "path"},
  };
  for (const auto& row : rows) EXPECT_EQ(of(row.endpoint, row.style, row.bucket), row.url) << row.endpoint << row.style;
}

// Secrets for KServe often give the endpoint of AWS as a custom endpoint.
TEST(S3Place, AwsByItsOwnNameIsNoCustomEndpoint) {
  const struct {
    std::string endpoint;
    std::string_view url;
    bool own;
  } rows[] = {
      {"https://s3.amazonaws.com", "https://s3.eu-west-1.amazonaws.com/bucket/k eu-west-1", true},
      {"https://s3.us-west-2.amazonaws.com/", "https://s3.us-west-2.amazonaws.com/bucket/k us-west-2", true},
      {"https://s3.cn-north-1.amazonaws.com.cn:443", "https://s3.cn-north-1.amazonaws.com.cn/bucket/k cn-north-1",
       true},
      {"http://s3.us-west-2.amazonaws.com", "http://s3.us-west-2.amazonaws.com/bucket/k eu-west-1", false},
      {"https://s3.cn-north-1.amazonaws.com", "https://s3.cn-north-1.amazonaws.com/bucket/k eu-west-1", false},
      {"https://s3.us-west-2.amazonaws.com.evil.example",
       "https://s3.us-west-2.amazonaws.com.evil.example/bucket/k eu-west-1", false},
      {"https://s3.us-west-2.amazonaws.com/base", "https://s3.us-west-2.amazonaws.com/base/bucket/k eu-west-1", false},
      {"https://s3.dualstack.amazonaws.com", "https://s3.dualstack.amazonaws.com/bucket/k eu-west-1", false},
      {"https://s3.us-west-2.wasabisys.com", "https://s3.us-west-2.wasabisys.com/bucket/k eu-west-1", false},
  };
  for (const auto& row : rows) {
    const AwsCase given = {.variables = {{"AWS_ENDPOINT_URL", row.endpoint}, {"AWS_REGION", "eu-west-1"}}};
    EXPECT_EQ(Find(given), row.url);
    EXPECT_EQ(PlaceOf(given, "bucket")->endpoint.empty(), row.own);
  }
}

TEST(S3Place, BucketsThatAreNone) {
  EXPECT_THAT(Find({}, ""), HasSubstr("'' is not a bucket"));
  EXPECT_THAT(Find({}, "a/b"), HasSubstr("'a/b' is not a bucket"));
  EXPECT_THAT(Find({}, ".."), HasSubstr("'..' is not a bucket"));
  EXPECT_THAT(Find({}, "arn:aws:s3:eu-west-1:1:accesspoint/x"), HasSubstr("is an ARN, which is not supported"));
  EXPECT_THAT(Find({}, "b--use1-az4--x-s3"), HasSubstr("is a directory bucket (S3 Express), which is not supported"));
  EXPECT_EQ(Find({.variables = {{"AWS_ENDPOINT_URL", "http://h"}}}, "b--x-s3"), "http://h/b--x-s3/k ");
}

TEST(S3Place, TlsAndPayer) {
  auto of = [](Variables variables, std::string config = "") {
    const AwsCase given = {.variables = std::move(variables), .config = std::move(config)};
    auto place = PlaceOf(given, "bucket");
    if (!place.ok()) return "error: " + std::string(place.status().message());
    return fmt::format("{} {} {}", place->verify_tls, place->ca_bundle, place->requester_pays);
  };
  EXPECT_EQ(of({}), "true  false");
  EXPECT_EQ(of({{"S3_VERIFY_SSL", "0"}}), "false  false");
  EXPECT_EQ(of({{"S3_VERIFY_SSL", "False"}}), "false  false");
  EXPECT_EQ(of({{"S3_VERIFY_SSL", "nope"}}), "error: S3_VERIFY_SSL is 'nope'; it must be true or false");
  EXPECT_EQ(of({{"AWS_CA_BUNDLE", "/a"}, {"REQUESTS_CA_BUNDLE", "/r"}}, "[default]\nca_bundle=/p\n"), "true /a false");
  EXPECT_EQ(of({{"REQUESTS_CA_BUNDLE", "/r"}}, "[default]\nca_bundle=/p\n"), "true /p false");
  EXPECT_EQ(
      of({{"REQUESTS_CA_BUNDLE", "/r"}, {"CA_BUNDLE_CONFIGMAP_NAME", "c"}, {"CA_BUNDLE_VOLUME_MOUNT_POINT", "/m"}}),
      "true /m/cabundle.crt false");
  EXPECT_EQ(of({{"REQUESTS_CA_BUNDLE", "/r"}, {"CA_BUNDLE_VOLUME_MOUNT_POINT", "/m"}}), "true /r false");
  EXPECT_EQ(of({{"AWS_REQUEST_PAYER", "requester"}}), "true  true");
  EXPECT_EQ(of({{"AWS_REQUEST_PAYER", "false"}}), "true  false");
  EXPECT_EQ(of({{"AWS_REQUEST_PAYER", "me"}}), "error: AWS_REQUEST_PAYER is 'me'; it must be requester");
}

TEST(S3Place, ProfilesOwnSettings) {
  AwsCase given = {.config =
                       "[default]\nregion=eu-west-1\nuse_fips_endpoint=true\nuse_dualstack_endpoint=true\n"
                       "[profile fast]\nregion=us-west-2\ns3 =\n  use_accelerate_endpoint = true\n"
                       "  use_dualstack_endpoint = true\n"};
  EXPECT_EQ(Find(given), "https://bucket.s3-fips.dualstack.eu-west-1.amazonaws.com/k eu-west-1");
  given.variables = {{"AWS_USE_FIPS_ENDPOINT", "false"}, {"AWS_USE_DUALSTACK_ENDPOINT", "false"}};
  EXPECT_EQ(Find(given), "https://bucket.s3.eu-west-1.amazonaws.com/k eu-west-1");
  given.variables["AWS_PROFILE"] = "fast";  // whose s3 settings have precedence
  EXPECT_EQ(Find(given), "https://bucket.s3-accelerate.dualstack.amazonaws.com/k us-west-2");
  // The variants of AWS endpoints do not change another store's endpoint.
  given.variables = {{"AWS_ENDPOINT_URL", "http://h"}};
  EXPECT_EQ(Find(given), "http://h/bucket/k eu-west-1");
  given.variables = {{"AWS_PROFILE", "slow"}};
  EXPECT_THAT(Find(given), HasSubstr("AWS_PROFILE names the profile 'slow'"));
}

TEST(S3Address, OfKeys) {
  const S3Place virtual_host = {.region = "eu-west-1"};
  const S3Place path_style = {.endpoint = "http://127.0.0.1:9000", .virtual_host = false};
  const struct {
    std::string_view key, path;
  } rows[] = {
      {"a b", "/a%20b"},          {"a/b", "/a/b"}, {"a//b", "/a//b"}, {"./c", "/./c"},
      {"../d", "/../d"},          {"/a", "//a"},   {"a/", "/a/"},     {"a+b%41", "/a%2Bb%2541"},
      {"é~?#", "/%C3%A9~%3F%23"}, {"", "/"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(
        AddressOf(virtual_host, "b-1", row.key),
        (S3Address{"https://b-1.s3.eu-west-1.amazonaws.com", "b-1.s3.eu-west-1.amazonaws.com", std::string(row.path)}));
    EXPECT_EQ(
        AddressOf(path_style, "b_1", row.key),
        (S3Address{"http://127.0.0.1:9000", "127.0.0.1:9000", "/b_1" + std::string(row.key.empty() ? "" : row.path)}));
  }
  EXPECT_EQ(AddressOf(path_style, "b c", "k").path, "/b%20c/k");
  // The region was learnt.
  EXPECT_EQ(AddressOf({.region = ""}, "bucket", "").origin, "https://bucket.s3.amazonaws.com");
  EXPECT_EQ(AddressOf({.region = "ap-south-1"}, "bucket", "").origin, "https://bucket.s3.ap-south-1.amazonaws.com");
}

TEST(StsPlace, IsFound) {
  const struct {
    AwsCase given;
    std::string_view place;
  } rows[] = {
      {{}, "https://sts.amazonaws.com us-east-1"},
      {{.variables = {{"AWS_REGION", "eu-west-1"}}}, "https://sts.eu-west-1.amazonaws.com eu-west-1"},
      {{.variables = {{"AWS_REGION", "cn-north-1"}}}, "https://sts.cn-north-1.amazonaws.com.cn cn-north-1"},
      {{.variables = {{"AWS_REGION", "us-west-2"}, {"AWS_USE_FIPS_ENDPOINT", "true"}}},
       "https://sts-fips.us-west-2.amazonaws.com us-west-2"},
      {{.variables = {{"AWS_REGION", "us-gov-west-1"}, {"AWS_USE_FIPS_ENDPOINT", "true"}}},
       "https://sts.us-gov-west-1.amazonaws.com us-gov-west-1"},
      {{.variables = {{"AWS_REGION", "eu-west-1"}, {"AWS_USE_DUALSTACK_ENDPOINT", "true"}}},
       "https://sts.eu-west-1.api.aws eu-west-1"},
      {{.variables = {{"AWS_ENDPOINT_URL_STS", "http://sts:1/"}, {"AWS_ENDPOINT_URL", "http://all:2"}}},
       "http://sts:1 us-east-1"},
      {{.variables = {{"AWS_ENDPOINT_URL", "http://all:2"}, {"AWS_ENDPOINT_URL_S3", "http://s3:3"}}},
       "http://all:2 us-east-1"},
      // The variables of other systems are for S3 only.
      {{.variables = {{"ENDPOINT", "http://minio"}, {"S3_ENDPOINT_URL", "http://minio"}}},
       "https://sts.amazonaws.com us-east-1"},
      {{.config = "[default]\nregion=eu-west-1\nservices=x\n[services x]\nsts =\n  endpoint_url = https://own/sts\n"},
       "https://own/sts eu-west-1"},
  };
  for (const auto& row : rows) {
    auto config = AwsConfig::Read(row.given.Variables(), row.given.Files(), kHome);
    ASSERT_TRUE(config.ok()) << config.status();
    auto place = FindStsPlace(*config);
    ASSERT_TRUE(place.ok()) << place.status();
    EXPECT_EQ(place->endpoint + " " + place->region, row.place);
  }
}

}  // namespace
}  // namespace muster::initializers
