// SPDX-License-Identifier: Apache-2.0
#include "initializers/transfer/request_limit.h"

#include <gtest/gtest.h>

namespace muster::initializers {
namespace {

using std::chrono::milliseconds;

// Passes `windows` windows in which `target` parallel requests brought `rate(target)` bytes/s.
template <typename Rate>
void Pass(RequestLimit& limit, int windows, TimePoint* now, Rate rate, bool busy = true) {
  for (int i = 0; i < windows; ++i) {
    *now += milliseconds(400);
    limit.Progressed(static_cast<uint64_t>(rate(limit.target()) * 0.4), 0, busy, *now);
  }
}

class RequestLimitTest : public testing::Test {
 protected:
  RequestLimitTest() { request_limit_.Progressed(0, 0, true, now_); }
  RequestLimit request_limit_{RequestLimitOptions{}};
  TimePoint now_{std::chrono::hours(1)};
};

TEST_F(RequestLimitTest, ClimbsWhileMoreBringMore) {
  EXPECT_EQ(request_limit_.target(), 8);
  Pass(request_limit_, 10, &now_, [](int target) { return 50e6 * target; });
  EXPECT_EQ(request_limit_.target(), 32);
}

TEST_F(RequestLimitTest, GoesBackWhereMoreBringNothing) {
  int most = 0;
  int at_eight = 0;
  for (int i = 0; i < 40; ++i) {
    Pass(request_limit_, 1, &now_, [](int) { return 1e9; });
    most = std::max(most, request_limit_.target());
    at_eight += request_limit_.target() == 8;
  }
  EXPECT_EQ(most, 12);      // it tries more
  EXPECT_GT(at_eight, 30);  // but seldom
}

TEST_F(RequestLimitTest, DoesNotJudgeWhatWasNotAskedFor) {
  Pass(
      request_limit_, 10, &now_, [](int target) { return 50e6 * target; }, false);
  EXPECT_EQ(request_limit_.target(), 8);
}

TEST_F(RequestLimitTest, HalvesOnceInAWindow) {
  Pass(request_limit_, 10, &now_, [](int target) { return 50e6 * target; });
  for (int i = 0; i < 10; ++i) request_limit_.Throttled(now_);
  EXPECT_EQ(request_limit_.target(), 16);
  for (int i = 0; i < 10; ++i) request_limit_.Throttled(now_ += milliseconds(500));
  EXPECT_EQ(request_limit_.target(), 4) << "fewer would wait for each other";
  Pass(request_limit_, 30, &now_, [](int target) { return 50e6 * target; });
  EXPECT_GT(request_limit_.target(), 8);
}

TEST(RequestLimits, LeaveABlockFree) {
  struct Row {
    size_t blocks;
    int least, first, most;
  };
  for (const Row& row : {Row{64, 4, 8, 32}, Row{33, 4, 8, 32}, Row{32, 4, 8, 31}, Row{8, 4, 7, 7}, Row{2, 1, 1, 1}}) {
    const RequestLimitOptions limits = Within(RequestLimitOptions{}, row.blocks);
    EXPECT_EQ(limits.least, row.least) << row.blocks;
    EXPECT_EQ(limits.first, row.first) << row.blocks;
    EXPECT_EQ(limits.most, row.most) << row.blocks;
  }
}

}  // namespace
}  // namespace muster::initializers
