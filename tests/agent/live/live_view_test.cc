// SPDX-License-Identifier: Apache-2.0
#include "agent/live/live_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/watch/status_text.h"
#include "base/text.h"

namespace muster::agent {
namespace {

using rendezvous::RankTelemetry;
using rendezvous::StatusLine;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

// Two nodes of two ranks each, in round 2.
LiveView SomeView() {
  LiveView view;
  rendezvous::StatusReport& report = view.report;
  report = {"job-7", "running", {1, 2}, 1, 3, 2, 2, "restart 1 of 3"};
  report.heartbeat_timeout = seconds(15);
  for (int node = 0; node < 2; ++node) {
    StatusLine& line = report.nodes.emplace_back();
    line.node = fmt::format("node-{}", node);
    line.host = fmt::format("host-{}", node);
    line.state = "running";
    line.rank = node;
    line.slots = 2;
    line.pid = 10 + node;
    line.last_heard = milliseconds(20);
    rendezvous::Telemetry& told = line.telemetry.emplace();
    told.round = report.round;
    for (int local_rank = 0; local_rank < 2; ++local_rank) {
      RankTelemetry& rank = told.ranks.emplace_back();
      rank.local_rank = local_rank;
      rank.pid = 100 + 10 * node + local_rank;
      rank.cpus = 0.5;
      rank.memory_bytes = 1000;
      rank.last_line = "step 50";
      rank.silent = milliseconds(300);
      rank.position = 50 + node;
      rank.end = 150;
      rank.loss = 0.25;
      rank.step_time = milliseconds(100);
    }
  }
  report.nodes[0].telemetry->curve = {{1, 2.5}, {50, 0.25}};
  report.nodes[0].telemetry->seconds = {{"training", 90}, {"start", 10}};
  report.rounds.push_back({{1, 1},
                           2,
                           4,
                           0,
                           rendezvous::RoundCause::kMembership,
                           "all nodes are here",
                           seconds(100),
                           seconds(41),
                           "rank 1 failed"});
  report.rounds.push_back({{1, 2}, 2, 4, 1, rendezvous::RoundCause::kFailure, "restart 1 of 3", seconds(40)});
  view.source = "coordinator";
  view.version = "0.2.0";
  view.job = "TrainJob digits";
  return view;
}

TEST(LiveView, ComesBackFromItsJsonAsItWas) {
  const LiveView view = SomeView();
  const auto again = ParseLiveView(ToJson(view));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->report, view.report);
  EXPECT_EQ(again->source, view.source);
  EXPECT_EQ(again->job, view.job);
  EXPECT_EQ(again->version, view.version);
}

TEST(LiveView, OfAnOlderAgentWhatItTellsIsShown) {
  const auto view =
      ParseLiveView(R"({"run_id":"a","phase":"running","nodes":[{"node":"n","state":"running","rank":0}]})");
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->report.nodes.at(0).telemetry, std::nullopt);
  EXPECT_THAT(Sentence(*view), HasSubstr("Running"));
  EXPECT_EQ(PaceOf(view->report).position, std::nullopt);
  EXPECT_EQ(TimeOf(view->report).goodput, std::nullopt);
}

TEST(LiveView, AWrongFieldIsNamed) {
  const std::pair<const char*, const char*> rows[] = {
      {"[]", "no JSON object"},
      {"{", "1"},
      {R"({"run_id":5})", "run_id"},
      {R"({"round":-2})", "round"},
      {R"({"nodes":{}})", "nodes"},
      {R"({"nodes":[{"rank":-1}]})", "rank"},
      {R"({"nodes":[{"ranks":[{"pid":"x"}]}]})", "pid"},
      {R"({"nodes":[{"ranks":[{"step_seconds":-1}]}]})", "step_seconds"},
      {R"({"rounds":[{"began_seconds":1e99}]})", "began_seconds"},
      {R"({"lost":[{"lost_seconds":"x"}]})", "lost_seconds"},
  };
  for (const auto& [json, word] : rows) {
    const auto view = ParseLiveView(json);
    ASSERT_FALSE(view.ok()) << json;
    EXPECT_EQ(view.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(view.status().message()), HasSubstr(word)) << json;
  }
}

// A hostile answer may say that nodes have any number of slots.
TEST(LiveView, RanksAreBounded) {
  LiveView view = SomeView();
  EXPECT_THAT(FirstRanks(view.report.nodes), ElementsAre(0, 2));
  std::swap(view.report.nodes[0], view.report.nodes[1]);
  EXPECT_THAT(FirstRanks(view.report.nodes), ElementsAre(2, 0));
  view.report.nodes[0].rank.reset();
  EXPECT_THAT(FirstRanks(view.report.nodes), ElementsAre(std::nullopt, 0));
  view.report.nodes.assign(1000, view.report.nodes[1]);
  for (StatusLine& line : view.report.nodes) line.slots = 10'000'000;
  EXPECT_EQ(FirstRanks(view.report.nodes).back(), 1 << 30);
  EXPECT_THAT(Sentence(view), HasSubstr("10000000000 workers on 1000 nodes"));
  EXPECT_TRUE(ParseLiveView(ToJson(view)).ok());
}

TEST(LiveView, ThePaceIsThatOfTheRanks) {
  LiveView view = SomeView();
  LivePace pace = PaceOf(view.report);
  EXPECT_EQ(pace.position, 51);
  EXPECT_EQ(pace.behind, 50);
  EXPECT_EQ(pace.end, 150);
  EXPECT_EQ(pace.loss, 0.25);
  EXPECT_EQ(pace.step_time, Duration(milliseconds(100)));
  EXPECT_EQ(pace.left, Duration(seconds(10)));
  EXPECT_FALSE(pace.slow.has_value());

  view.report.nodes[1].telemetry->ranks[1].step_time = milliseconds(124);
  EXPECT_FALSE(PaceOf(view.report).slow.has_value()) << "within the factor";
  view.report.nodes[1].telemetry->ranks[1].step_time = milliseconds(130);
  pace = PaceOf(view.report);
  ASSERT_TRUE(pace.slow.has_value());
  EXPECT_EQ(pace.slow->rank, 3);
  EXPECT_EQ(pace.slow->node, "node-1");
  EXPECT_EQ(pace.slow->step_time, Duration(milliseconds(130)));
  EXPECT_EQ(pace.slow->others, Duration(milliseconds(100)));
  EXPECT_EQ(pace.left, Duration(milliseconds(99 * 130)));

  view.report.nodes[0].telemetry->round = {1, 1};  // of the attempt before
  pace = PaceOf(view.report);
  EXPECT_FALSE(pace.slow.has_value()) << "two ranks are too few";
  EXPECT_EQ(pace.position, 51);
}

TEST(LiveView, GoodputIsTheShareThatTrained) {
  const LiveTime time = TimeOf(SomeView().report);
  EXPECT_EQ(time.goodput, 0.9);
  EXPECT_EQ(time.spent[static_cast<size_t>(TimeUse::kStart)], Duration(seconds(10)));
}

TEST(LiveView, OneSentenceSaysWhereTheTimeWent) {
  TimeSpent spent{};
  EXPECT_EQ(TimeSentence(spent), "");
  const auto put = [&](TimeUse use, Duration time) { spent[static_cast<size_t>(use)] = time; };
  put(TimeUse::kTraining, seconds(600));
  EXPECT_EQ(TimeSentence(spent), "goodput 100.0 %: trained for 10 min 00 s of 10 min 00 s");
  put(TimeUse::kStart, seconds(45));
  put(TimeUse::kRestart, seconds(60));
  put(TimeUse::kRedone, seconds(15));
  put(TimeUse::kHang, milliseconds(5));
  EXPECT_EQ(TimeSentence(spent),
            "goodput 83.3 %: trained for 10 min 00 s of 12 min 00 s; lost: restart 1 min 00 s, start 45.0 s, redone "
            "15.0 s");
}

TEST(LiveView, OneSentenceSaysWhatTheRunDoes) {
  LiveView view = SomeView();
  EXPECT_EQ(Sentence(view), "Training: 4 workers on 2 nodes, in round 2, for 40.0 s");
  for (StatusLine& line : view.report.nodes) line.telemetry.reset();
  EXPECT_EQ(Sentence(view), "Running: 4 workers on 2 nodes, in round 2, for 40.0 s");
  view.report.nodes[0].state = "succeeded";
  EXPECT_EQ(Sentence(view), "Ending: 1 of 2 nodes have succeeded");
  view.report.phase = "stopping";
  EXPECT_EQ(Sentence(view), "Restarting: restart 1 of 3");
  view.report.phase = "finished";
  EXPECT_EQ(Sentence(view), "Ended: restart 1 of 3");
  view.report.phase = "gathering";
  view.report.round = {1, -1};
  view.report.nodes[0].state = view.report.nodes[1].state = "waiting";
  view.report.min_nodes = view.report.max_nodes = 3;
  view.report.reason = "node 2 is missing";
  EXPECT_EQ(Sentence(view), "Waiting for the first round: 2 of 3 nodes are here: node 2 is missing");
  view.report.min_nodes = 2;
  view.report.round = {1, 2};
  EXPECT_EQ(Sentence(view), "Waiting for a round: 2 of 2 to 3 nodes are here: node 2 is missing");
}

TEST(LiveView, WhatIsWrongIsNamedWithItsEvidence) {
  LiveView view = SomeView();
  EXPECT_THAT(WarningsOf(view), IsEmpty());
  view.report.nodes[1].telemetry->ranks[0].exit_code = 137;
  WorkerFailure failure;
  failure.node = "node-1";
  failure.rank = 2;
  failure.exit_code = 1;
  failure.stderr_reason = "ValueError: no data";
  view.report.overcome = failure;
  view.report.lost.push_back({"node-2", "", "", true, seconds(3), seconds(4)});
  view.report.nodes[0].last_heard = seconds(9);
  view.report.nodes[0].remark = "slow: memory 3.1 GB/s, the others 12.4 GB/s";
  view.report.nodes[1].telemetry->ranks[1].step_time = seconds(1);
  std::vector<std::string> texts;
  for (const LiveWarning& warning : WarningsOf(view)) texts.push_back(warning.text);
  EXPECT_THAT(texts, ElementsAre("rank 2 on node-1 ended: exit code 137 (128 + SIGKILL)",
                                 "node node-2 was lost 3.00 s ago: its connection closed",
                                 "node node-0 was last heard 9.00 s ago; after 15.0 s it counts as lost",
                                 "node node-0 is slow: memory 3.1 GB/s, the others 12.4 GB/s",
                                 "rank 3 on node-1 is slow: 1.00 s a step, the others 100 ms",
                                 "overcome by restart 1 of 3: worker rank 2 on node-1 ended: exit code 1: "
                                 "ValueError: no data"));
  view.report.phase = "stopping";
  EXPECT_EQ(WarningsOf(view).at(1).text,
            "restart 1 of 3: worker rank 2 on node-1 ended: exit code 1: ValueError: no data");
  EXPECT_EQ(WarningsOf(view).at(1).kind, LiveWarning::Kind::kFailure);
  view.report.lost.assign(100, {"node-2", "", "", true, seconds(3), seconds(4)});
  EXPECT_EQ(WarningsOf(view).size(), 20u);
}

}  // namespace
}  // namespace muster::agent
