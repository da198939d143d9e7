// SPDX-License-Identifier: Apache-2.0
#include "initializers/stores/web_file.h"
#include "initializers/stores/answer_checks.h"

#include <gtest/gtest.h>

namespace muster::initializers {
namespace {

TEST(DigestHeader, TheBestThatIsKnown) {
  const std::string sha = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
  const std::string md5 = "1B2M2Y8AsgTpgAmY7PhCfg==";
  const struct {
    std::string header;
    std::string expected;
  } rows[] = {
      {"sha-256=:" + sha + ":", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"md5=:" + md5 + ":, sha-256=:" + sha + ":",
       "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"md5=:" + md5 + ":", "md5:d41d8cd98f00b204e9800998ecf8427e"},
      {"sha-512=:abcd:", "none"},
      {"sha-256=" + sha, "none"},
      {"sha-256=:" + md5 + ":", "none"},  // wrong length
      {"xsha-256=:" + sha + ":", "none"},
      {"sha-256=:", "none"},
      {"", "none"},
  };
  for (const auto& row : rows) {
    auto expected = ParseDigestHeader(row.header);
    EXPECT_EQ(expected ? Describe(*expected) : "none", row.expected) << row.header;
  }
}

TEST(PageInstead, APageInPlaceOfAFileIsRecognized) {
  const struct {
    std::string type, path;
    bool instead;
    bool unnamed = false;
  } rows[] = {
      {"text/html", "https://h/a/model.safetensors", true},
      {"Text/HTML ;charset=x", "/m.bin", true},
      {"application/xhtml+xml", "/m.bin", true},
      {"text/html", "/m.tar.gz", true},
      {"text/html", "/page.html", false},
      {"text/html", "/page.HTM", false},
      {"text/html", "/page.xhtml", false},
      {"text/html", "https://h.example/v1.2/README", false},
      {"text/html", "https://h.example/v1.2/README", true, true},
      {"text/html", "/page.html", false, true},
      {"text/plain", "/README", false, true},
      {"text/htmlx", "/m.bin", false},
      {"application/octet-stream", "/m.bin", false},
      {"", "/m.bin", false},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(IsPageInstead({.status = 200, .headers = {{"content-type", row.type}}}, row.path, row.unnamed),
              row.instead)
        << row.type << row.path;
  }
  EXPECT_FALSE(IsPageInstead({.status = 200}, "/m.bin", true));
}

TEST(RangeProblem, AnAnswerThatIsNotTheRangeIsRefused) {
  using Headers = std::vector<std::pair<std::string, std::string>>;
  const struct {
    int status;
    Headers headers;
    ByteRange range;
    bool good;
  } rows[] = {
      {206, {{"content-range", "bytes 10-19/100"}}, {10, 10}, true},
      {206, {{"content-range", "bytes 10-19/*"}}, {10, 10}, true},
      {206, {{"content-range", "bytes 0-99/100"}}, {0, 100}, true},
      {200, {{"content-length", "100"}}, {0, 100}, true},
      {200, {}, {0, 100}, true},                                       // chunked: its end is marked
      {206, {{"content-range", "bytes 10-18/100"}}, {10, 10}, false},  // too short
      {206, {{"content-range", "bytes 11-20/100"}}, {10, 10}, false},  // another range
      {206, {{"content-range", "bytes 10-19/101"}}, {10, 10}, false},  // of another file
      {206, {}, {10, 10}, false},
      {200, {{"content-length", "100"}}, {10, 10}, false},  // the whole file
      {200, {{"content-length", "99"}}, {0, 100}, false},   // such as a login page
      {200, {{"content-encoding", "gzip"}}, {0, 100}, false},
      {204, {}, {0, 100}, false},
      {404, {}, {0, 100}, false},
  };
  for (const auto& row : rows) {
    http::ResponseHead head{row.status, row.headers};
    EXPECT_EQ(!RangeProblem(head, row.range, 100), row.good)
        << row.status << " " << (row.headers.empty() ? "" : row.headers[0].second);
  }
}

TEST(IsOtherVersion, ComparesEtagsAndDates) {
  const struct {
    const char *said, *version;
    bool other;
  } rows[] = {
      {"\"a\"", "\"a\"", false},   {"\"b\"", "\"a\"", true},
      {"W/\"a\"", "\"a\"", false},  // compressed on the way, maybe
      {"\"a\"", "W/\"a\"", false}, {"W/\"b\"", "\"a\"", true},
      {"a", "\"a\"", false},  // some servers leave out the quotes
      {"\"a-2\"", "\"a\"", true},  {"", "\"a\"", true},
      {"\"a\"", "", false},  // no version is known
  };
  for (const auto& row : rows) {
    EXPECT_EQ(IsOtherVersion({.status = 206, .headers = {{"etag", row.said}}}, "etag", row.version), row.other)
        << row.said << " " << row.version;
  }
  EXPECT_FALSE(IsOtherVersion({.status = 206}, "etag", "\"a\""));
  const http::ResponseHead dated{.status = 206, .headers = {{"last-modified", "Sun, 22 Nov 2026 01:02:03 GMT"}}};
  EXPECT_FALSE(IsOtherVersion(dated, "last-modified", "Sun, 22 Nov 2026 01:02:03 GMT"));
  EXPECT_TRUE(IsOtherVersion(dated, "last-modified", "Sun, 22 Nov 2026 01:02:04 GMT"));
}

}  // namespace
}  // namespace muster::initializers
