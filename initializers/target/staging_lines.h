// SPDX-License-Identifier: Apache-2.0
// Lines of the staging folder's journal (staging.h): which ranges of a file are written, and the hashes of whole files.
// Each line ends with its own CRC, because a kill, a full disk or a power loss may cut lines or lose them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "initializers/facts/provider.h"

namespace muster::initializers {

inline constexpr std::string_view kPart = ".part";      // NAME.part
inline constexpr std::string_view kRanges = ".ranges";  // NAME.ranges

struct StagedRange {
  ByteRange range;
  uint32_t crc32c = 0;  // of its bytes
  bool operator==(const StagedRange&) const = default;
};

// Lines of NAME.ranges. Reading stops at the first damaged line; overlapping ranges are dropped.
std::string WriteRangeLine(const StagedRange& staged);
std::vector<StagedRange> ReadRangeLines(std::string_view text, uint64_t size);

// What is known about the bytes of a NAME.
struct StagedHash {
  std::string hash;       // text of Describe; empty: none was computed
  bool verified = false;  // the source published that hash
  bool operator==(const StagedHash&) const = default;
};

// A line of .hashes.
std::string WriteHashLine(std::string_view name, const StagedHash& hash);

// Reads .hashes in pieces that may be cut anywhere. Each line is independent: a damaged or too long one is skipped. The
// last line of a name counts. Memory: the wanted names and one line.
class HashLines {
 public:
  explicit HashLines(std::function<bool(const std::string& name)> wanted) : wanted_(std::move(wanted)) {}

  void Add(std::string_view piece);
  bool cut() const { return cut_; }  // the last piece ended within a line
  std::unordered_map<std::string, StagedHash> End() &&;

 private:
  void Line();  // parses line_ and clears it

  const std::function<bool(const std::string&)> wanted_;
  std::unordered_map<std::string, StagedHash> hashes_;
  std::string line_;
  bool cut_ = false;
};

}  // namespace muster::initializers
