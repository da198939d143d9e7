// SPDX-License-Identifier: Apache-2.0
// Text of jobs on a terminal: the filter, and how wide it is.
#include "agent/live/terminal_text.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

TEST(TerminalText, KnowsHowWideACharacterIs) {
  const struct {
    uint32_t code;
    size_t columns;
  } rows[] = {{'a', 1},    {0xE9, 1},   {0x301, 0},   {0x4E2D, 2},  {0xAC00, 2},  {0x1160, 0}, {0xFF21, 2},
              {0xFF61, 1}, {0x2026, 1}, {0x1F600, 2}, {0x20E3, 0},  {0x2588, 1},  {0x5D0, 1},  {0xE000, 1},
              {0x3000, 2}, {0x303F, 1}, {0x20000, 2}, {0x1F1E6, 1}, {0x10FFFD, 1}};
  for (const auto& row : rows) EXPECT_EQ(ColumnsOf(row.code), row.columns) << std::hex << row.code;
}

TEST(TerminalText, NothingThatATerminalObeysPasses) {
  const struct {
    std::string text, shown;
  } rows[] = {
      {"plain", "plain"},
      {"\x1b[31mred\x1b[0m", "red"},
      {"\x1b]0;title\atext", "text"},
      {"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"},
      {"\x1b"
       "cafter a reset",
       "after a reset"},
      {"a\x1b", "a"},
      {"\x1b[", ""},
      {"a\tb\nc\rd", "a b c d"},
      {std::string("a\0b\x07\x7f", 5), "a\uFFFDb\uFFFD\uFFFD"},
      {"\u009B31m", "\uFFFD31m"},  // CSI in one character
      {"\x9b"
       "31m",
       "\uFFFD31m"},  // and in one byte
      {"a\u202Eb\u2066c\u200Fd", "a\uFFFDb\uFFFDc\uFFFDd"},
      {"a\u2028b", "a\uFFFDb"},
      {"x\u200D\uFE0Fy\u00ADz\U000E0041", "xyz"},
      {"\xFF\xC3", "\uFFFD\uFFFD"},
      {"<script>alert(1)</script>", "<script>alert(1)</script>"},
      {"שלום", "שלום"},
  };
  for (const auto& row : rows) EXPECT_EQ(Shown(row.text, 80).text, row.shown) << row.text;
}

TEST(TerminalText, CutsAtColumnsAndNotAtBytes) {
  const struct {
    std::string text;
    size_t most;
    std::string cut;
    size_t columns;
  } rows[] = {
      {"abcdef", 6, "abcdef", 6},
      {"abcdef", 5, "abcd…", 5},
      {"中文字", 6, "中文字", 6},
      {"中文字", 5, "中文…", 5},
      {"中文字", 4, "中…", 3},
      {"中", 1, "…", 1},
      {"abc", 0, "", 0},
      {"", 3, "", 0},
      {"e\u0301e\u0301", 2, "e\u0301e\u0301", 2},
  };
  for (const auto& row : rows) {
    const ShownText cut = Cut(row.text, row.most);
    EXPECT_EQ(cut.text, row.cut) << row.text;
    EXPECT_EQ(cut.columns, row.columns) << row.text;
  }
}

TEST(TerminalText, MarksWithoutEndAreFew) {
  std::string tower = "\u0301\u0301a";  // a mark needs a character before it
  for (int i = 0; i < 1000; ++i) tower += "\u0301";
  EXPECT_EQ(Shown(tower + "b", 80).text, "a\u0301\u0301\u0301\u0301b");
}

TEST(TerminalText, AMegabyteIsReadAsFarAsItIsShown) {
  const std::string letters(1 << 20, 'x');
  EXPECT_EQ(Cut(letters, 10).text, "xxxxxxxxx…");
  std::string escapes;
  while (escapes.size() < 1 << 20) escapes += "\x1b[0m";
  EXPECT_EQ(Shown(escapes, 10).text, "");
  EXPECT_FALSE(Shown(escapes, 10).whole);
  EXPECT_LT(Shown(escapes, 10).bytes, 2048u);
}

TEST(TerminalText, LongTextsGoOnInTheNextLine) {
  EXPECT_EQ(Wrapped("abcdefg", 3, 9), (std::vector<std::string>{"abc", "def", "g"}));
  EXPECT_EQ(Wrapped("中文字", 5, 9), (std::vector<std::string>{"中文", "字"}));
  EXPECT_EQ(Wrapped("abcdefg", 3, 2), (std::vector<std::string>{"abc", "def"}));
  EXPECT_TRUE(Wrapped("中", 1, 9).empty());
  EXPECT_TRUE(Wrapped("abc", 0, 9).empty());
}

TEST(TerminalText, IsAsWideInAscii) {
  EXPECT_EQ(InAscii("a…━┃█░╌ · 中é\uFFFD"), "a~=|#.- - ????");
  EXPECT_EQ(InAscii("e\u0301"), "e");
}

}  // namespace
}  // namespace muster::agent
