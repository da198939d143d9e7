// SPDX-License-Identifier: Apache-2.0
#include "initializers/facts/digest.h"

#include <openssl/evp.h>

#include <array>
#include <cstdlib>

#include "base/quoted.h"
#include "base/text.h"
#include "http/percent.h"
#include "initializers/facts/crc.h"

namespace muster::initializers {
namespace {

struct HashFacts {
  HashKind kind;
  std::string_view name;
  size_t bytes;
};
constexpr HashFacts kHashes[] = {
    {HashKind::kSha256, "sha256", 32},      {HashKind::kSha1, "sha1", 20},
    {HashKind::kGitBlob, "git-blob", 20},   {HashKind::kMd5, "md5", 16},
    {HashKind::kCrc32, "crc32", 4},         {HashKind::kCrc32c, "crc32c", 4},
    {HashKind::kCrc64Nvme, "crc64nvme", 8},
};

constexpr const HashFacts& Facts(HashKind kind) {
  const HashFacts& facts = kHashes[static_cast<size_t>(kind)];
  if (facts.kind != kind) std::abort();  // the table must have the order of the enum
  return facts;
}

template <typename Word>
std::string BigEndian(Word value) {
  std::string raw(sizeof(value), '\0');
  for (size_t i = raw.size(); i-- > 0; value >>= 8) raw[i] = static_cast<char>(value & 0xff);
  return raw;
}

uint64_t Number(std::string_view raw) {
  uint64_t value = 0;
  for (unsigned char byte : raw) value = value << 8 | byte;
  return value;
}

template <typename Word, Word (*update)(Word, std::string_view)>
class CrcHasher : public Hasher {
 public:
  void Update(std::string_view bytes) override { crc_ = update(crc_, bytes); }
  std::string Finish() override { return BigEndian(crc_); }

 protected:
  Word crc_ = 0;
};

class Crc32cHasher final : public CrcHasher<uint32_t, Crc32c> {
 public:
  void UpdateKnown(std::string_view bytes, uint32_t crc32c) override {
    crc_ = CombineCrc32c(crc_, crc32c, bytes.size());
  }
};

const EVP_MD* OpenSslHash(HashKind kind) {
  switch (kind) {
    case HashKind::kSha256:
      return EVP_sha256();
    case HashKind::kSha1:
    case HashKind::kGitBlob:
      return EVP_sha1();
    case HashKind::kMd5:
      return EVP_md5();
    case HashKind::kCrc32:
    case HashKind::kCrc32c:
    case HashKind::kCrc64Nvme:
      break;
  }
  return nullptr;
}

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

Context Begin(HashKind kind) {
  Context context(EVP_MD_CTX_new());
  if (!context || EVP_DigestInit_ex(context.get(), OpenSslHash(kind), nullptr) != 1) return nullptr;
  return context;
}

class OpenSslHasher : public Hasher {
 public:
  explicit OpenSslHasher(HashKind kind) : context_(Begin(kind)) {
    if (!context_) std::abort();  // the caller must ask HashAvailable first
  }
  void Update(std::string_view bytes) override {
    if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) std::abort();
  }
  std::string Finish() override {
    std::array<unsigned char, EVP_MAX_MD_SIZE> raw;
    unsigned size = 0;
    if (EVP_DigestFinal_ex(context_.get(), raw.data(), &size) != 1) std::abort();
    return {reinterpret_cast<const char*>(raw.data()), size};
  }

 private:
  const Context context_;
};

Status Bad(std::string_view text, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{} {}", Quoted(text), what));
}

}  // namespace

std::string_view HashName(HashKind kind) { return Facts(kind).name; }

std::optional<HashKind> FindHash(std::string_view name) {
  for (const HashFacts& facts : kHashes) {
    if (facts.name == name) return facts.kind;
  }
  return std::nullopt;
}

size_t HashBytes(HashKind kind) { return Facts(kind).bytes; }

bool Combines(HashKind kind) {
  return kind == HashKind::kCrc32 || kind == HashKind::kCrc32c || kind == HashKind::kCrc64Nvme;
}

std::string Combine(HashKind kind, std::string_view a, std::string_view b, uint64_t length_b) {
  const auto first = Number(a);
  const auto second = Number(b);
  if (kind == HashKind::kCrc64Nvme) return BigEndian(CombineCrc64Nvme(first, second, length_b));
  const auto combine = kind == HashKind::kCrc32 ? CombineCrc32 : CombineCrc32c;
  return BigEndian(combine(static_cast<uint32_t>(first), static_cast<uint32_t>(second), length_b));
}

bool HashAvailable(HashKind kind) { return Combines(kind) || Begin(kind) != nullptr; }

std::unique_ptr<Hasher> Hasher::Make(HashKind kind, uint64_t size) {
  switch (kind) {
    case HashKind::kCrc32:
      return std::make_unique<CrcHasher<uint32_t, Crc32>>();
    case HashKind::kCrc32c:
      return std::make_unique<Crc32cHasher>();
    case HashKind::kCrc64Nvme:
      return std::make_unique<CrcHasher<uint64_t, Crc64Nvme>>();
    case HashKind::kSha256:
    case HashKind::kSha1:
    case HashKind::kGitBlob:
    case HashKind::kMd5:
      break;
  }
  auto hasher = std::make_unique<OpenSslHasher>(kind);
  if (kind == HashKind::kGitBlob) hasher->Update(fmt::format("blob {}", size) + '\0');
  return hasher;
}

std::string Describe(const Expectation& expectation) {
  const std::string part = expectation.part_size == 0 ? "" : fmt::format("/{}", expectation.part_size);
  return fmt::format("{}{}:{}", HashName(expectation.kind), part, ToHex(expectation.value));
}

std::optional<Expectation> Checkable(Expectation expectation) {
  return HashAvailable(expectation.kind) ? std::optional(std::move(expectation)) : std::nullopt;
}

StatusOr<Expectation> ParseExpectation(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return Bad(text, "is not a hash: it is written NAME:HEX");
  std::string_view name = text.substr(0, colon);
  Expectation expectation;
  if (const size_t slash = name.find('/'); slash != std::string_view::npos) {
    auto part_size = ParseInt(name.substr(slash + 1));
    if (!part_size || *part_size <= 0) return Bad(text, "is not a hash: after the / comes the size of a part in bytes");
    expectation.part_size = static_cast<uint64_t>(*part_size);
    name = name.substr(0, slash);
  }
  const auto kind = FindHash(name);
  if (!kind) {
    return Bad(text, "is of an unknown hash; known: sha256, sha1, git-blob, md5, crc32, crc32c, crc64nvme");
  }
  if (*kind == HashKind::kGitBlob && expectation.part_size != 0)
    return Bad(text, "is not a hash: git's ids have no parts");
  expectation.kind = *kind;
  MUSTER_ASSIGN_OR_RETURN(expectation.value, FromHex(text.substr(colon + 1)));
  if (expectation.value.size() != HashBytes(*kind)) {
    return Bad(text, fmt::format("is not a hash: {} has {} hex digits", name, 2 * HashBytes(*kind)));
  }
  return expectation;
}

std::string ToHex(std::string_view raw) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * raw.size());
  for (unsigned char byte : raw) {
    hex += kHex[byte >> 4];
    hex += kHex[byte & 15];
  }
  return hex;
}

StatusOr<std::string> FromHex(std::string_view hex) {
  if (hex.size() % 2 != 0) return Bad(hex, "is not hex: it has an odd number of digits");
  std::string raw;
  raw.reserve(hex.size() / 2);
  for (size_t i = 0; i < hex.size(); i += 2) {
    const auto high = http::HexDigit(hex[i]);
    const auto low = http::HexDigit(hex[i + 1]);
    if (!high || !low) return Bad(hex, "is not hex: its digits are 0-9 and a-f");
    raw += static_cast<char>(*high << 4 | *low);
  }
  return raw;
}

}  // namespace muster::initializers
