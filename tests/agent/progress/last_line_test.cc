// SPDX-License-Identifier: Apache-2.0
#include "agent/progress/last_line.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

TEST(LastLine, IsTheNewestThatIsNotBlank) {
  const std::pair<std::string, std::string> rows[] = {
      {"", ""},
      {"\n \r\n", ""},
      {"one\ntwo\n", "two"},
      {"one\ntwo\n\n  \n", "two"},
      {"one\nnot ended", "not ended"},
      {"  5%|#\r 10%|##\r", "10%|##"},
      {"\x1b[31mred\x1b[0m text\n", "red text"},
      {"a\x07\tb\n", "a\tb"},
      {std::string(5000, 'x') + "\nshort\n" + std::string(5000, '\n'), ""},
      {std::string(5000, 'x') + "\nshort\n", "short"},
  };
  for (const auto& [text, want] : rows) {
    for (const size_t piece : {size_t{1}, size_t{7}, size_t{100'000}}) {
      LastLine last;
      for (size_t at = 0; at < text.size(); at += piece) last.Add(text.substr(at, piece), TimePoint{});
      EXPECT_EQ(last.Text(240), want) << text.substr(0, 60) << " in pieces of " << piece;
      EXPECT_EQ(last.came().has_value(), !text.empty());
    }
  }
}

TEST(LastLine, IsCutBetweenCharacters) {
  LastLine last;
  last.Add("\u00e9\u00e9\u00e9\n", TimePoint{});
  EXPECT_EQ(last.Text(5), "\u00e9\u00e9");
}

}  // namespace
}  // namespace muster::agent
