// SPDX-License-Identifier: Apache-2.0
#include "initializers/facts/command_words.h"

namespace muster::initializers {

StatusOr<std::vector<std::string>> SplitWords(std::string_view line) {
  std::vector<std::string> words;
  bool inside = false;  // inside a word, which may be empty ("")
  char quote = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (quote == 0 && blank) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'') {
      if (at + 1 == line.size()) return absl::InvalidArgumentError("the command line ends in a backslash");
      const char next = line[at + 1];
      const bool escapes = quote == 0 || next == quote || next == '\\';
      words.back() += escapes ? next : c;
      if (escapes) ++at;
    } else {
      words.back() += c;
    }
  }
  if (quote != 0) return absl::InvalidArgumentError("the command line has a quote that is not closed");
  if (words.empty() || words.front().empty()) return absl::InvalidArgumentError("the command line names no command");
  return words;
}

}  // namespace muster::initializers
