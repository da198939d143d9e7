// SPDX-License-Identifier: Apache-2.0
// Signature V4 against what AWS publishes (its signing test suite, the S3 API reference) and against botocore's
// signers.
#include "initializers/aws/sigv4.h"

#include <gmock/gmock.h>

#include "http/percent.h"

namespace muster::initializers {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string HeaderOf(const HeaderList& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

// The text after `word`, up to a comma or the end.
std::string FieldOf(const HeaderList& headers, std::string_view word) {
  const std::string text = HeaderOf(headers, "Authorization");
  const size_t at = text.find(word);
  if (at == std::string::npos) return {};
  const size_t start = at + word.size();
  return text.substr(start, text.find(',', start) - start);
}

std::string SignatureOf(const HeaderList& headers) { return FieldOf(headers, "Signature="); }
std::string SignedOf(const HeaderList& headers) { return FieldOf(headers, "SignedHeaders="); }

TEST(CanonicalQuery, IsSortedAndEncoded) {
  EXPECT_EQ(http::CanonicalQuery({}), "");
  EXPECT_EQ(http::CanonicalQuery({{"uploads", ""}}), "uploads=");
  EXPECT_EQ(http::CanonicalQuery({{"prefix", "a b/c+d"}, {"list-type", "2"}}), "list-type=2&prefix=a%20b%2Fc%2Bd");
  EXPECT_EQ(http::CanonicalQuery({{"a", "2"}, {"a", "10"}, {"A", "3"}}), "A=3&a=10&a=2");
  EXPECT_EQ(http::CanonicalQuery({{"t", "1/x+y=="}, {"t ", "é~"}}), "t=1%2Fx%2By%3D%3D&t%20=%C3%A9~");
  // "a" sorts before "a-": the '=' between name and value is not part of the order.
  EXPECT_EQ(http::CanonicalQuery({{"a-", "1"}, {"a", "2"}}), "a=2&a-=1");
}

// Cases of aws-signing-test-suite/v4 that match our requests: paths unchanged, no normalisation.
TEST(Sigv4, AgreesWithTheTestSuite) {
  const struct {
    std::string_view name;
    SigningRequest request;
    std::string_view signed_headers, signature;
  } rows[] = {
      {"get-vanilla", {}, "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"get-header-key-duplicate",
       {.headers = {{"My-Header1", "value2"}, {"My-Header1", "value2"}, {"My-Header1", "value1"}}},
       "host;my-header1;x-amz-date",
       "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
      {"get-header-value-multiline",
       {.headers = {{"My-Header1", "value1\n  value2\n     value3"}}},
       "host;my-header1;x-amz-date",
       "cfd34249e4b1c8d6b91ef74165d41a32e5fab3306300901bb65a51a73575eefd"},
      {"get-header-value-order",
       {.headers =
            {{"My-Header1", "value4"}, {"My-Header1", "value1"}, {"My-Header1", "value3"}, {"My-Header1", "value2"}}},
       "host;my-header1;x-amz-date",
       "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"},
      {"get-header-value-trim",
       {.headers = {{"My-Header2", " \"a   b   c\""}, {"My-Header1", " value1"}}},
       "host;my-header1;my-header2;x-amz-date",
       "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
      {"get-relative-unnormalized",
       {.path = "/example/.."},
       "host;x-amz-date",
       "eca7ead57bb5aa5c8e28007acd4ff04e1ff9a0ff3b237ec1554a184887ff9282"},
      {"get-slash-dot-slash-unnormalized",
       {.path = "/./"},
       "host;x-amz-date",
       "68714168e6557f8f2de0ef956fc24dc2593a4bd2961f8df51898d8a134695145"},
      {"get-slash-unnormalized",
       {.path = "//"},
       "host;x-amz-date",
       "c88bcd3d312d75078c0cd961d6deae3f4c754924b01669efcfcb439fd5e5b76e"},
      {"get-slashes-unnormalized",
       {.path = "//example//"},
       "host;x-amz-date",
       "87cca117541a147f6df867677d98a7d80dff226d2bfca9e4ffa899665623c7e5"},
      {"get-space-unnormalized",
       {.path = "/example space/"},
       "host;x-amz-date",
       "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
      {"get-unreserved",
       {.path = "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"},
       "host;x-amz-date",
       "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
      {"get-utf8",
       {.path = "/ሴ"},
       "host;x-amz-date",
       "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
      {"get-vanilla-empty-query-key",
       {.query = {{"Param1", "value1"}}},
       "host;x-amz-date",
       "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
      {"get-vanilla-query-order-encoded",
       {.query = {{"Param-3", "Value3"}, {"Param", "Value2"}, {"ሴ", "Value1"}}},
       "host;x-amz-date",
       "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac"},
      {"get-vanilla-query-order-key-case",
       {.query = {{"Param2", "value2"}, {"Param1", "value1"}}},
       "host;x-amz-date",
       "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
      {"get-vanilla-query-unreserved",
       {.query = {{"-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
                   "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"}}},
       "host;x-amz-date",
       "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
      {"get-vanilla-utf8-query",
       {.query = {{"ሴ", "bar"}}},
       "host;x-amz-date",
       "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
      {"post-vanilla",
       {.method = "POST"},
       "host;x-amz-date",
       "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
      {"post-header-value-case",
       {.method = "POST", .headers = {{"My-Header1", "VALUE1"}}},
       "host;my-header1;x-amz-date",
       "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"},
      {"post-x-www-form-urlencoded",
       {.method = "POST",
        .headers = {{"Content-Type", "application/x-www-form-urlencoded"},
                    {"Content-Length", "13"},
                    {"x-amz-content-sha256", "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e"}},
        .body = "Param1=value1"},
       "content-length;content-type;host;x-amz-content-sha256;x-amz-date",
       "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b"},
  };
  constexpr int64_t kAt = 1440938160;  // 2015-08-30T12:36:00Z
  for (auto row : rows) {
    row.request.host = "example.amazonaws.com";
    const HeaderList headers = Sign(row.request, {.region = "us-east-1", .service = "service"},
                                    {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""}, kAt);
    EXPECT_EQ(SignedOf(headers), row.signed_headers) << row.name;
    EXPECT_EQ(SignatureOf(headers), row.signature) << row.name;
  }
  const HeaderList with_token = Sign({.host = "example.amazonaws.com"}, {.region = "us-east-1", .service = "service"},
                                     {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                                      "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"},
                                     kAt);
  EXPECT_EQ(SignedOf(with_token), "host;x-amz-date;x-amz-security-token");
  EXPECT_EQ(SignatureOf(with_token), "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8");
}

// Source: the examples of the Amazon S3 API Reference, "Authenticating Requests: Using the Authorization Header".
TEST(Sigv4, AgreesWithTheExamplesOfS3) {
  const struct {
    SigningRequest request;
    std::string_view signature;
  } rows[] = {
      {{.path = "/test.txt", .headers = {{"Range", "bytes=0-9"}}},
       "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
      {{.method = "PUT",
        .path = "/test%24file.text",
        .headers = {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
        .body = "Welcome to Amazon S3."},
       "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
      {{.query = {{"lifecycle", ""}}}, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
      {{.query = {{"prefix", "J"}, {"max-keys", "2"}}},
       "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
  };
  for (auto row : rows) {
    row.request.host = "examplebucket.s3.amazonaws.com";
    const HeaderList headers =
        Sign(row.request, {.region = "us-east-1", .service = "s3"},
             {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""}, 1369353600);
    EXPECT_EQ(SignatureOf(headers), row.signature);
  }
}

constexpr int64_t kNow = 1795309323;  // 2026-11-22T01:02:03Z
const AwsKeys kKeys = {"AKIAEXAMPLE", "s3cr3t/key+with=signs", ""};
const SigningScope kScope = {.region = "eu-west-1", .service = "s3"};

TEST(Sigv4, AddsTheHeadersThatItSigned) {
  AwsKeys keys = kKeys;
  keys.session_token = "FQoGZXIvYXdzE//+token==";
  const HeaderList headers = Sign({.host = "bucket.s3.eu-west-1.amazonaws.com", .path = "/key"}, kScope, keys, kNow);
  EXPECT_THAT(headers, ElementsAre(Pair("x-amz-date", "20261122T010203Z"),
                                   Pair("x-amz-content-sha256",
                                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
                                   Pair("x-amz-security-token", "FQoGZXIvYXdzE//+token=="),
                                   Pair("Authorization",
                                        "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20261122/eu-west-1/s3/aws4_request, "
                                        "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, "
                                        "Signature=4d54838470336f1e0af711ba670eebab9268e5ebdfbf2507ee203a9424bcb981")));
}

// Values by S3SigV4Auth of botocore 1.44.5, from a URL with the same bytes.
TEST(Sigv4, AgreesWithBotocoreAboutOddKeys) {
  const struct {
    std::string_view key, signature;
  } rows[] = {
      {"a", "0e65f0b55798e177b0cf13ef0d217a797ee4fabaf1beb8a878c6bc483a4276e9"},
      {"a//b", "a20c7eebcbc2406410e04caec7b7d5da4e350a51a9fca3a4fd6ad25aa0a9e392"},
      {"./c", "2cbe6899d2e3097dff07698d86f38c9949d29251af7961c5fa1e440c3694a2bf"},
      {"../d", "1b030111faef4092d89ce1d78f48790960bec9a49ceea8c84aa6896df46c9bfa"},
      {"a/./b/../c", "aa456196347da0f6671adcf4efc8baa45b1b51088412483b47960cc9cafca3db"},
      {"with space", "23725033be103dac5793439b373783df809ccf904f69be1fb80e10db9a1405e2"},
      {"a+b", "7b7d6bd8ac664ecf96ed486d5653bc15d78814897067e01a6ed32d0d0a416260"},
      {"100%", "2eb9cfaa61a1b7e1a67a822a49d9d21d52841aed51a167f79a8e49ead561327d"},
      {"%41", "29b3f15a9dcc163fb30108fb39ec501f546b3a8985d5175437f6a4600dc5cb0f"},
      {"~tilde", "f792044fddeaff11e154ff261c5ee39435061c9c79e8dbbe2eef6456bb2ae3de"},
      {"é/ሴ/😀", "f26959254adc121eef7a0b7451fdbc3f216b4eba4b089778ec7c52831ba38916"},
      {"a?b#c", "38ec8edbfb1cb2897ea571a98f57c45fcce45b66bf931e11f230285d2d35517f"},
      {"a&b=c", "37f4df14660e89bf5a8ee60c05684f85ae47c18080b652f44e454badbe5ab6f4"},
      {"!*'()", "19b3b77af35f9551401a2495a2529ccdd7488cd7fd4ace0498c961b406b4dc65"},
      {"@:$,;[]", "122238011f13809fe64b98dd0295d3c5dbcb9e6882c4736b8613a9047b5b81cb"},
  };
  for (const auto& row : rows) {
    const HeaderList headers =
        Sign({.host = "127.0.0.1:9000", .path = "/bucket/" + http::PercentEncode(row.key, "/")}, kScope, kKeys, kNow);
    EXPECT_EQ(SignatureOf(headers), row.signature) << row.key;
  }
}

TEST(Sigv4, AgreesWithBotocoreAboutRequests) {
  const std::string aws = "bucket.s3.eu-west-1.amazonaws.com";
  const struct {
    SigningRequest request;
    std::string_view signed_headers, signature;
  } rows[] = {
      {{.host = "127.0.0.1:9000",
        .path = "/bucket",
        .query = {{"list-type", "2"},
                  {"prefix", "a b/c+d"},
                  {"max-keys", "1000"},
                  {"encoding-type", "url"},
                  {"continuation-token", "1/x+y=="}}},
       "host;x-amz-content-sha256;x-amz-date",
       "1a51681d8106bd5ec6472c53fbce3ba3c705cfac46c6970fdf4ba279ee57fdc9"},
      {{.method = "HEAD",
        .host = aws,
        .path = "/key",
        .query = {{"partNumber", "1"}},
        .headers = {{"X-Amz-Request-Payer", "requester"}, {"x-amz-checksum-mode", "ENABLED"}}},
       "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date;x-amz-request-payer",
       "8a12c416a20fbfc29784986255d2e1e4d61ef70b4026269f24c8c1fed61eee81"},
      {{.host = aws,
        .path = "/key",
        .query = {{"versionId", "null"}},
        .headers = {{"Range", "bytes=0-9"}, {"If-Match", "\"abc\""}}},
       "host;if-match;range;x-amz-content-sha256;x-amz-date",
       "e7ffbd136d882207e5b97ccf7b5b31dc3cffbddc965dd35935b5c5642c8e3f5c"},
      // The default port of the scheme is not in the Host header; any other port is.
      {{.host = "host.example", .path = "/bucket/key"},
       "host;x-amz-content-sha256;x-amz-date",
       "c8210098ba0e0ccd949c7ed45611fdd500749c2ab297b67566ef3938a025f073"},
      {{.host = "host.example:8443", .path = "/base/bucket/key"},
       "host;x-amz-content-sha256;x-amz-date",
       "14ebdce2feac191c0513b94134adeb77deb410030e6996d24bd30ca1db537824"},
      {{.host = "[::1]:9000", .path = "/bucket/key"},
       "host;x-amz-content-sha256;x-amz-date",
       "c15c3b32cfb2708c582f878f2c97c0d8ed980cf8f1207299ed1bf0142e529ab7"},
  };
  for (const auto& row : rows) {
    const HeaderList headers = Sign(row.request, kScope, kKeys, kNow);
    EXPECT_EQ(SignedOf(headers), row.signed_headers) << row.request.host << row.request.path;
    EXPECT_EQ(SignatureOf(headers), row.signature) << row.request.host << row.request.path;
  }
}

TEST(Sigv4, KnowsTheCalendar) {
  const SigningRequest request = {.host = "127.0.0.1:9000", .path = "/bucket/key"};
  const HeaderList leap = Sign(request, kScope, kKeys, 1835481599);
  EXPECT_EQ(HeaderOf(leap, "x-amz-date"), "20280229T235959Z");
  EXPECT_EQ(SignatureOf(leap), "8ae55af305dc162add5e36e276562dee612d4fccc42b35d42fe951e001862ccc");
  EXPECT_EQ(HeaderOf(Sign(request, kScope, kKeys, 0), "x-amz-date"), "19700101T000000Z");
  EXPECT_EQ(HeaderOf(Sign(request, kScope, kKeys, -1), "x-amz-date"), "19691231T235959Z");
}

TEST(Sigv4, SignsFormsForSts) {
  const HeaderList headers = Sign({.method = "POST",
                                   .host = "sts.eu-west-1.amazonaws.com",
                                   .headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}},
                                   .body = "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%"
                                           "3A123456789012%3Arole%2Fr&RoleSessionName=s"},
                                  {.region = "eu-west-1", .service = "sts"}, kKeys, kNow);
  EXPECT_EQ(HeaderOf(headers, "x-amz-content-sha256"), "");
  EXPECT_THAT(HeaderOf(headers, "Authorization"),
              HasSubstr("Credential=AKIAEXAMPLE/20261122/eu-west-1/sts/aws4_request, SignedHeaders=content-type;host;"
                        "x-amz-date, "));
  EXPECT_THAT(HeaderOf(headers, "Authorization"),
              EndsWith("Signature=7fa7762b26d98ef5e13ad3f2f9415dbcd7090eed7f63bc02bbaa3e3ba19c90b7"));
}

}  // namespace
}  // namespace muster::initializers
