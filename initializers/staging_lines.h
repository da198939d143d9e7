// Lines of the staging folder's journal (staging.h): what of a file is there, and what is known of the whole ones. Each
// line ends with its own CRC: a kill, a full disk or lost power leaves lines that are cut, or none. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "initializers/provider.h"

namespace muster::initializers {

inline constexpr std::string_view kPart = ".part";      // NAME.part
inline constexpr std::string_view kRanges = ".ranges";  // NAME.ranges

struct StagedRange {
  ByteRange range;
  uint32_t crc32c = 0;  // of its bytes
  bool operator==(const StagedRange&) const = default;
};

// Lines of NAME.ranges. Reading stops at the first one that is not whole; overlapping ranges are dropped.
std::string WriteRangeLine(const StagedRange& staged);
std::vector<StagedRange> ReadRangeLines(std::string_view text, uint64_t size);

// What is known of the bytes of a NAME.
struct StagedHash {
  std::string hash;       // Describe()d; empty: none was taken
  bool verified = false;  // the source published it
  bool operator==(const StagedHash&) const = default;
};

// A line of .hashes.
std::string WriteHashLine(std::string_view name, const StagedHash& hash);

// Reads .hashes in pieces, cut anywhere. Each line stands for itself: one that is not whole, or longer than any of
// ours, is left out; the last of a name counts. Keeps the names that are wanted, and never more than a line beside
// them.
class HashLines {
 public:
  explicit HashLines(std::function<bool(const std::string& name)> wanted) : wanted_(std::move(wanted)) {}

  void Add(std::string_view piece);
  bool cut() const { return cut_; }  // what was added ends within a line
  std::unordered_map<std::string, StagedHash> End() &&;

 private:
  void Line();  // line_, and empties it

  const std::function<bool(const std::string&)> wanted_;
  std::unordered_map<std::string, StagedHash> hashes_;
  std::string line_;
  bool cut_ = false;
};

}  // namespace muster::initializers
