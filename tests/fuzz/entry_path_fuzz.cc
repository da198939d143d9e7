// SPDX-License-Identifier: Apache-2.0
// libFuzzer: object names, one a line. The first line is the pattern too.
#include <filesystem>

#include "base/text.h"
#include "initializers/facts/entry_path.h"
#include "tests/fuzz/input.h"

namespace {

// A pattern that matches only `name`.
std::string Literal(std::string_view name) {
  std::string pattern;
  for (char c : name) {
    const bool special = c == '*' || c == '?' || c == '[';
    pattern += special ? std::string("[") + c + "]" : std::string(1, c);
  }
  return pattern;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::initializers;
  const auto lines = muster::Split({reinterpret_cast<const char*>(data), size}, '\n');
  if (lines.size() < 2 || lines.size() > 100 || lines[0].size() > 100) return 0;
  EntryPaths paths;
  for (std::string_view name : lines) {
    const std::string pattern(lines[0]);
    Must(IsWanted(name, {pattern}, {}) == MatchesPattern(pattern, name));
    Must(IsWanted(name, {}, {pattern}) != MatchesPattern(pattern, name));
    Must(MatchesPattern(Literal(name), name));
    Must(MatchesPattern("*", name));
    for (size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1)) {
      const std::string_view folder = name.substr(0, slash + 1);
      Must(MayHoldWanted(folder, {pattern}, {}) || !IsWanted(name, {pattern}, {}));
      Must(MayHoldWanted(folder, {}, {pattern}) || !IsWanted(name, {}, {pattern}));
    }
    if (!CheckEntryPath(name).ok()) continue;
    const std::filesystem::path path{std::string(name)};
    Must(path.is_relative() && path.lexically_normal() == path && *path.begin() != "..");
    if (paths.Add(name).ok() && !name.ends_with('/'))
      Must(!paths.Add(name).ok() && !paths.Add(std::string(name) + "/x").ok());
  }
  return 0;
}
