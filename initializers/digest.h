// Content hashes: what stores publish about their objects, computed while the bytes pass, and put together from parts.
//
// Sources: FIPS 180-4 (SHA-1, SHA-256), RFC 1321 (MD5) through OpenSSL; RFC 3720 appendix B.4 (CRC-32C, reflected
// 0x82F63B78), ISO-HDLC CRC-32 as zlib's, NVMe's CRC-64 (Rocksoft, reflected 0x9A6C9329AC4BC9B5, init and final xor all
// ones); git's blob id. Values are raw bytes, big-endian for CRCs, as S3 and GCS encode them in base64.
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

// CRCs of neighbours give the CRC of both: their ranges may be hashed in any order, on any thread.
bool Combines(HashKind kind);
// The value of A followed by B. Both are raw values of a kind that combines; `length_b` in bytes.
std::string Combine(HashKind kind, std::string_view a, std::string_view b, uint64_t length_b);

// False where this machine's OpenSSL refuses it: MD5 and SHA-1 under some FIPS policies. Make must not be asked for it
// then.
bool HashAvailable(HashKind kind);

class Hasher {
 public:
  // `size`: of the whole content in bytes; only kGitBlob needs it, whose id begins with it.
  static std::unique_ptr<Hasher> Make(HashKind kind, uint64_t size);
  virtual ~Hasher() = default;
  virtual void Update(std::string_view bytes) = 0;
  // The same, of bytes whose CRC-32C is known: a hasher of that kind does not read them.
  virtual void UpdateKnown(std::string_view bytes, uint32_t) { Update(bytes); }
  virtual std::string Finish() = 0;  // the raw value; once, the last call
};

// What a store says the content's hash is. Composite: the hash of the parts' hashes, one after the other, as S3 gives
// for multipart uploads ("...-N"); each part is `part_size` long but the last.
struct Expectation {
  HashKind kind = HashKind::kSha256;
  std::string value;       // raw
  uint64_t part_size = 0;  // bytes; 0: of the whole content
  bool operator==(const Expectation&) const = default;
};

// "sha256:9f86..." or, composite with the size of its parts, "md5/8388608:ab12..."; for messages and the manifest.
std::string Describe(const Expectation& expectation);
// Nothing where this machine cannot check it: the file counts as one whose store publishes no hash.
std::optional<Expectation> Checkable(Expectation expectation);
// What Describe wrote. InvalidArgument: an unknown hash, a value of another length, a bad part size.
StatusOr<Expectation> ParseExpectation(std::string_view text);

// Raw <-> text. Hex is lower case when written, either when read. InvalidArgument names the text.
std::string ToHex(std::string_view raw);
StatusOr<std::string> FromHex(std::string_view hex);

}  // namespace muster::initializers
