// SPDX-License-Identifier: Apache-2.0
// Which hash of an object's content follows from its headers. Values: by hashlib, zlib and a bitwise CRC, of "hello
// world" and of 20 MiB + 1 byte in parts of 8 MiB.
#include "initializers/aws/s3_checksums.h"

#include <gmock/gmock.h>

#include <map>

namespace muster::initializers {
namespace {

using Headers = std::map<std::string, std::string, std::less<>>;

HeaderReader ReaderOf(const Headers& headers) {
  return [&headers](std::string_view name) -> std::optional<std::string> {
    auto found = headers.find(name);
    if (found == headers.end()) return std::nullopt;
    return found->second;
  };
}

// Of "hello world", 11 bytes.
constexpr std::string_view kSha256 = "sha256:b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9";
constexpr std::string_view kSha1 = "sha1:2aae6c35c94fcfb415dbe95f408b9ce91ee846ed";
constexpr std::string_view kMd5 = "md5:5eb63bbbe01eeed093cb22bb8f5acdc3";
constexpr std::string_view kCrc64 = "crc64nvme:8d29d5c3f6ea8ebe";
constexpr std::string_view kCrc32c = "crc32c:c99465aa";
constexpr std::string_view kCrc32 = "crc32:0d4a1185";
const std::string kSha256Text = "uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=";
const std::string kSha1Text = "Kq5sNclPz7QV2+lfQIuc6R7oRu0=";
const std::string kCrc64Text = "jSnVw/bqjr4=";
const std::string kCrc32cText = "yZRlqg==";
const std::string kCrc32Text = "DUoRhQ==";
const std::string kEtag = "\"5eb63bbbe01eeed093cb22bb8f5acdc3\"";

// Of the 20 MiB + 1 byte.
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kSize = 20 * kMiB + 1;
constexpr uint64_t kPart = 8 * kMiB;
const std::string kMultipartEtag = "\"5aaea02a13fb8b36f6079493ce532e94-3\"";
constexpr std::string_view kMultipartMd5 = "md5/8388608:5aaea02a13fb8b36f6079493ce532e94";
const std::string kCompositeText = "YTjbmuo95DnQWMFZfY5Zv5WtH7nA0pEBngvNzmHqcpg=-3";
constexpr std::string_view kComposite =
    "sha256/8388608:6138db9aea3de439d058c1597d8e59bf95ad1fb9c0d291019e0bcdce61ea7298";
const std::string kCompositeCrcText = "e5H1LQ==-3";
constexpr std::string_view kCompositeCrc = "crc32/8388608:7b91f52d";

std::string Expected(const Headers& headers, std::string_view etag, uint64_t size, uint64_t part_size) {
  auto expected = ExpectationOf(ReaderOf(headers), etag, size, part_size);
  return expected ? Describe(*expected) : "none";
}

TEST(S3Checksums, OfTheWholeContent) {
  const struct {
    Headers headers;
    std::string etag;
    std::string_view expected;
  } rows[] = {
      {{{"x-amz-checksum-sha256", kSha256Text}}, kEtag, kSha256},
      {{{"x-amz-checksum-sha1", kSha1Text}}, kEtag, kSha1},
      {{{"x-amz-checksum-crc64nvme", kCrc64Text}, {"x-amz-checksum-type", "FULL_OBJECT"}}, kEtag, kCrc64},
      {{{"x-amz-checksum-crc32c", kCrc32cText}, {"x-amz-checksum-type", "full_object"}}, kEtag, kCrc32c},
      {{{"x-amz-checksum-crc32", " DUoRhQ== "}}, kEtag, kCrc32},
      {{{"x-amz-checksum-crc32", kCrc32Text}, {"x-amz-checksum-sha256", kSha256Text}}, kEtag, kSha256},
      {{{"x-amz-checksum-crc32", kCrc32Text}, {"x-amz-checksum-crc64nvme", kCrc64Text}}, kEtag, kCrc64},
      {{}, kEtag, kMd5},
      {{}, "5EB63BBBE01EEED093CB22BB8F5ACDC3", kMd5},
      {{{"x-amz-server-side-encryption", "AES256"}}, kEtag, kMd5},
      {{{"x-amz-storage-class", "GLACIER_IR"}}, kEtag, kMd5},
      {{{"server", "MinIO"}}, kEtag, kMd5},
      // ETags that are no MD5 of the content.
      {{{"x-amz-server-side-encryption", "aws:kms"}}, kEtag, "none"},
      {{{"x-amz-server-side-encryption", "aws:kms:dsse"}}, kEtag, "none"},
      {{{"x-amz-server-side-encryption-customer-algorithm", "AES256"}}, kEtag, "none"},
      {{{"x-amz-storage-class", "EXPRESS_ONEZONE"}}, kEtag, "none"},
      {{{"x-amz-server-side-encryption", "aws:kms"}, {"x-amz-checksum-crc32c", kCrc32cText}}, kEtag, kCrc32c},
      {{}, "W/" + kEtag, "none"},
      {{}, "\"65f1c0de-80000000\"", "none"},  // nginx
      {{}, "\"5eb63bbbe01eeed093cb22bb8f5acdc\"", "none"},
      {{}, "\"5eb63bbbe01eeed093cb22bb8f5acdc30\"", "none"},
      {{}, "\"5eb63bbbe01eeed093cb22bb8f5acdcg\"", "none"},
      {{}, "\"2aae6c35c94fcfb415dbe95f408b9ce91ee846ed\"", "none"},  // a SHA-1
      {{}, "", "none"},
      {{}, "\"", "none"},
      // An unusable checksum leaves the next best hash.
      {{{"x-amz-checksum-sha256", kCrc32Text}}, kEtag, kMd5},
      {{{"x-amz-checksum-sha256", "not base64"}}, kEtag, kMd5},
      {{{"x-amz-checksum-sha256", ""}}, kEtag, kMd5},
      {{{"x-amz-checksum-sha256", kSha256Text}, {"x-amz-checksum-type", "COMPOSITE"}}, kEtag, kMd5},
      {{{"x-amz-checksum-sha256", kSha256Text + "-2"}, {"x-amz-checksum-type", "FULL_OBJECT"}}, kEtag, kMd5},
      {{{"x-amz-checksum-crc32", kCrc32Text}, {"content-range", "bytes 0-10/11"}}, kEtag, kMd5},
      {{{"x-amz-checksum-crc32", kCrc32Text}, {"x-amz-mp-parts-count", "3"}}, kEtag, kMd5},
      {{{"x-amz-checksum-new", "AAAA"}}, kEtag, kMd5},
  };
  for (const auto& row : rows) {
    const std::string shown = ::testing::PrintToString(row.headers) + row.etag;
    EXPECT_EQ(Expected(row.headers, row.etag, 11, 0), row.expected) << shown;
    EXPECT_EQ(Expected(row.headers, row.etag, 11, 5), row.expected) << shown;
    EXPECT_EQ(PartsToMeasure(ReaderOf(row.headers), row.etag), 0) << shown;
  }
}

TEST(S3Checksums, ACompositeChecksumIsExpectedPerPart) {
  const Headers composite = {{"x-amz-checksum-sha256", kCompositeText}, {"x-amz-checksum-type", "COMPOSITE"}};
  const Headers untyped = {{"x-amz-checksum-sha256", kCompositeText}};
  const Headers crc = {{"x-amz-checksum-crc32", kCompositeCrcText}};
  const struct {
    Headers headers;
    std::string etag;
    uint64_t part_size;
    std::string_view expected;
  } rows[] = {
      {{}, kMultipartEtag, kPart, kMultipartMd5},
      {composite, kMultipartEtag, kPart, kComposite},
      {untyped, kMultipartEtag, kPart, kComposite},
      {crc, kMultipartEtag, kPart, kCompositeCrc},
      {{}, kMultipartEtag, 0, "none"},
      {composite, kMultipartEtag, 0, "none"},
      // Part sizes from 7 to 10 MiB give three parts.
      {{}, kMultipartEtag, 7 * kMiB, "md5/7340032:5aaea02a13fb8b36f6079493ce532e94"},
      {{}, kMultipartEtag, 10 * kMiB, "md5/10485760:5aaea02a13fb8b36f6079493ce532e94"},
      {{}, kMultipartEtag, 10 * kMiB + 1, "none"},
      {{}, kMultipartEtag, 6 * kMiB, "none"},
      {composite, kMultipartEtag, 5 * kMiB, "none"},
      {{}, kMultipartEtag, kSize, "none"},  // from servers that ignore partNumber
      {{}, kMultipartEtag, 1, "none"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Expected(row.headers, row.etag, kSize, row.part_size), row.expected) << row.part_size;
    EXPECT_EQ(PartsToMeasure(ReaderOf(row.headers), row.etag), 3);
  }
}

TEST(S3Checksums, LengthOfTheParts) {
  const struct {
    uint64_t size, parts, first, last, expected;
  } rows[] = {
      {17, 3, 6, 5, 6},
      {12, 2, 6, 6, 6},
      {11, 2, 6, 5, 6},
      {6 * 9999 + 1, 10'000, 6, 1, 6},
      // The number of parts fits a length, but the parts have other lengths.
      {17, 3, 6, 6, 0},
      {17, 3, 5, 6, 0},
      {11, 2, 5, 6, 0},
      {5 + 25 + 25, 3, 5, 25, 0},
      {25 + 5 + 5, 3, 25, 5, 0},
      {20, 4, 6, 1, 0},
      // The server's lengths make no sense.
      {17, 3, 0, 5, 0},
      {17, 3, 6, 0, 0},
      {17, 3, 17, 17, 0},
      {17, 3, 6, 18, 0},
      {17, 1, 17, 17, 0},
      {17, 0, 6, 5, 0},
      {0, 3, 6, 5, 0},
      {UINT64_MAX, 3, UINT64_MAX, UINT64_MAX, 0},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(PartSize(row.size, row.parts, row.first, row.last), row.expected)
        << row.size << ' ' << row.parts << ' ' << row.first << ' ' << row.last;
  }
}

TEST(S3Checksums, WithoutATypeOfSeveralParts) {
  // moto 5 answers a composite value without the number of parts.
  EXPECT_EQ(Expected({{"x-amz-checksum-crc32", kCrc32Text}}, kMultipartEtag, kSize, kPart), kMultipartMd5);
  EXPECT_EQ(Expected({{"x-amz-checksum-crc64nvme", kCrc64Text}}, kMultipartEtag, kSize, kPart), kCrc64);
  EXPECT_EQ(Expected({{"x-amz-checksum-crc32", kCrc32Text}, {"x-amz-checksum-type", "FULL_OBJECT"}}, kMultipartEtag,
                     kSize, kPart),
            kCrc32);
}

TEST(S3Checksums, OfOnePart) {
  const std::string etag = "\"5aaea02a13fb8b36f6079493ce532e94-1\"";
  const Headers headers = {{"x-amz-checksum-crc32", "e5H1LQ==-1"}};
  EXPECT_EQ(Expected({}, etag, 11, 0), "md5/11:5aaea02a13fb8b36f6079493ce532e94");
  EXPECT_EQ(Expected({}, etag, 11, 5), "md5/11:5aaea02a13fb8b36f6079493ce532e94");
  EXPECT_EQ(Expected(headers, etag, 11, 0), "crc32/11:7b91f52d");
  EXPECT_EQ(PartsToMeasure(ReaderOf(headers), etag), 0);
  // MinIO without strict compatibility invents such ETags.
  EXPECT_EQ(Expected({{"server", "MinIO"}}, etag, 11, 0), "none");
  EXPECT_EQ(Expected({{"server", "MinIO"}}, kMultipartEtag, kSize, kPart), kMultipartMd5);
}

TEST(S3Checksums, AnEmptyObjectHasTheHashOfNothing) {
  EXPECT_EQ(Expected({}, "\"d41d8cd98f00b204e9800998ecf8427e\"", 0, 0), "md5:d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(Expected({}, "\"59adb24ef3cdbe0297f05b395827453f-1\"", 0, 0), "none");
}

TEST(S3Checksums, OnesThatMakeNoSenseAreIgnored) {
  for (std::string parts : {"-", "-0", "--3", "-x", "-3x", "-99999999999999999999", "-+3", "- 3"}) {
    const std::string etag = "\"5aaea02a13fb8b36f6079493ce532e94" + parts + "\"";
    const Headers headers = {{"x-amz-checksum-sha256", "YTjbmuo95DnQWMFZfY5Zv5WtH7nA0pEBngvNzmHqcpg=" + parts}};
    EXPECT_EQ(Expected(headers, etag, kSize, kPart), "none") << parts;
    EXPECT_EQ(PartsToMeasure(ReaderOf(headers), etag), 0) << parts;
  }
}

// The part size is requested only if no better hash is there.
TEST(S3Checksums, ThatNeedNoPartSize) {
  const Headers full = {{"x-amz-checksum-crc64nvme", kCrc64Text}, {"x-amz-checksum-type", "FULL_OBJECT"}};
  EXPECT_EQ(PartsToMeasure(ReaderOf(full), kMultipartEtag), 0);
  EXPECT_EQ(Expected(full, kMultipartEtag, kSize, 0), kCrc64);
  const Headers kms = {{"x-amz-server-side-encryption", "aws:kms"}};
  EXPECT_EQ(PartsToMeasure(ReaderOf(kms), kMultipartEtag), 0);
  EXPECT_EQ(Expected(kms, kMultipartEtag, kSize, kPart), "none");
}

}  // namespace
}  // namespace muster::initializers
