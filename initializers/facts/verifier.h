// SPDX-License-Identifier: Apache-2.0
// Checks a file's bytes against the store's hash: compares the hashes of its pieces with an Expectation.
//
// A file is cut into pieces that can be hashed separately: the parts of a composite hash; for any other hash the file
// is one piece. For a CRC a piece may come in any ranges, in any order; else its bytes must pass one Hasher in order.
// The caller cuts its ranges so that none crosses the border of a piece (PieceSize).
//
// A Verifier is not thread-safe and does not hash: several threads can hash ranges of one file, each with its own
// Hasher (digest.h), and pass only the values here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "initializers/facts/digest.h"

namespace muster::initializers {

class Verifier {
 public:
  // `size`: of the file in bytes. Without an expectation it computes kCrc32c, for the manifest only.
  Verifier(uint64_t size, std::optional<Expectation> expected);

  HashKind kind() const;
  // Bytes of each piece but the last; the size of the file if it is one piece.
  uint64_t PieceSize() const;
  // True for a CRC: ranges within a piece may be hashed separately.
  bool AnyRange() const { return Combines(kind()); }

  // Adds the hash of bytes [offset, offset + length): a whole piece, or, with AnyRange(), a range within one. The
  // caller must not add overlapping or repeated ranges: then the file never becomes complete, or the values differ.
  void Add(uint64_t offset, uint64_t length, std::string value);

  bool complete() const;  // every byte was added; true at once for an empty file
  // The raw value of the file; composite if the expectation is. Call it when complete.
  std::string Value() const;
  // The mismatch, with the expected and the computed hash ("...: expected md5:ab.., got md5:cd.."). Nullopt: the hash
  // is right, or none was expected. Before complete() it says what is missing.
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
  std::vector<Range> ranges_;  // sorted by offset; neighbours within a piece are joined
};

}  // namespace muster::initializers
