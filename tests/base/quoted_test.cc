// SPDX-License-Identifier: Apache-2.0
#include "base/quoted.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Quoted, ShowsWhatCanBeShown) {
  EXPECT_EQ(Quoted(""), "''");
  EXPECT_EQ(Quoted("a b/ä€😀'\\"), "'a b/ä€😀'\\'");
  EXPECT_EQ(Quoted(std::string_view("a\0\n\x1b[2J\x7f", 8)), "'a\\x00\\x0a\\x1b[2J\\x7f'");
  EXPECT_EQ(Quoted("\xff\xc3(\xe2\x82"), "'\\xff\\xc3(\\xe2\\x82'");
  EXPECT_EQ(Quoted("\xc2\x9b"), "'\\xc2\\x9b'");             // starts a control sequence
  EXPECT_EQ(Quoted("a\u202Egpj"), "'a\\xe2\\x80\\xaegpj'");  // right-to-left override
  EXPECT_EQ(Quoted("a\u2028b\u2066"), "'a\\xe2\\x80\\xa8b\\xe2\\x81\\xa6'");
}

TEST(Quoted, CutsLongTextsAtACharacter) {
  EXPECT_EQ(Quoted(std::string(200, 'a')), "'" + std::string(200, 'a') + "'");
  EXPECT_EQ(Quoted(std::string(201, 'a')), "'" + std::string(200, 'a') + "...'");
  EXPECT_EQ(Quoted("äö", 3), "'äö'");
  EXPECT_EQ(Quoted("äöü", 3), "'äö...'");
}

TEST(Quoted, ShowsTheLastLinesThatFit) {
  const struct {
    std::string_view said, shown;
  } rows[] = {
      {"", "''"},
      {"\n \n", "''"},
      {"one", "'one'"},
      {"one\n\n  two \r\n", "'one / two'"},
      {"0\n0123\n567\n", "'0123 / 567'"},  // no more fit
      {"first\n0123456789abc\n", "'0123456789...'"},
      {"\x1b[2Jx", "'\\x1b[2Jx'"},
  };
  for (const auto& row : rows) EXPECT_EQ(QuotedEnd(row.said, 10), row.shown) << row.said;
}

}  // namespace
}  // namespace muster
