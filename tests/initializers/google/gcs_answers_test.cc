// SPDX-License-Identifier: Apache-2.0
// Pages, objects, errors and heads as Google Cloud Storage, fake-gcs-server and proxies write them.
#include "initializers/google/gcs_answers.h"

#include <gmock/gmock.h>
#include <openssl/evp.h>

#include "base/text.h"

namespace muster::initializers {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Shown(const Entry& entry) {
  return fmt::format("{} {} {} {}", entry.key, entry.size, entry.version,
                     entry.expected ? Describe(*entry.expected) : "none");
}

// "name size generation hash | ... -> token", or "error: ...".
std::string Read(std::string_view json) {
  auto page = ParseObjects(json);
  if (!page.ok()) return "error: " + std::string(page.status().message());
  std::vector<std::string> parts;
  for (const Entry& entry : page->entries) parts.push_back(Shown(entry));
  return Join(parts, " | ") + (page->next.empty() ? "" : " -> " + page->next);
}

std::string ItemOf(std::string_view more) {
  return fmt::format(R"({{"items":[{{"name":"a","size":"1","generation":"7"{}}}]}})", more);
}

TEST(GcsPage, OfServersIsRead) {
  const struct {
    std::string_view server, json, page;
  } rows[] = {
      {"Google: only the fields that were asked for",
       R"({"kind":"storage#objects","nextPageToken":"CgNhL2I=","items":[
       {"name":"a/b","size":"53687091200000","generation":"1795334326796053","crc32c":"v+Im0w==","md5Hash":"jX3yjSJErZWZ38YAPInnOA=="},
       {"name":"dir/","size":"0","generation":"1","crc32c":"AAAAAA=="}]})",
       "a/b 53687091200000 1795334326796053 crc32c:bfe226d3 | dir/ 0 1 crc32c:00000000 -> CgNhL2I="},
      {"fake-gcs-server: everything it knows",
       R"({"kind":"storage#objects","items":[{"kind":"storage#object","name":"x \u0026 y/é","id":"b/x","bucket":"b","size":"9","contentType":"text/plain","crc32c":"v+Im0w==","acl":[{"bucket":"b","projectTeam":{},"role":"OWNER"}],"md5Hash":"jX3yjSJErZWZ38YAPInnOA==","generation":"1795334326796053","metageneration":"1"}]})",
       "x & y/é 9 1795334326796053 crc32c:bfe226d3"},
      {"numbers as numbers", R"({"items":[{"name":"a","size":12,"generation":34,"crc32c":"AAAAAA=="}]})",
       "a 12 34 crc32c:00000000"},
      {"no CRC: MD5", R"({"items":[{"name":"a","size":"1","generation":"7","md5Hash":"1B2M2Y8AsgTpgAmY7PhCfg=="}]})",
       "a 1 7 md5:d41d8cd98f00b204e9800998ecf8427e"},
      {"encrypted with the customer's key: no hash", R"({"items":[{"name":"a","size":"1","generation":"7"}]})",
       "a 1 7 none"},
      {"null is nothing", R"({"items":[{"name":"a","size":"1","generation":"7","crc32c":null}],"nextPageToken":null})",
       "a 1 7 none"},
      {"nothing", R"({"kind":"storage#objects"})", ""},
      {"nothing, in a list", R"({"items":[]})", ""},
      {"a page of prefixes only, and more to come", R"({"items":[],"nextPageToken":"x"})", " -> x"},
  };
  for (const auto& row : rows) EXPECT_EQ(Read(row.json), row.page) << row.server;
}

TEST(GcsPage, ThatIsNoneIsRefused) {
  const struct {
    std::string json, error;
  } rows[] = {
      {"", "the list of objects cannot be read: it is not JSON, not a list of objects; check the endpoint"},
      {"<!DOCTYPE html><html>Sign in</html>", "it is a page of HTML or XML, not a list of objects"},
      {"{", "it is not JSON"},
      {"[]", "it is other JSON, not a list of objects"},
      {"{}", "it is other JSON, not a list of objects"},
      {R"({"message":"please log in"})", "it is other JSON"},
      {R"({"kind":"storage#buckets"})", "it is other JSON"},
      {R"({"error":{"code":403,"message":"denied"}})", "it is other JSON"},
      {R"({"items":{"name":"a"}})", "it is other JSON"},
      {R"({"items":["a"]})", "an object has no name"},
      {R"({"items":[{"size":"1","generation":"7"}]})", "an object has no name"},
      {R"({"items":[{"name":"","size":"1","generation":"7"}]})", "an object has no name"},
      {R"({"items":[{"name":"a","generation":"7"}]})", "the size of 'a' is ''"},
      {R"({"items":[{"name":"a","size":"-1","generation":"7"}]})", "the size of 'a' is '-1'"},
      {R"({"items":[{"name":"a","size":"1e3","generation":"7"}]})", "the size of 'a' is '1e3'"},
      {R"({"items":[{"name":"a\n","size":-1,"generation":"7"}]})", "the size of 'a\\x0a' is ''"},
      {R"({"items":[{"name":"a","size":"99999999999999999999","generation":"7"}]})", "is '99999999999999999999'"},
      {R"({"items":[{"name":"a","size":"1"}]})", "the generation of 'a' is ''"},
      {R"({"items":[{"name":"a","size":"1","generation":"7&x=1"}]})", "the generation of 'a' is '7&x=1'"},
      {ItemOf(R"(,"crc32c":"AAAA")"), "'a': crc32c is 'AAAA', which is not crc32c in base64"},
      {ItemOf(R"(,"crc32c":"?")"), "'a': crc32c is '?', which is not crc32c in base64"},
      {ItemOf(R"(,"crc32c":5)"), "'a': crc32c is '', which is not crc32c in base64"},
      {ItemOf(R"(,"md5Hash":"AAAAAA==")"), "'a': md5Hash is 'AAAAAA==', which is not md5 in base64"},
      {"{\"items\":[{\"name\":\"a\xff\",\"size\":\"1\",\"generation\":\"7\"}]}", "it is not JSON"},
  };
  for (const auto& row : rows) {
    EXPECT_THAT(Read(row.json), StartsWith("error: ")) << row.json;
    EXPECT_THAT(Read(row.json), HasSubstr(row.error)) << row.json;
    EXPECT_EQ(ParseObjects(row.json).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(GcsPage, AHashThatOpenSslRefusesIsNone) {
  ASSERT_EQ(EVP_set_default_properties(nullptr, "fips=yes"), 1);
  EXPECT_EQ(Read(ItemOf(R"(,"md5Hash":"1B2M2Y8AsgTpgAmY7PhCfg==")")), "a 1 7 none");
  ASSERT_EQ(EVP_set_default_properties(nullptr, ""), 1);
}

TEST(GcsPage, CutAnywhereIsAnError) {
  const std::string page =
      R"({"kind":"storage#objects","nextPageToken":"t","items":[{"name":"a","size":"1","generation":"7"}]})";
  ASSERT_EQ(Read(page), "a 1 7 none -> t");
  for (size_t length = 0; length < page.size(); ++length) {
    EXPECT_THAT(Read(std::string_view(page).substr(0, length)), StartsWith("error: ")) << length;
  }
}

TEST(GcsPage, DeepNestingIsLeftOut) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_EQ(Read(fmt::format(R"({{"items":[{{"name":"a","size":"1","generation":"7","x":{}}}]}})", deep)),
            "a 1 7 none");
}

TEST(GcsObject, IsRead) {
  auto entry = ParseObject(
      R"({"kind":"storage#object","name":"a/b","size":"9","generation":"3","crc32c":"v+Im0w==","contentEncoding":"gzip"})");
  ASSERT_TRUE(entry.ok()) << entry.status();
  EXPECT_EQ(Shown(*entry), "a/b 9 3 crc32c:bfe226d3");
  EXPECT_EQ(entry->path, "");
  EXPECT_TRUE(entry->known);
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"<html>",
       "the description of the object cannot be read: it is a page of HTML or XML, not an object's description"},
      {"[1]", "it is other JSON"},
      {R"({"items":[]})", "it is other JSON"},
      {R"({"name":"a"})", "the size of 'a' is ''"},
  };
  for (const auto& [json, error] : rows) {
    EXPECT_THAT(std::string(ParseObject(json).status().message()), HasSubstr(error)) << json;
  }
}

std::string JsonError(int code, std::string_view reason, std::string_view message) {
  return fmt::format(
      R"({{"error":{{"code":{0},"message":"{2}","errors":[{{"domain":"global","reason":"{1}","message":"{2}"}}]}}}})",
      code, reason, message);
}

TEST(GcsRefusal, OfEachStatus) {
  using Kind = http::Refusal::Kind;
  using Code = absl::StatusCode;
  const struct {
    int status;
    std::string body;
    Kind kind;
    Code code;
    std::string_view words;
  } rows[] = {
      {401, JsonError(401, "authError", "Invalid Credentials"), Kind::kFatal, Code::kPermissionDenied,
       "gs://b/o: 401 authError: 'Invalid Credentials'; name an identity that may read it"},
      {403, JsonError(403, "forbidden", "x does not have storage.objects.list access"), Kind::kFatal,
       Code::kPermissionDenied,
       "gs://b/o: 403 forbidden: 'x does not have storage.objects.list access'; grant the identity "
       "storage.objects.get and storage.objects.list"},
      {403, JsonError(403, "rateLimitExceeded", "slow"), Kind::kThrottled, Code::kUnavailable, "403 rateLimitExceeded"},
      {403, JsonError(403, "userRateLimitExceeded", "slow"), Kind::kThrottled, Code::kUnavailable, "403 userRate"},
      {429, JsonError(429, "rateLimitExceeded", "slow"), Kind::kThrottled, Code::kUnavailable, "429 rateLimitExceeded"},
      {429, "", Kind::kThrottled, Code::kUnavailable, "gs://b/o: 429"},
      {404, JsonError(404, "notFound", "The specified bucket does not exist."), Kind::kFatal, Code::kNotFound,
       "404 notFound: 'The specified bucket does not exist.'; check the names of bucket and object"},
      {404, "Not Found\n", Kind::kFatal, Code::kNotFound, "404: 'Not Found'; check"},
      {404, "<?xml version='1.0'?><Error><Code>NoSuchKey</Code><Message>gone</Message></Error>", Kind::kFatal,
       Code::kNotFound, "404 NoSuchKey: 'gone'; check"},
      {412, JsonError(412, "conditionNotMet", "precondition"), Kind::kChanged, Code::kAborted, "412 conditionNotMet"},
      {400, JsonError(400, "required", "Bucket is a requester pays bucket but no user project provided."), Kind::kFatal,
       Code::kFailedPrecondition, "name the project that pays for it in GOOGLE_CLOUD_QUOTA_PROJECT"},
      {400, "<Error><Code>UserProjectMissing</Code></Error>", Kind::kFatal, Code::kFailedPrecondition,
       "GOOGLE_CLOUD_QUOTA_PROJECT"},
      {400, "{}", Kind::kFatal, Code::kFailedPrecondition, "gs://b/o: 400"},
      {416, "", Kind::kFatal, Code::kFailedPrecondition, "416"},
      {302, "", Kind::kFatal, Code::kFailedPrecondition, "302"},
      {408, "", Kind::kTransient, Code::kUnavailable, "408"},
      {500, JsonError(500, "backendError", "Backend Error"), Kind::kTransient, Code::kUnavailable, "500 backendError"},
      {502, "<html><title>502</title></html>", Kind::kTransient, Code::kUnavailable, "gs://b/o: 502"},
      {503, "{\"error\":\"text\"}", Kind::kTransient, Code::kUnavailable, "gs://b/o: 503"},
      {403, R"({"error":{"code":403,"message":"m","status":"PERMISSION_DENIED"}})", Kind::kFatal,
       Code::kPermissionDenied, "403 PERMISSION_DENIED: 'm'"},
      {403, "a\r\nb\x1b[31m", Kind::kFatal, Code::kPermissionDenied, "403: 'a\\x0d\\x0ab\\x1b[31m'"},
      {403, JsonError(403, "no word", "m"), Kind::kFatal, Code::kPermissionDenied, "gs://b/o: 403: 'm'"},
  };
  for (const auto& row : rows) {
    const http::Refusal refusal = RefusalOfGcs({row.status, {}}, row.body, "gs://b/o", 0);
    EXPECT_EQ(refusal.kind, row.kind) << row.status << row.body;
    EXPECT_EQ(refusal.status.code(), row.code) << refusal.status;
    EXPECT_THAT(std::string(refusal.status.message()), HasSubstr(row.words));
    EXPECT_EQ(refusal.asked, std::nullopt);
  }
}

TEST(GcsRefusal, HearsHowLongToWait) {
  for (int status : {429, 500, 503}) {
    const http::Refusal refusal = RefusalOfGcs({status, {{"retry-after", "7"}}}, "", "gs://b/o", 0);
    EXPECT_EQ(refusal.asked, Duration(std::chrono::seconds(7))) << status;
  }
}

TEST(GcsRefusal, IsBounded) {
  const http::Refusal refusal = RefusalOfGcs({403, {}}, std::string(64 << 10, 'x'), "gs://b/o", 0);
  EXPECT_LT(refusal.status.message().size(), 600U);
}

TEST(GcsMedia, HeadsAreHeldAgainstWhatIsStored) {
  using Headers = std::vector<std::pair<std::string, std::string>>;
  const std::string gzip = "x-goog-stored-content-encoding";
  const std::string stored = "x-goog-stored-content-length";
  const struct {
    std::string_view what;
    int status;
    Headers headers;
    std::string problem;               // of 10 bytes of generation 7; empty: none
    std::optional<Recoding> recoding;  // of an object of 100 bytes
  } rows[] = {
      {"as it is stored",
       206,
       {{"content-length", "10"}, {"x-goog-generation", "7"}, {gzip, "identity"}, {stored, "100"}},
       "",
       {}},
      {"stored compressed",
       206,
       {{"content-length", "10"}, {"content-encoding", "gzip"}, {gzip, "gzip"}, {stored, "100"}},
       "",
       {}},
      {"a server that says less", 206, {{"content-length", "10"}}, "", {}},
      {"stored with an encoding, by a server that says less",
       206,
       {{"content-length", "10"}, {"content-encoding", "gzip"}},
       "",
       {}},
      {"another generation",
       206,
       {{"content-length", "10"}, {"x-goog-generation", "8"}},
       "generation 8 in place of 7",
       {}},
      {"decompressed by the store",
       200,
       {{gzip, "gzip"}, {stored, "100"}},
       "content length unknown in place of 10",
       Recoding::kDecoded},
      {"compressed on the way",
       200,
       {{"content-encoding", "gzip"}, {gzip, "identity"}, {stored, "100"}},
       "content encoding gzip in place of identity",
       Recoding::kEncoded},
      {"compressed twice",
       206,
       {{"content-length", "10"}, {"content-encoding", "gzip, br"}, {gzip, "gzip"}, {stored, "100"}},
       "content encoding gzip, br in place of gzip",
       Recoding::kEncoded},
      {"of an object of another size",
       200,
       {{gzip, "gzip"}, {stored, "99"}},
       "content length unknown in place of 10",
       {}},
      {"another length", 206, {{"content-length", "9"}}, "content length 9 in place of 10", {}},
      {"a login page", 200, {{"content-encoding", "gzip"}}, "content length unknown in place of 10", {}},
      {"an error", 404, {{gzip, "gzip"}, {stored, "100"}, {"content-length", "10"}}, "", {}},
  };
  for (const auto& row : rows) {
    const http::ResponseHead head{row.status, row.headers};
    EXPECT_EQ(MediaProblem(head, 10, "7").value_or(""), row.problem) << row.what;
    EXPECT_EQ(FindRecoding(head, 100), row.recoding) << row.what;
  }
}

}  // namespace
}  // namespace muster::initializers
