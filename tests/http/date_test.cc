// SPDX-License-Identifier: Apache-2.0
#include "http/date.h"

#include <gtest/gtest.h>

namespace muster::http {
namespace {

TEST(HttpDate, AnyOfTheThreeForms) {
  constexpr int64_t kNow = 1'795'309'323;  // 2026-11-22T01:02:03Z
  EXPECT_EQ(ParseDate("Sun, 06 Nov 1994 08:49:37 GMT", kNow), 784'111'777);
  EXPECT_EQ(ParseDate("Sunday, 06-Nov-94 08:49:37 GMT", kNow), 784'111'777);
  EXPECT_EQ(ParseDate("Sun Nov  6 08:49:37 1994", kNow), 784'111'777);
  EXPECT_EQ(ParseDate("Sun, 22 Nov 2026 01:02:03 GMT", 0), kNow) << "however far from our clock";
  for (const char* text : {"", "Sun", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT", "784111777",
                           "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nov 1994 08:49:37 GMT "}) {
    EXPECT_EQ(ParseDate(text, kNow), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace muster::http
