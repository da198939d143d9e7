// SPDX-License-Identifier: Apache-2.0
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
AgentRun RunAt(double began, std::vector<int> seconds, const std::string& pod = "a", bool over = true) {
  RunTime run{.began_unix_ms =
                  std::chrono::duration_cast<std::chrono::milliseconds>(At(began).time_since_epoch()).count()};
  for (size_t use = 0; use < seconds.size(); ++use) run.spent[use] = std::chrono::seconds(seconds[use]);
  return {pod, over, run};
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
    std::vector<std::vector<AgentRun>> told;  // one pass after the other; pods whose agents are not over run
    TimeFacts facts;
    Seconds want;
    int percentage;
    std::string also_runs = {};  // a pod whose agent tells nothing
  };
  constexpr bool kRuns = false, kOver = true;
  const auto first = [](bool over) { return RunAt(40, {5, 5, 90}, "a", over); };
  const auto longer = [](bool over) { return RunAt(40, {5, 5, 190}, "a", over); };
  const auto peer = [](int trained, bool over) { return RunAt(42, {3, 5, trained}, "b", over); };
  const auto second = [](const std::string& pod) { return RunAt(160, {3, 5, 80}, pod, kRuns); };
  const Seconds once = {{"waiting", 5}, {"start", 5}, {"training", 90}};
  const Seconds twice = {{"waiting", 5}, {"start", 10}, {"training", 170}, {"restart", 23}};
  const Row rows[] = {
      {"the first word",
       {{first(kRuns)}},
       kFacts,
       {{"initializers", 30}, {"pods", 10}, {"waiting", 5}, {"start", 5}, {"training", 90}},
       90},
      {"no initializers",
       {{first(kRuns)}},
       {.began = At(38)},
       {{"pods", 2}, {"waiting", 5}, {"start", 5}, {"training", 90}},
       90},
      {"the job's begin is not known", {{first(kRuns)}}, {}, once, 90},
      {"the same run goes on",
       {{first(kRuns)}, {longer(kRuns)}},
       {},
       {{"waiting", 5}, {"start", 5}, {"training", 190}},
       95},
      {"an older word comes late",
       {{longer(kRuns)}, {first(kRuns)}},
       {},
       {{"waiting", 5}, {"start", 5}, {"training", 190}},
       95},
      {"of two agents the one that began first is followed",
       {{peer(90, kRuns), first(kRuns)}, {peer(140, kRuns), first(kRuns)}},
       {},
       once,
       90},
      {"while its pod runs, nothing else counts", {{first(kRuns)}, {peer(140, kOver)}}, {}, once, 90, "a"},
      {"nor does a node that came later", {{first(kRuns)}, {RunAt(200, {1, 1, 8}, "c", kOver)}}, {}, once, 90, "a"},
      {"its pod is lost: the other agent's run counts",
       {{first(kRuns)}, {peer(140, kRuns)}},
       {},
       {{"waiting", 5}, {"start", 5}, {"training", 140}},
       93},
      {"the other agent knows nothing newer", {{first(kRuns)}, {peer(90, kRuns)}}, {}, once, 90},
      {"it has ended: its last words count", {{first(kRuns)}, {first(kOver), peer(140, kOver)}}, {}, once, 90},
      {"both are short, and one clock is slow",
       {{RunAt(40, {0, 1, 2}, "a", kRuns)}, {RunAt(40, {0, 1, 12}, "a", kOver), RunAt(39.9, {0, 1, 12}, "b", kOver)}},
       {},
       {{"start", 1}, {"training", 12}},
       92},
      {"new pods after a failure", {{first(kOver)}, {second("b")}}, {}, twice, 81},
      {"a container that is started again", {{first(kOver)}, {first(kOver), second("a")}}, {}, twice, 81},
      {"one that was killed without a word", {{first(kRuns)}, {second("a")}}, {}, twice, 81},
      {"both are told at once", {{second("b"), first(kOver)}}, {}, twice, 81},
      {"and a third run",
       {{first(kOver)}, {second("b")}, {RunAt(250, {1, 1, 8}, "c", kRuns)}},
       {},
       {{"waiting", 5}, {"start", 11}, {"training", 178}, {"restart", 26}},
       80},
      {"the last words of the first run come with the second",
       {{RunAt(40, {5, 5, 40}, "a", kRuns)}, {first(kOver), second("b")}},
       {},
       twice,
       81},
      {"the new pod's clock is slow",
       {{first(kOver)}, {RunAt(137, {3, 5, 80}, "b", kRuns)}},
       {},
       {{"waiting", 5}, {"start", 10}, {"training", 170}, {"restart", 3}},
       90},
      {"suspended and resumed",
       {{first(kOver)}, {RunAt(1160, {3, 5, 80}, "b", kRuns)}},
       {.resumed = At(1140)},
       {{"waiting", 5}, {"start", 10}, {"training", 170}, {"restart", 23}, {"suspended", 1000}},
       81},
      {"resumed before the run ended", {{first(kOver)}, {second("b")}}, {.resumed = At(20)}, twice, 81},
      {"an agent that began before the one that was followed",
       {{peer(90, kRuns)}, {longer(kRuns)}},
       {},
       {{"waiting", 5}, {"start", 5}, {"training", 190}},
       95},
  };
  for (const Row& row : rows) {
    std::optional<JobTime> time;
    for (const auto& runs : row.told) {
      TimeFacts facts = row.facts;
      if (&runs != &row.told.front()) facts.running.insert(row.also_runs);
      for (const AgentRun& run : runs) {
        if (!run.over) facts.running.insert(run.pod);
      }
      time = AccountTime(time, runs, facts);
      EXPECT_EQ(AccountTime(time, runs, facts), time) << row.what;
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
      time = AccountTime(time, {RunAt(now, seconds, "a")}, facts);
      if (random() % 2 == 0) time = ReadJobTime(WriteJobTime(*time));
      end = now + sum;
      now = end + static_cast<double>(random() % 50);
    }
    double all = 0;
    for (const auto& [name, value] : SecondsOf(*time)) all += value;
    EXPECT_NEAR(all, end, 0.01 * end) << world;
  }
}

// The words of agents and the status come from outside.
TEST(AccountTime, OddTimesAreBounded) {
  const int most = static_cast<int>(kMostSecondsSpent);
  const std::vector<int> seconds(kTimeUses, most);
  std::optional<JobTime> time;
  for (int i = 0; i < 40; ++i) {
    AgentRun run = RunAt(0, seconds);
    run.time.began_unix_ms = i % 2 == 0 ? 0 : 4'000'000'000'000;
    if (i > 1) run.time.began_unix_ms = 4'000'000'000'000 - 100 + i;
    time = AccountTime(time, {run},
                       {.began = WallTime(std::chrono::hours(-24 * 365 * 2000)),
                        .resumed = WallTime(std::chrono::hours(24 * 365 * 9000))});
  }
  for (const auto& [name, value] : SecondsOf(*time)) EXPECT_LE(value, most) << name;
  Json written = WriteJobTime(*time);
  written["since"] = "0001-01-01T00:00:00Z";
  written["run"]["since"] = "9999-12-31T23:59:59Z";
  time = AccountTime(ReadJobTime(written), {RunAt(0, seconds)}, kFacts);
  for (const auto& [name, value] : SecondsOf(*time)) EXPECT_LE(value, most) << name;
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
