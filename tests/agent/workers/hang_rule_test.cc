// SPDX-License-Identifier: Apache-2.0
// The rule of hangs, row by row. Moments are seconds after the start of the attempt.
#include "agent/workers/hang_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

TimePoint At(double second) {
  return TimePoint(seconds(1000)) + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(second));
}

struct Rank {
  std::optional<double> beat;
  std::optional<int64_t> step;
  bool ended = false;
  int64_t modified = 0;
};

struct Row {
  const char* name;
  std::optional<Duration> steps, log;
  std::vector<Rank> ranks;
  std::optional<double> output;
  double now;
  std::vector<int> hangs;
  std::string evidence;        // of the first hang
  std::optional<double> look;  // seconds after `now`
};

class HangRuleRows : public testing::TestWithParam<Row> {};

TEST_P(HangRuleRows, FindsTheRanksThatHang) {
  const Row& row = GetParam();
  HangOptions options;
  options.step_timeout = row.steps;
  options.log_timeout = row.log;
  HangFacts facts;
  facts.started = At(0);
  facts.others_silent = true;
  if (row.output) facts.output = At(*row.output);
  for (const Rank& rank : row.ranks) {
    RankSeen seen;
    seen.local_rank = static_cast<int>(facts.ranks.size());
    seen.ended = rank.ended;
    seen.step = rank.step;
    if (rank.beat) {
      seen.beat = At(*rank.beat);
      seen.stamp = FileStamp{rank.modified, 1, 1};
    }
    facts.ranks.push_back(seen);
  }
  HangJudgement judged = Judge(options, facts, At(row.now));
  std::vector<int> hangs;
  for (const Hang& hang : judged.hangs) hangs.push_back(hang.local_rank);
  EXPECT_EQ(hangs, row.hangs);
  EXPECT_EQ(judged.all_silent, row.evidence.starts_with("all workers"));
  if (!judged.hangs.empty()) {
    EXPECT_EQ(judged.hangs.front().evidence, row.evidence);
  }
  EXPECT_EQ(judged.look_again.has_value(), row.look.has_value());
  if (judged.look_again && row.look) {
    EXPECT_EQ(*judged.look_again, At(row.now + *row.look));
  }
  EXPECT_EQ(facts.expected, judged.look_again);
}

const auto kOff = std::nullopt;
const auto kNone = std::nullopt;
INSTANTIATE_TEST_SUITE_P(
    Rows, HangRuleRows,
    testing::Values(
        Row{"Nothing_asked_for", kOff, kOff, {{0, 1}}, 0, 10'000, {}, "", kNone},
        // steps
        Row{"Never_beaten_is_left_alone", seconds(80), kOff, {{}, {}}, kNone, 10'000, {}, "", 10},
        Row{"A_fresh_beat", seconds(80), kOff, {{5, 1}}, kNone, 6, {}, "", 10},
        Row{"The_look_is_not_later_than_due", seconds(80), kOff, {{5, 1}}, kNone, 80, {}, "", 5},
        Row{"Due", seconds(80), kOff, {{5, 120}}, kNone, 85, {0}, "no step reported for 80 s (last step 120)", kNone},
        Row{"No_number_in_the_file", seconds(8), kOff, {{5, {}}}, kNone, 14.5, {0}, "no heartbeat for 9.5 s", kNone},
        Row{"One_of_two",
            seconds(80),
            kOff,
            {{50, 7}, {5, 3}},
            kNone,
            85,
            {1},
            "no step reported for 80 s (last step 3)",
            kNone},
        Row{"The_oldest_beat_first",
            seconds(80),
            kOff,
            {{6, 2}, {5, 3}},
            kNone,
            90,
            {1, 0},
            "no step reported for 85 s (last step 3)",
            kNone},
        Row{"Of_one_look_the_lowest_step",
            seconds(80),
            kOff,
            {{5, 121}, {5, 120}, {5, 121}},
            kNone,
            85,
            {1, 0, 2},
            "no step reported for 80 s (last step 120)",
            kNone},
        Row{"Of_one_step_the_oldest_file",
            seconds(80),
            kOff,
            {{5, 120, false, 30}, {5, 120, false, 20}},
            kNone,
            85,
            {1, 0},
            "no step reported for 80 s (last step 120)",
            kNone},
        Row{"A_rank_that_never_beat_is_not_named",
            seconds(80),
            kOff,
            {{}, {5, 3}},
            kNone,
            85,
            {1},
            "no step reported for 80 s (last step 3)",
            kNone},
        Row{"One_that_has_ended_does_not_hang", seconds(80), kOff, {{5, 3, true}, {70, 9}}, kNone, 90, {}, "", 10},
        Row{"All_have_ended", seconds(80), seconds(80), {{5, 3, true}, {5, 3, true}}, 5, 200, {}, "", kNone},
        Row{"A_beat_from_the_future", seconds(80), kOff, {{500, 3}}, kNone, 90, {}, "", 10},
        // output
        Row{"Silent_from_the_start",
            kOff,
            seconds(60),
            {{}, {}},
            kNone,
            60,
            {0, 1},
            "all workers of the job have been silent for 60 s",
            kNone},
        Row{"Not_silent_yet", kOff, seconds(60), {{}}, kNone, 59, {}, "", 1},
        Row{"Any_rank_s_byte_counts", kOff, seconds(60), {{}, {}}, 50, 60, {}, "", 50},
        Row{"Silent_since",
            kOff,
            seconds(60),
            {{}, {{}, {}, true}, {}},
            50,
            110,
            {0, 2},
            "all workers of the job have been silent for 60 s",
            kNone},
        // both
        Row{"The_earlier_look", seconds(80), seconds(60), {{5, 1}}, 55, 56, {}, "", 10},
        Row{"The_silence_ends_first", seconds(80), seconds(60), {{55, 1}}, 0, 58, {}, "", 2},
        Row{"Steps_say_more_than_silence",
            seconds(60),
            seconds(60),
            {{0, 4}, {50, 5}},
            0,
            60,
            {0},
            "no step reported for 60 s (last step 4)",
            kNone}),
    [](const auto& row) { return std::string(row.param.name); });

// One node may be silent by design: only the coordinator knows whether the others are silent, too.
TEST(HangRule, SilenceOfOneNodeIsToldAndWithdrawn) {
  HangOptions options;
  options.log_timeout = seconds(80);
  HangFacts facts;
  facts.started = At(0);
  facts.ranks = {{0}, {1}};
  EXPECT_FALSE(Judge(options, facts, At(79)).silent);
  HangJudgement told = Judge(options, facts, At(80));
  EXPECT_TRUE(told.silent);
  EXPECT_THAT(told.hangs, IsEmpty());
  EXPECT_EQ(told.look_again, At(90));
  facts.output = At(85);
  HangJudgement again = Judge(options, facts, At(90));
  EXPECT_FALSE(again.silent);
  EXPECT_EQ(again.look_again, At(165));
  facts.others_silent = true;
  EXPECT_THAT(Judge(options, facts, At(100)).hangs, IsEmpty()) << "this one is not";
  EXPECT_EQ(Judge(options, facts, At(165)).hangs.size(), 2u);
}

TEST(NoteBeat, TakesOnlyAChangeAndTheTimeOfThisProcess) {
  RankSeen rank;
  NoteBeat(rank, {77, 2, 1}, 1, At(3));
  EXPECT_EQ(rank.beat, At(3));
  NoteBeat(rank, {77, 2, 1}, 1, At(9));
  EXPECT_EQ(rank.beat, At(3)) << "unchanged";
  NoteBeat(rank, {11, 2, 1}, 2, At(12));
  EXPECT_EQ(rank.beat, At(12)) << "a wall clock set back is a change as any other";
  EXPECT_EQ(rank.step, 2);
  NoteBeat(rank, {11, 2, 5}, 2, At(15));
  EXPECT_EQ(rank.beat, At(15)) << "replaced by a new file";
}

// The agent itself was frozen with its workers: when it wakes, every worker has its full time again.
TEST(HangRule, TimeInWhichTheAgentWasFrozenIsNotCounted) {
  HangOptions options;
  options.step_timeout = seconds(80);
  options.log_timeout = seconds(80);
  HangFacts facts;
  facts.started = At(0);
  facts.output = At(4);
  facts.ranks = {{0, false, FileStamp{1, 1, 1}, At(5), 3}};
  ASSERT_EQ(Judge(options, facts, At(6)).look_again, At(16));
  HangJudgement woken = Judge(options, facts, At(1016));
  EXPECT_THAT(woken.hangs, IsEmpty());
  EXPECT_EQ(facts.ranks[0].beat, At(1005));
  EXPECT_EQ(facts.output, At(1004));
  EXPECT_EQ(Judge(options, facts, *woken.look_again + milliseconds(900)).hangs.size(), 0u)
      << "a busy loop is not a freeze";
  EXPECT_EQ(facts.ranks[0].beat, At(1005));
}

TEST(HangRule, LooksAtTheTimesItNamesFindTheHang) {
  HangOptions options;
  options.step_timeout = seconds(80);
  HangFacts facts;
  facts.started = At(0);
  facts.ranks = {{0, false, FileStamp{1, 1, 1}, At(5), 3}};
  TimePoint now = At(6);
  HangJudgement judged;
  int looks = 0;
  for (judged = Judge(options, facts, now); judged.look_again; judged = Judge(options, facts, now), ++looks) {
    now = *judged.look_again + milliseconds(1);
  }
  EXPECT_EQ(judged.hangs.size(), 1u);
  EXPECT_EQ(looks, 8);
  EXPECT_LE(now, At(85.1));
}

TEST(NeverBeat, WarnsOnceTheLimitHasPassedWithoutABeat) {
  HangOptions options;
  options.step_timeout = seconds(80);
  HangFacts facts;
  facts.started = At(0);
  facts.ranks = {{0}, {1}};
  EXPECT_EQ(NeverBeat(options, facts, At(79)), "");
  EXPECT_NE(NeverBeat(options, facts, At(80)).find("give --hang-log-timeout"), std::string::npos);
  options.log_timeout = seconds(60);
  EXPECT_NE(NeverBeat(options, facts, At(80)).find("until then only --hang-log-timeout does"), std::string::npos);
  facts.ranks[0].beat = At(3);
  EXPECT_EQ(NeverBeat(options, facts, At(80)), "") << "one rank's beats are enough: it waits for the others";
  facts.ranks = {{0, true}};
  EXPECT_EQ(NeverBeat(options, facts, At(80)), "");
  options.step_timeout.reset();
  facts.ranks = {{0}};
  EXPECT_EQ(NeverBeat(options, facts, At(80)), "");
}

}  // namespace
}  // namespace muster::agent
