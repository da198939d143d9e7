// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Utf8, ABeginningEndsBetweenCharacters) {
  const struct {
    std::string_view text;
    size_t most;
    std::string_view beginning;
  } rows[] = {
      {"", 0, ""},
      {"abc", 3, "abc"},
      {"abc", 9, "abc"},
      {"abc", 2, "ab"},
      {"abc", 0, ""},
      {"a\u00e9", 2, "a"},
      {"a\u00e9", 3, "a\u00e9"},
      {"\u20ac\u20ac", 5, "\u20ac"},
      {"\u20ac", 2, ""},
      {"\U0001F600x", 3, ""},
      {"\U0001F600x", 4, "\U0001F600"},
      {"\x80\x80\x80\x80\x80\x80", 5, "\x80\x80\x80\x80\x80"},  // not UTF-8
      {"\x80\x80", 1, "\x80"},
  };
  for (const auto& row : rows) EXPECT_EQ(Beginning(row.text, row.most), row.beginning) << row.text << ' ' << row.most;
}

TEST(Utf8, AnAbbreviatedTextEndsWithDots) {
  EXPECT_EQ(Abbreviated("ab\xC3\xA4z", 3), "ab...");
  EXPECT_EQ(Abbreviated("abc", 3), "abc");
}

}  // namespace
}  // namespace muster
