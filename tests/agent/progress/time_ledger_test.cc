// SPDX-License-Identifier: Apache-2.0
#include "agent/progress/time_ledger.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

namespace muster::agent {
namespace {

using std::chrono::seconds;
using Uses = std::map<std::string_view, int>;

TimePoint At(int second) { return TimePoint(seconds(second)); }

Uses Spent(const TimeLedger& ledger, int second) {
  Uses uses;
  const auto spent = ledger.At(At(second));
  for (size_t i = 0; i < kTimeUses; ++i) {
    if (spent[i] != Duration{}) uses[TimeUseName(static_cast<TimeUse>(i))] = static_cast<int>(spent[i] / seconds(1));
  }
  return uses;
}

TEST(TimeLedgerTest, ARunWithAFailureAndWorkThatIsDoneAgain) {
  TimeLedger ledger;
  EXPECT_EQ(GoodputOf(ledger.At(At(5))), std::nullopt);
  ledger.Begin(At(10));
  ledger.WorkersRun(At(15));
  ledger.FirstOutput(At(16));
  ledger.Position(1, At(20));
  ledger.Position(90, At(100));
  ledger.Stops(At(110));
  EXPECT_EQ(Spent(ledger, 112), (Uses{{"waiting", 5}, {"start", 5}, {"training", 90}, {"restart", 2}}));
  ledger.WorkersRun(At(115));
  ledger.FirstOutput(At(116));
  ledger.Position(70, At(120));
  ledger.Position(91, At(140));
  ledger.Stops(At(210));  // the workers end
  ledger.End(At(210));
  const Uses want = {{"waiting", 5}, {"start", 10}, {"training", 160}, {"redone", 20}, {"restart", 5}};
  EXPECT_EQ(Spent(ledger, 210), want);
  EXPECT_EQ(Spent(ledger, 999), want);
  EXPECT_DOUBLE_EQ(*GoodputOf(ledger.At(At(999))), 0.8);
}

TEST(TimeLedgerTest, OfAProgramThatSaysNothingAllIsTrainingOnceItHasSucceeded) {
  TimeLedger ledger;
  ledger.Begin(At(0));
  ledger.WorkersRun(At(2));
  ledger.Stops(At(10));  // a failure
  ledger.WorkersRun(At(11));
  EXPECT_EQ(Spent(ledger, 60), (Uses{{"waiting", 2}, {"start", 57}, {"restart", 1}}));
  ledger.Succeeded();
  ledger.End(At(61));
  EXPECT_EQ(Spent(ledger, 61), (Uses{{"waiting", 2}, {"start", 8}, {"training", 50}, {"restart", 1}}));
}

TEST(TimeLedgerTest, ASuccessTellsNothingOfOneThatToldPositions) {
  TimeLedger ledger;
  ledger.Begin(At(0));
  ledger.WorkersRun(At(0));
  ledger.Position(7, At(5));
  ledger.Stops(At(10));
  ledger.WorkersRun(At(10));
  ledger.Succeeded();
  ledger.End(At(20));
  EXPECT_EQ(Spent(ledger, 20), (Uses{{"training", 5}, {"start", 15}}));
}

TEST(TimeLedgerTest, WithoutPositionsTheFirstOutputIsTheBeginOfTheTraining) {
  TimeLedger ledger;
  ledger.Begin(At(0));
  ledger.WorkersRun(At(1));
  ledger.FirstOutput(At(3));
  EXPECT_EQ(Spent(ledger, 10), (Uses{{"waiting", 1}, {"start", 2}, {"training", 7}}));
}

// A program that tells no position.
TEST(TimeLedgerTest, WorkAfterTheLastCheckpointIsNotKept) {
  struct Row {
    const char* what;
    std::vector<int> saved;  // moments; the workers train from 10 to 100, and their stop takes until 105
    std::optional<int> hangs_since;
    Uses want;
  };
  const Row rows[] = {
      {"it never saves", {}, {}, {{"start", 10}, {"training", 90}, {"restart", 5}}},
      {"it has saved", {40, 80}, {}, {{"start", 10}, {"training", 70}, {"redone", 20}, {"restart", 5}}},
      {"it saves while it is stopped", {40, 103}, {}, {{"start", 10}, {"training", 90}, {"restart", 5}}},
      {"it hangs", {40}, 70, {{"start", 10}, {"training", 30}, {"redone", 30}, {"hang", 30}, {"restart", 5}}},
      {"what it wrote before it trained", {5}, {}, {{"start", 10}, {"redone", 90}, {"restart", 5}}},
  };
  for (const Row& row : rows) {
    TimeLedger ledger;
    ledger.Begin(At(0));
    ledger.WorkersRun(At(0));
    size_t next = 0;
    const auto save_until = [&](int end) {
      for (; next < row.saved.size() && row.saved[next] <= end; ++next) ledger.Saved(At(row.saved[next]));
    };
    save_until(10);
    ledger.FirstOutput(At(10));
    save_until(100);
    ledger.Stops(At(100), row.hangs_since ? std::optional(At(*row.hangs_since)) : std::nullopt);
    save_until(105);
    ledger.WorkersRun(At(105));
    EXPECT_EQ(Spent(ledger, 105), row.want) << row.what;
  }
}

TEST(TimeLedgerTest, ARunThatFailsForGoodHasNotKeptItEither) {
  TimeLedger ledger;
  ledger.Begin(At(0));
  ledger.WorkersRun(At(0));
  ledger.FirstOutput(At(10));
  ledger.Saved(At(40));
  ledger.Stops(At(100));
  EXPECT_EQ(Spent(ledger, 101), (Uses{{"start", 10}, {"training", 90}, {"restart", 1}})) << "it may still be saved";
  ledger.End(At(101));
  EXPECT_EQ(Spent(ledger, 101), (Uses{{"start", 10}, {"training", 30}, {"redone", 60}, {"restart", 1}}));
}

TEST(TimeLedgerTest, PositionsKnowBetterThanCheckpoints) {
  TimeLedger ledger;
  ledger.Begin(At(0));
  ledger.WorkersRun(At(0));
  ledger.Position(1, At(10));
  ledger.Saved(At(40));
  ledger.Stops(At(100));
  ledger.WorkersRun(At(105));
  EXPECT_EQ(Spent(ledger, 105), (Uses{{"start", 10}, {"training", 90}, {"restart", 5}}));
}

TEST(TimeLedgerTest, ALaterPositionTellsThatItWasAllStart) {
  TimeLedger ledger;
  ledger.Begin(At(0));
  ledger.WorkersRun(At(1));
  ledger.FirstOutput(At(3));
  ledger.Position(1, At(50));
  EXPECT_EQ(Spent(ledger, 60), (Uses{{"waiting", 1}, {"start", 49}, {"training", 10}}));
}

TEST(TimeLedgerTest, AHangIsLostFromTheLastSign) {
  TimeLedger ledger;
  ledger.Begin(At(0));
  ledger.WorkersRun(At(1));
  ledger.Position(1, At(2));
  ledger.Stops(At(100), At(40));
  EXPECT_EQ(Spent(ledger, 101), (Uses{{"waiting", 1}, {"start", 1}, {"training", 38}, {"hang", 60}, {"restart", 1}}));
}

TEST(TimeLedgerTest, AHangBeforeTheFirstPosition) {
  TimeLedger ledger;
  ledger.Begin(At(0));
  ledger.WorkersRun(At(10));
  ledger.Stops(At(100), At(0));
  EXPECT_EQ(Spent(ledger, 100), (Uses{{"waiting", 10}, {"hang", 90}}));
}

TEST(TimeLedgerTest, TheUsesAddUpWhateverHappens) {
  std::mt19937 random(1);
  for (int run = 0; run < 2000; ++run) {
    TimeLedger ledger;
    int now = 0;
    ledger.Begin(At(now));
    const int events = static_cast<int>(random() % 30);
    for (int i = 0; i < events; ++i) {
      now += static_cast<int>(random() % 20);
      switch (random() % 5) {
        case 0:
          ledger.WorkersRun(At(now));
          break;
        case 1:
          ledger.FirstOutput(At(now));
          break;
        case 2:
          ledger.Succeeded();
          break;
        case 3:
          ledger.Position(static_cast<double>(random() % 50), At(now));
          break;
        default:
          ledger.Stops(At(now),
                       random() % 2 == 0 ? std::optional(At(now - static_cast<int>(random() % 90))) : std::nullopt);
      }
      const auto spent = ledger.At(At(now));
      for (const Duration each : spent) ASSERT_GE(each, Duration{});
      ASSERT_EQ(std::accumulate(spent.begin(), spent.end(), Duration{}), seconds(now)) << run;
    }
  }
}

}  // namespace
}  // namespace muster::agent
