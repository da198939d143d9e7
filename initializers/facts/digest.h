// SPDX-License-Identifier: Apache-2.0
// The content hashes that stores publish, computed while the bytes pass; some can be combined from hashes of parts.
//
// Sources: FIPS 180-4 (SHA-1, SHA-256) and RFC 1321 (MD5), through OpenSSL; RFC 3720 appendix B.4 (CRC-32C, reflected
// 0x82F63B78); ISO-HDLC CRC-32 as in zlib; CRC-64/NVME (Rocksoft, reflected 0x9A6C9329AC4BC9B5, init and final xor all
// ones); git's blob id. Values are raw bytes, big-endian for CRCs: S3 and GCS encode these bytes in base64.
//
// A Hasher belongs to one thread at a time; the functions have no state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::initializers {

enum class HashKind { kSha256, kSha1, kGitBlob, kMd5, kCrc32, kCrc32c, kCrc64Nvme };

std::string_view HashName(HashKind kind);  // "sha256" ..., as the manifest writes it
std::optional<HashKind> FindHash(std::string_view name);
size_t HashBytes(HashKind kind);  // length of its raw value

// True for CRCs: Combine works, so that ranges may be hashed in any order, on any thread.
bool Combines(HashKind kind);
// The value of A followed by B. Both are raw values of a kind for which Combines() is true; `length_b` in bytes.
std::string Combine(HashKind kind, std::string_view a, std::string_view b, uint64_t length_b);

// False if this machine's OpenSSL refuses it (MD5, SHA-1 under some FIPS policies). Then Make must not be called.
bool HashAvailable(HashKind kind);

class Hasher {
 public:
  // `size`: of the whole content in bytes; only kGitBlob needs it, because the size is part of the hashed text.
  static std::unique_ptr<Hasher> Make(HashKind kind, uint64_t size);
  virtual ~Hasher() = default;
  virtual void Update(std::string_view bytes) = 0;
  // As Update, for bytes with a known CRC-32C: a CRC-32C hasher combines the values and does not read the bytes.
  virtual void UpdateKnown(std::string_view bytes, uint32_t) { Update(bytes); }
  virtual std::string Finish() = 0;  // the raw value; call it once, as the last call
};

// The hash of the content that a store publishes. Composite: the hash of the concatenated hashes of the parts, as S3
// has it for multipart uploads ("...-N"). Each part but the last is `part_size` long.
struct Expectation {
  HashKind kind = HashKind::kSha256;
  std::string value;       // raw
  uint64_t part_size = 0;  // bytes; 0: of the whole content
  bool operator==(const Expectation&) const = default;
};

// "sha256:9f86..."; a composite hash has the size of its parts: "md5/8388608:ab12...". For messages and the manifest.
std::string Describe(const Expectation& expectation);
// Nullopt if this machine cannot check it (HashAvailable): the file then counts as one without a published hash.
std::optional<Expectation> Checkable(Expectation expectation);
// Parses the text of Describe. InvalidArgument: an unknown hash, a value of another length, a bad part size.
StatusOr<Expectation> ParseExpectation(std::string_view text);

// Raw bytes <-> hex. ToHex writes lower case; FromHex reads either case. InvalidArgument names the text.
std::string ToHex(std::string_view raw);
StatusOr<std::string> FromHex(std::string_view hex);

}  // namespace muster::initializers
