// SPDX-License-Identifier: Apache-2.0
#include "initializers/facts/entry_path.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "base/quoted.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster::initializers {
namespace {

constexpr size_t kPieceBytes = size_t{256} << 10;  // bytes of names in a piece
constexpr size_t kUnit = 8;                        // bytes; names begin at multiples of it
constexpr size_t kNameHead = 6;                    // bytes before the text of a name

// What is wrong with a path element; nullptr: nothing.
const char* Fault(std::string_view element) {
  if (element.empty()) return "has an empty element (a '/' at its start, or two in a row)";
  if (element == "." || element == "..") return "has an element '.' or '..'";
  if (element.size() > kLongestPathElement) return "has an element beyond 255 bytes, more than file systems take";
  return nullptr;
}

const char* FaultOfPath(std::string_view path) {
  if (path.empty()) return "is empty";
  if (path.size() > kLongestPath) return "is longer than 3072 bytes";
  if (path.find('\0') != std::string_view::npos) return "contains a NUL";
  if (!IsUtf8(path)) return "is not UTF-8";
  if (path.ends_with('/')) path.remove_suffix(1);
  if (path.substr(0, path.find('/')) == kOwnFolder) return "is in .muster, which is Muster's own";
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('/', start), path.size());
    if (const char* fault = Fault(path.substr(start, end - start))) return fault;
    start = end + 1;
  }
  return nullptr;
}

// A character and its length. A byte that is not UTF-8 is a character of its own, as with Python's surrogateescape.
struct Step {
  uint32_t code;
  size_t size;
};
Step Next(std::string_view text) {
  const Utf8Character character = FirstCharacter(text);
  if (character.valid) return {character.code, character.size};
  return {0xDC00u + static_cast<unsigned char>(text[0]), 1};
}

// The position of the ']' that closes the set at the start of `pattern`; npos: none, '[' is an ordinary character.
size_t SetEnd(std::string_view pattern) {
  size_t at = 1;
  if (pattern.substr(at).starts_with('!')) ++at;
  if (pattern.substr(at).starts_with(']')) ++at;  // a ']' at this place is a member of the set
  return pattern.find(']', at);
}

// True if `code` is in the set "[...]", or is not in the set "[!...]".
bool InSet(std::string_view set, uint32_t code) {
  set = set.substr(1, set.size() - 2);
  const bool inverted = set.starts_with('!');
  if (inverted) set.remove_prefix(1);
  while (!set.empty()) {
    const Step low = Next(set);
    set.remove_prefix(low.size);
    uint32_t high = low.code;
    if (set.size() > 1 && set[0] == '-') {
      const Step end = Next(set.substr(1));
      high = end.code;
      set.remove_prefix(1 + end.size);
    }
    if (low.code <= code && code <= high) return !inverted;
  }
  return inverted;
}

// Whether the first element of the pattern (not a star) matches the first character of `path`, and the lengths of both.
struct Match {
  bool matches;
  size_t pattern, path;
};
Match MatchOne(std::string_view pattern, std::string_view path) {
  const Step character = Next(path);
  if (pattern[0] == '?') return {true, 1, character.size};
  if (pattern[0] == '[') {
    if (const size_t end = SetEnd(pattern); end != std::string_view::npos) {
      return {InSet(pattern.substr(0, end + 1), character.code), end + 1, character.size};
    }
  }
  const Step literal = Next(pattern);
  return {literal.code == character.code, literal.size, character.size};
}

bool MatchesWhole(std::string_view pattern, std::string_view path) {
  // Where to continue if the part after the last star does not match: the star takes one character more.
  std::string_view after_star, path_at_star;
  bool star = false;
  while (!path.empty()) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      star = true;
      after_star = pattern;
      path_at_star = path;
      continue;
    }
    if (!pattern.empty()) {
      const Match match = MatchOne(pattern, path);
      if (match.matches) {
        pattern.remove_prefix(match.pattern);
        path.remove_prefix(match.path);
        continue;
      }
    }
    if (!star) return false;
    path_at_star.remove_prefix(Next(path_at_star).size);
    pattern = after_star;
    path = path_at_star;
  }
  return pattern.find_first_not_of('*') == std::string_view::npos;
}

// True if `pattern` matches some text that begins with `start`: a star at this point can match any rest.
bool MatchesSomeAfter(std::string_view pattern, std::string_view start) {
  while (!start.empty()) {
    if (pattern.empty()) return false;
    if (pattern.starts_with('*')) return true;
    const Match match = MatchOne(pattern, start);
    if (!match.matches) return false;
    pattern.remove_prefix(match.pattern);
    start.remove_prefix(match.path);
  }
  return true;
}

}  // namespace

Status CheckEntryPath(std::string_view path) {
  const char* fault = FaultOfPath(path);
  if (fault == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "the object {} cannot be a file below the target: its name {}; rename it, or leave it out with --ignore",
      Quoted(path), fault));
}

Status EntryPaths::Add(std::string_view path) {
  const bool ends_as_folder = path.ends_with('/');
  const std::string_view whole = ends_as_folder ? path.substr(0, path.size() - 1) : path;
  Id folder = 0;  // the target itself
  for (size_t start = 0; start <= whole.size();) {
    const size_t end = std::min(whole.find('/', start), whole.size());
    const bool is_folder = end < whole.size() || ends_as_folder;
    if (2 * (count_ + 1) > table_.size()) Grow();
    const std::string_view text = whole.substr(start, end - start);
    const size_t place = PlaceOf(folder, text);
    Id id = Id{table_[place]} * kUnit;
    if (id == 0) {
      id = Append({folder, is_folder, text});
      if (id / kUnit > UINT32_MAX) return absl::ResourceExhaustedError("the names of the list take more than 32 GiB");
      table_[place] = static_cast<uint32_t>(id / kUnit);
      ++count_;
    } else if (const Name there = At(id); !is_folder || !there.is_folder) {
      std::string other(whole.substr(0, end));
      if (there.is_folder) other = PathBelow(id, std::move(other));
      const bool same = other == path;
      return absl::AlreadyExistsError(fmt::format(
          "the objects {} and {} cannot both be below the target: {}; leave one out with --ignore", Quoted(other),
          Quoted(path), same ? "they have the same name" : "one is a file where the other needs a folder"));
    }
    folder = id;
    start = end + 1;
  }
  return absl::OkStatus();
}

// The layout of a name: the position of its folder in units, whether it is a folder, its length, its bytes.
EntryPaths::Name EntryPaths::At(Id id) const {
  const char* from = pieces_[id / kPieceBytes].get() + id % kPieceBytes;
  uint32_t folder = 0;
  std::memcpy(&folder, from, sizeof folder);
  const auto length = static_cast<unsigned char>(from[5]);
  return {Id{folder} * kUnit, from[4] != 0, std::string_view(from + kNameHead, length)};
}

EntryPaths::Id EntryPaths::Append(const Name& name) {
  const size_t bytes = (kNameHead + name.text.size() + kUnit - 1) / kUnit * kUnit;
  if (pieces_.empty() || used_ + bytes > kPieceBytes) {
    pieces_.push_back(std::make_unique<char[]>(kPieceBytes));
    used_ = pieces_.size() == 1 ? kUnit : 0;  // position 0 is the target itself
  }
  const Id id = (pieces_.size() - 1) * kPieceBytes + used_;
  char* to = pieces_.back().get() + used_;
  const auto folder = static_cast<uint32_t>(name.folder / kUnit);
  std::memcpy(to, &folder, sizeof folder);
  to[4] = name.is_folder ? 1 : 0;
  to[5] = static_cast<char>(name.text.size());  // at most kLongestPathElement
  std::memcpy(to + kNameHead, name.text.data(), name.text.size());
  used_ += bytes;
  return id;
}

size_t EntryPaths::PlaceOf(Id folder, std::string_view text) const {
  const size_t hash = std::hash<std::string_view>()(text) ^ (folder * 0x9E3779B97F4A7C15u);
  for (size_t place = hash % table_.size();; place = (place + 1) % table_.size()) {
    if (table_[place] == 0) return place;
    const Name there = At(Id{table_[place]} * kUnit);
    if (there.folder == folder && there.text == text) return place;
  }
}

void EntryPaths::Grow() {
  const auto before = std::exchange(table_, std::vector<uint32_t>(std::max<size_t>(64, 2 * table_.size())));
  for (const uint32_t unit : before) {
    if (unit == 0) continue;
    const Name name = At(Id{unit} * kUnit);
    table_[PlaceOf(name.folder, name.text)] = unit;
  }
}

// The path of some file, or empty folder, below a folder. Only for messages, so it may search all entries.
std::string EntryPaths::PathBelow(Id folder, std::string path) const {
  for (;;) {
    path += '/';
    const auto child = std::find_if(table_.begin(), table_.end(),
                                    [&](uint32_t unit) { return unit != 0 && At(Id{unit} * kUnit).folder == folder; });
    if (child == table_.end()) return path;
    const Name name = At(Id{*child} * kUnit);
    path += name.text;
    if (!name.is_folder) return path;
    folder = Id{*child} * kUnit;
  }
}

bool MatchesPattern(std::string_view pattern, std::string_view path) {
  if (pattern.ends_with('/')) return MatchesWhole(std::string(pattern) + '*', path);
  return MatchesWhole(pattern, path);
}

bool IsWanted(std::string_view path, const std::vector<std::string>& include, const std::vector<std::string>& ignore) {
  return (include.empty() || MatchesAny(include, path)) && !MatchesAny(ignore, path);
}

bool MatchesAny(const std::vector<std::string>& patterns, std::string_view path) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return MatchesPattern(pattern, path); });
}

BareEndings::BareEndings(const std::vector<std::string>& ignore) {
  for (const std::string& pattern : ignore) {
    if (pattern.starts_with('.') && pattern.find_first_of("*?[/") == std::string::npos) counts_[pattern] = 0;
  }
}

void BareEndings::Add(std::string_view wanted) {
  for (auto& [ending, count] : counts_) count += wanted.ends_with(ending);
}

std::vector<std::string> BareEndings::Texts() const {
  std::vector<std::string> texts;
  for (const auto& [ending, count] : counts_) {
    if (count == 0) continue;
    texts.push_back(
        fmt::format("--ignore {0} leaves out only a file of that name; {1} with this ending will be brought "
                    "in; write *{0} to leave them out",
                    ending, Counted(count, "file")));
  }
  return texts;
}

bool MayHoldWanted(std::string_view folder, const std::vector<std::string>& include,
                   const std::vector<std::string>& ignore) {
  // If a pattern that ends with '*' or '/' matches the folder's path, it also matches everything below.
  const bool ignored = std::any_of(ignore.begin(), ignore.end(), [folder](std::string_view pattern) {
    return (pattern.ends_with('*') || pattern.ends_with('/')) && MatchesPattern(pattern, folder);
  });
  if (ignored) return false;
  return include.empty() || std::any_of(include.begin(), include.end(), [folder](std::string_view pattern) {
           return MatchesSomeAfter(pattern.ends_with('/') ? std::string(pattern) + '*' : std::string(pattern), folder);
         });
}

}  // namespace muster::initializers
