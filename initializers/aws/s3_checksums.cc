// SPDX-License-Identifier: Apache-2.0
#include "initializers/aws/s3_checksums.h"

#include <vector>

#include "base/base64.h"
#include "base/text.h"

namespace muster::initializers {
namespace {

constexpr struct {
  HashKind kind;
  std::string_view header;
} kChecksums[] = {
    {HashKind::kSha256, "x-amz-checksum-sha256"},       {HashKind::kSha1, "x-amz-checksum-sha1"},
    {HashKind::kCrc64Nvme, "x-amz-checksum-crc64nvme"}, {HashKind::kCrc32c, "x-amz-checksum-crc32c"},
    {HashKind::kCrc32, "x-amz-checksum-crc32"},
};

struct Candidate {
  HashKind kind;
  std::string value;   // raw bytes
  uint64_t parts = 0;  // number of parts; 0: a hash of the whole content
};

std::string Value(const HeaderReader& headers, std::string_view name) {
  return std::string(Strip(headers(name).value_or("")));
}

// Cuts "-N" off "VALUE-N"; returns N, at least 1. 0: there is no dash (base64 and hex have none). Nullopt: a bad N.
std::optional<uint64_t> CutParts(std::string_view* value) {
  const size_t dash = value->rfind('-');
  if (dash == std::string_view::npos) return 0;
  auto parts = ParseInt(value->substr(dash + 1));
  *value = value->substr(0, dash);
  if (!parts || *parts < 1) return std::nullopt;
  return static_cast<uint64_t>(*parts);
}

std::optional<Candidate> ReadChecksum(HashKind kind, std::string_view value, std::string_view type) {
  auto parts = CutParts(&value);
  if (!parts) return std::nullopt;
  // A composite value without a number is the hash of one part.
  if (!type.empty() && (type == "COMPOSITE") != (*parts > 0)) return std::nullopt;
  auto raw = FromBase64(value);
  if (!raw.ok() || raw->size() != HashBytes(kind)) return std::nullopt;
  return Candidate{kind, *std::move(raw), *parts};
}

// True if, by the headers, the ETag is made of MD5s of the content.
bool EtagIsOfContent(const HeaderReader& headers, uint64_t parts) {
  const std::string encryption = Value(headers, "x-amz-server-side-encryption");
  if (!encryption.empty() && encryption != "AES256") return false;  // aws:kms, aws:kms:dsse, and future kinds
  if (headers("x-amz-server-side-encryption-customer-algorithm")) return false;
  if (Value(headers, "x-amz-storage-class") == "EXPRESS_ONEZONE") return false;
  // MinIO with --no-compat invents an ETag for every object, and marks it as one part.
  return parts != 1 || Lower(Value(headers, "server")).find("minio") == std::string::npos;
}

std::optional<Candidate> ReadEtag(const HeaderReader& headers, std::string_view etag) {
  etag = Strip(etag);
  if (etag.starts_with("W/") || !HashAvailable(HashKind::kMd5)) return std::nullopt;
  if (etag.size() >= 2 && etag.starts_with('"') && etag.ends_with('"')) etag = etag.substr(1, etag.size() - 2);
  auto parts = CutParts(&etag);
  if (!parts || !EtagIsOfContent(headers, *parts)) return std::nullopt;
  auto raw = FromHex(etag);
  if (!raw.ok() || raw->size() != HashBytes(HashKind::kMd5)) return std::nullopt;
  return Candidate{HashKind::kMd5, *std::move(raw), *parts};
}

bool IsMultipart(std::string_view etag) { return etag.find('-') != std::string_view::npos; }

// The candidates, the best first: hashes of the whole content, then composite hashes, then the ETag.
std::vector<Candidate> Candidates(const HeaderReader& headers, std::string_view etag) {
  std::vector<Candidate> whole, composite;
  if (!headers("content-range") && !headers("x-amz-mp-parts-count")) {
    const std::string type = Upper(Value(headers, "x-amz-checksum-type"));
    for (const auto& [kind, header] : kChecksums) {
      const std::string value = Value(headers, header);
      if (value.empty() || !HashAvailable(kind)) continue;
      if (auto found = ReadChecksum(kind, value, type)) {
        // No type, and the object was made of parts: some servers leave the number of parts out of a composite value.
        // CRC-64/NVME is never composite.
        if (type.empty() && found->parts == 0 && IsMultipart(etag) && kind != HashKind::kCrc64Nvme) continue;
        (found->parts == 0 ? whole : composite).push_back(*std::move(found));
      }
    }
  }
  whole.insert(whole.end(), composite.begin(), composite.end());
  if (auto found = ReadEtag(headers, etag)) whole.push_back(*std::move(found));
  return whole;
}

}  // namespace

std::optional<Expectation> ExpectationOf(const HeaderReader& headers, std::string_view etag, uint64_t size,
                                         uint64_t part_size) {
  for (Candidate& candidate : Candidates(headers, etag)) {
    if (candidate.parts == 0) return Expectation{candidate.kind, std::move(candidate.value), 0};
    const uint64_t length = candidate.parts == 1 ? size : part_size;
    if (length == 0 || size == 0) continue;
    const uint64_t expected_parts = size / length + (size % length != 0 ? 1 : 0);
    if (expected_parts == candidate.parts) return Expectation{candidate.kind, std::move(candidate.value), length};
  }
  return std::nullopt;
}

uint64_t PartsToMeasure(const HeaderReader& headers, std::string_view etag) {
  const auto candidates = Candidates(headers, etag);
  return candidates.empty() || candidates.front().parts <= 1 ? 0 : candidates.front().parts;
}

uint64_t PartSize(uint64_t size, uint64_t parts, uint64_t first, uint64_t last) {
  if (parts < 2 || first == 0 || last == 0 || last > first || last > size) return 0;
  const uint64_t others = size - last;
  return others % (parts - 1) == 0 && others / (parts - 1) == first ? first : 0;
}

}  // namespace muster::initializers
