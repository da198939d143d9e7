// SPDX-License-Identifier: Apache-2.0
#include "launcher/recent_text.h"

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{std::chrono::hours(1)};

std::string Kept(const RecentText& recent) { return recent.Since(TimePoint::min(), TimePoint::min()).text; }

TEST(RecentText, WhatCameSince) {
  RecentText recent(100, seconds(60));
  recent.Add("old\n", kStart);
  recent.Add("newer\n", kStart + seconds(20));
  recent.Add("newest\n", kStart + seconds(40));
  struct Row {
    seconds from, fresh;
    std::string text, fresh_text;
  };
  for (const Row& row : {Row{seconds(0), seconds(0), "old\nnewer\nnewest\n", "old\nnewer\nnewest\n"},
                         Row{seconds(1), seconds(20), "newer\nnewest\n", "newer\nnewest\n"},
                         Row{seconds(1), seconds(21), "newer\nnewest\n", "newest\n"},
                         Row{seconds(1), seconds(41), "newer\nnewest\n", ""}, Row{seconds(41), seconds(41), "", ""}}) {
    const RecentText::Part part = recent.Since(kStart + row.from, kStart + row.fresh);
    EXPECT_EQ(part.text, row.text);
    EXPECT_EQ(part.text.substr(part.fresh_from), row.fresh_text);
  }
}

TEST(RecentText, PiecesOfOneMomentHaveTheTimeOfTheFirst) {
  RecentText recent(100, seconds(60));
  recent.Add("a", kStart);
  recent.Add("b", kStart + milliseconds(200));
  recent.Add("c", kStart + milliseconds(260));
  EXPECT_EQ(recent.Since(kStart + milliseconds(1), {}).text, "c");
}

TEST(RecentText, IsBounded) {
  RecentText recent(100, seconds(60));
  for (int i = 0; i < 1000; ++i) {
    recent.Add("line of 16 bytes", kStart + milliseconds(i));
    EXPECT_LT(Kept(recent).size(), 150u);
  }
  EXPECT_GE(Kept(recent).size(), 100u);
  recent.Add(std::string(1000, 'x') + "end", kStart + seconds(2));
  EXPECT_TRUE(Kept(recent).ends_with(std::string(97, 'x') + "end"));
  EXPECT_LT(Kept(recent).size(), 150u);
}

TEST(RecentText, LetsGoOfWhatIsTooOld) {
  RecentText recent(100, seconds(60));
  recent.Add("old\n", kStart);
  recent.Add("new\n", kStart + seconds(61));
  EXPECT_EQ(Kept(recent), "new\n");
}

}  // namespace
}  // namespace muster::launcher
