// SPDX-License-Identifier: Apache-2.0
// What is sent to a terminal.
#include "agent/live/terminal_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using testing::HasSubstr;

TEST(Line, CellsAreAsWideAsTheySay) {
  Line line(12);
  line.Cell("abc", 5).Cell("12", 4, Line::Side::kRight).Cell("no room", 4).Add("wxyz");
  EXPECT_EQ(line.Text(), "abc    12wx…");
  EXPECT_EQ(line.room(), 0u);
  EXPECT_EQ(line.Add("more").Text(), "abc    12wx…");
  Line wide(6);
  wide.Cell("中文字", 5).Select();
  EXPECT_EQ(wide.Text(), "中文…");
  EXPECT_EQ(wide.columns(), 6u);
}

Picture PictureOf(std::vector<std::string> texts, Style style = {}) {
  Picture picture{.size = {.rows = 3, .columns = 20}, .lines = {}};
  for (const std::string& text : texts) picture.lines.push_back(Line(20).Add(text, style));
  return picture;
}

TEST(Screen, SendsOnlyLinesThatDiffer) {
  Screen screen({});
  EXPECT_EQ(screen.Draw(PictureOf({"one", "two"})), "\x1b[0m\x1b[2J\x1b[1;1Hone\x1b[K\x1b[2;1Htwo\x1b[K");
  EXPECT_EQ(screen.Draw(PictureOf({"one", "two"})), "");
  EXPECT_EQ(screen.Draw(PictureOf({"one", "2", "3"})), "\x1b[2;1H2\x1b[K\x1b[3;1H3\x1b[K");
  EXPECT_EQ(screen.Draw(PictureOf({"one"})), "\x1b[2;1H\x1b[K\x1b[3;1H\x1b[K");
  screen.Forget();
  EXPECT_EQ(screen.Draw(PictureOf({"one"})), "\x1b[0m\x1b[2J\x1b[1;1Hone\x1b[K");
}

TEST(Screen, ColoursAndLetters) {
  const Style red{.ink = Ink::kRed, .bold = true};
  EXPECT_THAT(Screen({}).Draw(PictureOf({"é…"}, red)), HasSubstr("\x1b[1m\x1b[31mé…\x1b[0m\x1b[K"));
  EXPECT_THAT(Screen({.colours = false}).Draw(PictureOf({"é…"}, red)), HasSubstr("H\x1b[1mé…\x1b[0m\x1b[K"));
  EXPECT_THAT(Screen({.colours = false, .ascii = true}).Draw(PictureOf({"é…"})), HasSubstr("H?~\x1b[K"));
}

}  // namespace
}  // namespace muster::agent
