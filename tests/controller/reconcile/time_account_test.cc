#include "controller/reconcile/time_account.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace muster::controller {
namespace {

using namespace std::chrono_literals;

WallTime At(double second) {
  return WallTime(1'700'000'000s) + std::chrono::round<WallTime::duration>(std::chrono::duration<double>(second));
}

// A run that began at `began`: seconds by use, in the order of TimeUse.
RunTime RunAt(double began, std::vector<int> seconds) {
  RunTime run{.began_unix_ms =
                  std::chrono::duration_cast<std::chrono::milliseconds>(At(began).time_since_epoch()).count()};
  for (size_t use = 0; use < seconds.size(); ++use) run.spent[use] = std::chrono::seconds(seconds[use]);
  return run;
}

std::map<std::string, double> SecondsOf(const JobTime& time) {
  const Json written = WriteJobTime(time);
  std::map<std::string, double> seconds;
  for (const auto& [name, value] : written["seconds"].items()) seconds[name] = value.get<double>();
  return seconds;
}

using Seconds = std::map<std::string, double>;
const TimeFacts kFacts = {.began = At(0), .initializers = At(30)};

TEST(AccountTime, NoAgentTellsAnything) { EXPECT_EQ(AccountTime(std::nullopt, {}, kFacts), std::nullopt); }

TEST(AccountTime, Rows) {
  struct Row {
    const char* what;
    std::vector<std::vector<RunTime>> told;  // one pass after the other
    TimeFacts facts;
    Seconds want;
    int percentage;
  };
  const RunTime first = RunAt(40, {5, 5, 90}), longer = RunAt(40, {5, 5, 190});
  const Row rows[] = {
      {"the first word",
       {{first}},
       kFacts,
       {{"initializers", 30}, {"pods", 10}, {"waiting", 5}, {"start", 5}, {"training", 90}},
       90},
      {"no initializers",
       {{first}},
       {.began = At(38)},
       {{"pods", 2}, {"waiting", 5}, {"start", 5}, {"training", 90}},
       90},
      {"the job's begin is not known", {{first}}, {}, {{"waiting", 5}, {"start", 5}, {"training", 90}}, 90},
      {"the same run goes on", {{first}, {longer}}, {}, {{"waiting", 5}, {"start", 5}, {"training", 190}}, 95},
      {"an older word comes late", {{longer}, {first}}, {}, {{"waiting", 5}, {"start", 5}, {"training", 190}}, 95},
      {"of two agents the one that began first is followed",
       {{RunAt(42, {3, 5, 90}), first}, {RunAt(42, {3, 5, 140}), first}},
       {},
       {{"waiting", 5}, {"start", 5}, {"training", 90}},
       90},
      {"its pod is lost: the other agent's run counts",
       {{first}, {RunAt(42, {3, 5, 140})}},
       {},
       {{"waiting", 5}, {"start", 5}, {"training", 140}},
       93},
      {"the other agent knows nothing newer",
       {{first}, {RunAt(42, {3, 5, 90})}},
       {},
       {{"waiting", 5}, {"start", 5}, {"training", 90}},
       90},
      {"new pods after a failure",
       {{first}, {RunAt(160, {3, 5, 80})}},
       {},
       {{"waiting", 5}, {"start", 10}, {"training", 170}, {"restart", 23}},
       81},
      {"both are told at once",
       {{RunAt(160, {3, 5, 80}), first}},
       {},
       {{"waiting", 5}, {"start", 10}, {"training", 170}, {"restart", 23}},
       81},
      {"and a third run",
       {{first}, {RunAt(160, {3, 5, 80})}, {RunAt(250, {1, 1, 8})}},
       {},
       {{"waiting", 5}, {"start", 11}, {"training", 178}, {"restart", 26}},
       80},
      {"the last words of the first run come with the second",
       {{RunAt(40, {5, 5, 40})}, {first, RunAt(160, {3, 5, 80})}},
       {},
       {{"waiting", 5}, {"start", 10}, {"training", 170}, {"restart", 23}},
       81},
      {"the new pod's clock is slow",
       {{first}, {RunAt(137, {3, 5, 80})}},
       {},
       {{"waiting", 5}, {"start", 10}, {"training", 170}, {"restart", 3}},
       90},
      {"suspended and resumed",
       {{first}, {RunAt(1160, {3, 5, 80})}},
       {.resumed = At(1140)},
       {{"waiting", 5}, {"start", 10}, {"training", 170}, {"restart", 23}, {"suspended", 1000}},
       81},
      {"resumed before the run ended",
       {{first}, {RunAt(160, {3, 5, 80})}},
       {.resumed = At(20)},
       {{"waiting", 5}, {"start", 10}, {"training", 170}, {"restart", 23}},
       81},
      {"an agent that began before the one that was followed",
       {{RunAt(42, {3, 5, 90})}, {longer}},
       {},
       {{"waiting", 5}, {"start", 5}, {"training", 190}},
       95},
  };
  for (const Row& row : rows) {
    std::optional<JobTime> time;
    for (const auto& runs : row.told) {
      time = AccountTime(time, runs, row.facts);
      EXPECT_EQ(AccountTime(time, runs, row.facts), time) << row.what;
    }
    ASSERT_TRUE(time) << row.what;
    EXPECT_EQ(SecondsOf(*time), row.want) << row.what;
    EXPECT_EQ(WriteJobTime(*time)["percentage"], row.percentage) << row.what;
  }
}

// What is written and read back goes on as if it had been kept.
TEST(AccountTime, GoesOnFromTheStatus) {
  const auto time =
      AccountTime(AccountTime(std::nullopt, {RunAt(40.5, {5, 5, 90})}, kFacts), {RunAt(160.25, {3, 5, 80})}, kFacts);
  ASSERT_TRUE(time);
  const auto read = ReadJobTime(WriteJobTime(*time));
  EXPECT_EQ(read, time);
  EXPECT_EQ(AccountTime(read, {RunAt(160.25, {3, 5, 90})}, kFacts),
            AccountTime(time, {RunAt(160.25, {3, 5, 90})}, kFacts));
}

// Runs that follow each other, with pauses and suspensions: all adds up to the time from the job's begin to the end.
TEST(AccountTime, AddsUpToTheWallTime) {
  std::mt19937 random(1);
  for (int world = 0; world < 500; ++world) {
    std::optional<JobTime> time;
    double now = 40;
    double end = 0;
    for (int run = 0; run < 6; ++run) {
      std::vector<int> seconds;
      int sum = 0;
      for (size_t use = 0; use < kTimeUses; ++use) sum += seconds.emplace_back(static_cast<int>(random() % 100));
      TimeFacts facts = kFacts;
      if (random() % 2 == 0) facts.resumed = At(now - static_cast<double>(random() % 20));
      time = AccountTime(time, {RunAt(now, seconds)}, facts);
      if (random() % 2 == 0) time = ReadJobTime(WriteJobTime(*time));
      end = now + sum;
      now = end + static_cast<double>(random() % 50);
    }
    double all = 0;
    for (const auto& [name, value] : SecondsOf(*time)) all += value;
    EXPECT_NEAR(all, end, 0.01 * end) << world;
  }
}

TEST(ReadJobTime, WhatIsNoJobTime) {
  for (const char* text : {"null", "5", "[]", "{}", R"({"since": "2026-01-01T00:00:00Z"})",
                           R"({"since": 5, "run": {"since": "2026-01-01T00:00:00Z"}})"}) {
    EXPECT_EQ(ReadJobTime(Json::parse(text)), std::nullopt) << text;
  }
  const auto time = ReadJobTime(Json::parse(
      R"({"since": "2026-01-01T00:00:00Z", "seconds": {"training": -5, "hang": "x", "start": 1e99, "restart": 2},
          "run": {"since": "2026-01-01T00:00:00Z", "seconds": 5}})"));
  ASSERT_TRUE(time);
  EXPECT_EQ(SecondsOf(*time), (Seconds{{"restart", 2}}));
}

}  // namespace
}  // namespace muster::controller
