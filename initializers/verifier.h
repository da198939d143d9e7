// Whether a file's bytes are what the store has: hashes of its pieces as they pass, held against an Expectation.
//
// A file is cut into pieces that can be hashed apart: for a composite hash each part is a piece, for every other one
// the file is. Of a CRC, a piece may come in any ranges in any order; of another hash, its bytes must pass one Hasher
// in order. Whoever moves bytes cuts its ranges so that none crosses a piece's border (PieceSize).
//
// A Verifier is not thread-safe and hashes nothing itself: ranges of one file can be hashed by several threads, each
// with a Hasher of its own (digest.h), and only their values come here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "initializers/digest.h"

namespace muster::initializers {

class Verifier {
 public:
  // `size`: of the file in bytes. Without an expectation the hash is only taken down, for the manifest, as kCrc32c.
  Verifier(uint64_t size, std::optional<Expectation> expected);

  HashKind kind() const;
  // Bytes of a piece, but the last; the whole file where it is one piece.
  uint64_t PieceSize() const;
  // Ranges within a piece may be hashed apart: it is a CRC.
  bool AnyRange() const { return Combines(kind()); }

  // The hash of bytes [offset, offset + length): of a whole piece, or of a range within one where AnyRange().
  // Overlapping or repeated ranges are the caller's fault; the file is then not complete, or the values differ.
  void Add(uint64_t offset, uint64_t length, std::string value);

  bool complete() const;  // every byte has been added; an empty file is at once
  // The file's value once complete: raw; composite where the expectation is.
  std::string Value() const;
  // What is wrong, naming expected and got ("...: expected md5:ab.., got md5:cd.."); nothing: it is right, or nothing
  // was expected. Once complete; before that, it says what is missing.
  std::optional<std::string> Mismatch() const;

 private:
  struct Range {
    uint64_t offset;
    uint64_t length;
    std::string value;
    uint64_t end() const { return offset + length; }
  };
  bool OnePiece(const Range& a, const Range& b) const;
  void JoinWithNext(size_t at);

  const uint64_t size_;
  const std::optional<Expectation> expected_;
  uint64_t added_ = 0;
  std::vector<Range> ranges_;  // by offset; neighbours within a piece are joined
};

}  // namespace muster::initializers
