// SPDX-License-Identifier: Apache-2.0
// When `muster top` of an agent ends.
#include "agent/live/top_end.h"

#include <gtest/gtest.h>

#include "tests/agent/live/top_run.h"

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using rendezvous::StatusReport;

StatusReport With(void (*change)(StatusReport*)) {
  StatusReport report = SmallRun().report;
  change(&report);
  return report;
}

TEST(TopEnd, WhatAReportTellsOfTheEnd) {
  using Kind = ToldEnd::Kind;
  const struct {
    const char* name;
    void (*change)(StatusReport*);
    Kind kind;
    std::string text;
  } rows[] = {
      {"it runs", [](StatusReport*) {}, Kind::kNothing, ""},
      {"nobody is there", [](StatusReport* report) { report->nodes.clear(); }, Kind::kNothing, ""},
      {"one node has succeeded", [](StatusReport* report) { report->nodes[0].state = "succeeded"; }, Kind::kNothing,
       ""},
      {"all nodes have succeeded",
       [](StatusReport* report) {
         for (auto& node : report->nodes) node.state = "succeeded";
       },
       Kind::kSuccess, "all workers succeeded"},
      {"a spare does not count",
       [](StatusReport* report) {
         for (auto& node : report->nodes) node.state = "succeeded";
         report->nodes.push_back({.node = "spare", .state = "spare"});
       },
       Kind::kSuccess, "all workers succeeded"},
      {"all workers have",
       [](StatusReport* report) {
         report->nodes[0].state = "succeeded";
         for (auto& rank : report->nodes[1].telemetry->ranks) rank.exit_code = 0;
       },
       Kind::kSuccess, "all workers succeeded"},
      {"one worker has",
       [](StatusReport* report) {
         report->nodes[0].state = "succeeded";
         report->nodes[1].telemetry->ranks[0].exit_code = 0;
       },
       Kind::kNothing, ""},
      {"a node has not told of all its workers",
       [](StatusReport* report) {
         report->nodes[0].state = "succeeded";
         report->nodes[1].telemetry->ranks.resize(1);
         report->nodes[1].telemetry->ranks[0].exit_code = 0;
       },
       Kind::kNothing, ""},
      {"a worker has failed", [](StatusReport* report) { report->nodes[1].telemetry->ranks[0].exit_code = 3; },
       Kind::kFailure, "rank 2 on node-1 ended: exit code 3"},
      {"and the round is stopped",
       [](StatusReport* report) {
         report->phase = "stopping";
         report->nodes[1].telemetry->ranks[0].exit_code = 3;
       },
       Kind::kFailure, "rank 2 on node-1 ended: exit code 3"},
      {"a worker of the round before had failed",
       [](StatusReport* report) {
         report->nodes[1].telemetry->round = {1, 1};
         report->nodes[1].telemetry->ranks[0].exit_code = 3;
       },
       Kind::kNothing, ""},
      {"the next round is made",
       [](StatusReport* report) {
         report->phase = "gathering";
         report->nodes[1].telemetry->ranks[0].exit_code = 3;
       },
       Kind::kNothing, ""},
  };
  for (const auto& row : rows) {
    const ToldEnd told = ToldEndOf(With(row.change));
    EXPECT_EQ(told.kind, row.kind) << row.name;
    EXPECT_EQ(told.text, row.text) << row.name;
  }
}

TEST(TopEnd, WhatFollowsFromSilence) {
  constexpr bool kHeard = true, kRefuses = true, kIsOnly = true;
  const ToldEnd nothing, success{ToldEnd::Kind::kSuccess, ""}, failure{ToldEnd::Kind::kFailure, ""};
  const struct {
    TopSilence silence;
    ToldEnd told;
    TopNext next;
  } rows[] = {
      // No first answer: how the port behaves does not matter, the agent may begin soon.
      {{false, kRefuses, kIsOnly, 4s}, nothing, TopNext::kAskAgain},
      {{false, kRefuses, kIsOnly, 5s}, nothing, TopNext::kNeverHeard},
      {{false, false, false, 5s}, nothing, TopNext::kNeverHeard},
      // The end was told, and nobody is there.
      {{kHeard, kRefuses, kIsOnly, 2s}, success, TopNext::kAskAgain},
      {{kHeard, kRefuses, kIsOnly, 3s}, success, TopNext::kEnded},
      {{kHeard, kRefuses, kIsOnly, 3s}, failure, TopNext::kEnded},
      // Not told.
      {{kHeard, kRefuses, kIsOnly, 9s}, nothing, TopNext::kAskAgain},
      {{kHeard, kRefuses, kIsOnly, 10s}, nothing, TopNext::kAgentEnded},
      // It may be a network that fails, or there are other agents to ask.
      {{kHeard, false, kIsOnly, 59s}, success, TopNext::kAskAgain},
      {{kHeard, false, kIsOnly, 60s}, success, TopNext::kLost},
      {{kHeard, kRefuses, false, 59s}, success, TopNext::kAskAgain},
      {{kHeard, kRefuses, false, 60s}, nothing, TopNext::kLost},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(AfterSilence(row.silence, row.told, 5s), row.next) << "row " << &row - rows;
  }
}

TEST(TopEnd, TheLastPictureHasAllNodes) {
  const LiveView before = SmallRun();
  LiveView alone{.report = {}, .source = "node"};
  alone.report.phase = "finished";
  alone.report.reason = "all workers succeeded";
  alone.report.nodes = {{.node = "node-0"}};
  const LiveView whole = WithAllNodes(alone, before.report);
  EXPECT_EQ(whole.report.nodes, before.report.nodes);
  EXPECT_EQ(whole.report.rounds, before.report.rounds);
  EXPECT_EQ(Sentence(whole), "Ended: all workers succeeded");
  LiveView runs = alone;
  runs.report.phase = "running";
  EXPECT_EQ(WithAllNodes(runs, before.report).report, runs.report);
  LiveView told = alone;
  told.source = "coordinator";
  EXPECT_EQ(WithAllNodes(told, before.report).report, told.report);
  EXPECT_EQ(WithAllNodes(alone, {}).report, alone.report);
}

}  // namespace
}  // namespace muster::agent
