// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/staging_lines.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "initializers/facts/crc.h"

namespace muster::initializers {
namespace {

constexpr size_t kLongestLine = 4096;  // of .hashes; Muster's are shorter

}  // namespace

std::string WriteRangeLine(const StagedRange& staged) {
  std::string line = fmt::format("{} {} {:08x}", staged.range.offset, staged.range.length, staged.crc32c);
  return fmt::format("{} {:08x}\n", line, Crc32c(0, line));
}

std::vector<StagedRange> ReadRangeLines(std::string_view text, uint64_t size) {
  std::vector<StagedRange> ranges;
  while (true) {
    size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    uint64_t numbers[2] = {};
    uint32_t hashes[2] = {};
    const char* at = line.data();
    const char* const stop = line.data() + line.size();
    auto number = [&](auto& value, int base) {
      auto [next, error] = std::from_chars(at, stop, value, base);
      const bool good = error == std::errc() && (next == stop || *next == ' ');
      at = next == stop ? next : next + 1;
      return good;
    };
    if (!number(numbers[0], 10) || !number(numbers[1], 10) || !number(hashes[0], 16)) break;
    const size_t said = line.size() < 9 ? 0 : line.size() - 9;
    if (!number(hashes[1], 16) || at != stop || Crc32c(0, line.substr(0, said)) != hashes[1]) break;
    const ByteRange range{numbers[0], numbers[1]};
    if (range.length == 0 || range.offset > size || range.length > size - range.offset) break;
    ranges.push_back({range, hashes[0]});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const StagedRange& a, const StagedRange& b) { return a.range.offset < b.range.offset; });
  uint64_t end = 0;
  std::erase_if(ranges, [&end](const StagedRange& staged) {
    if (staged.range.offset < end) return true;
    end = staged.range.end();
    return false;
  });
  return ranges;
}

std::string WriteHashLine(std::string_view name, const StagedHash& hash) {
  std::string line = fmt::format("{} {} {}", name, hash.hash, hash.verified ? "verified" : "ours");
  return fmt::format("{} {:08x}\n", line, Crc32c(0, line));
}

void HashLines::Add(std::string_view piece) {
  if (!piece.empty()) cut_ = piece.back() != '\n';
  while (!piece.empty()) {
    const size_t end = std::min(piece.find('\n'), piece.size());
    line_ += piece.substr(0, std::min(end, kLongestLine + 1 - std::min(line_.size(), kLongestLine + 1)));
    if (end == piece.size()) return;
    Line();
    piece.remove_prefix(end + 1);
  }
}

void HashLines::Line() {
  constexpr size_t kCheck = 9;  // a blank and the CRC of the line
  const std::string line = std::exchange(line_, {});
  if (line.size() <= kCheck || line.size() > kLongestLine) return;
  const std::string_view said = std::string_view(line).substr(0, line.size() - kCheck);
  if (line.substr(said.size()) != fmt::format(" {:08x}", Crc32c(0, said))) return;
  const auto words = Split(said, ' ');
  if (words.size() != 3) return;
  std::string name(words[0]);
  if (wanted_(name))
    hashes_.insert_or_assign(std::move(name), StagedHash{std::string(words[1]), words[2] == "verified"});
}

std::unordered_map<std::string, StagedHash> HashLines::End() && {
  Line();
  return std::move(hashes_);
}

}  // namespace muster::initializers
