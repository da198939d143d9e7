// SPDX-License-Identifier: Apache-2.0
#include "local/status_line.h"

#include <gtest/gtest.h>

#include "controller/plan/pytorch_plan.h"

namespace muster::local {

using namespace controller;

namespace {

TEST(StatusLine, ShowsWhatIsKnownAndFits) {
  const struct {
    StatusFacts facts;
    int width;
    const char* line;
  } rows[] = {
      {{.name = "a"}, 80, "a: Starting"},
      {{.name = "a", .state = "Running", .nodes = 2, .nodes_ready = 1, .restarts_left = 3},
       80,
       "a: Running | 1 of 2 nodes ready | 3 restarts left"},
      {{.name = "a", .state = "Running", .nodes = 1, .nodes_ready = 1, .restarts_left = 1},
       80,
       "a: Running | 1 of 1 node ready | 1 restart left"},
      {{.name = "a", .state = "Running", .nodes = 2, .nodes_ready = 2, .round = 0, .ranks = 4, .ranks_ready = 4},
       80,
       "a: Running | round 0 | 4 of 4 ranks ready"},
      {{.name = "a", .state = "Created", .download = "1 MB of 2 MB, 0 of 1 files"},
       80,
       "a: Created | 1 MB of 2 MB, 0 of 1 files"},
      {{.name = "a", .state = "x\033[2J\xC3\xA4"}, 80, "a: x?[2J??"},
      {{.name = "a"}, 12, "a: Starting"},
      {{.name = "a"}, 11, "a: Star..."},
      {{.name = "a"}, 4, "..."},
      {{.name = "a"}, 3, ""},
      {{.name = "a"}, 0, ""},
      {{.name = "a"}, -1, ""},
  };
  for (const auto& row : rows) EXPECT_EQ(StatusLine(row.facts, row.width), row.line) << row.width;
}

LocalJobState Job() { return {.kind = "TrainJob", .name = "a", .state = "Running", .restarts = 1, .budget = 3}; }

PodRecord Pod(const char* name, int node_rank, bool ready) {
  return {.name = name, .host = name, .node_rank = node_rank, .ready = ready};
}

TEST(StatusView, RoundsAndRanks) {
  StatusView view;
  std::vector<PodRecord> pods = {Pod("a-0", 0, true), Pod("a-1", 1, true)};
  EXPECT_EQ(StatusLine(view.Facts(Job(), pods), 80), "a: Running | 2 of 2 nodes ready | 2 restarts left");
  view.Take("a-0",
            "2026-11-27 02:39:59.059 I muster round 0: this is node 0 of 2, 2 workers of 4; all 2 nodes are ready");
  view.Take("a-1",
            "2026-11-27 02:39:59.059 I muster round 0: this is node 1 of 2, 2 workers of 4; all 2 nodes are ready");
  EXPECT_EQ(StatusLine(view.Facts(Job(), pods), 80), "a: Running | round 0 | 4 of 4 ranks ready | 2 restarts left");
  pods[1].ready = false;
  view.Take("a-0", "x I muster round 1: this is node 0 of 2, 2 workers of 4; restart 1 of 3");
  EXPECT_EQ(StatusLine(view.Facts(Job(), pods), 80), "a: Running | round 1 | 2 of 4 ranks ready | 2 restarts left");
  pods[1].ended = WallTime();
  pods.push_back(Pod("a-1-b", 1, true));
  view.Take("a-1-b", "x I muster round 2: this is node 1 of 2, 1 worker of 3; why");
  EXPECT_EQ(StatusLine(view.Facts(Job(), pods), 80), "a: Running | round 2 | 3 of 3 ranks ready | 2 restarts left");
}

TEST(StatusView, WhatIsNoSuchLine) {
  StatusView view;
  for (const char* line : {"", "round 7: this is node 0 of 2, 2 workers of 4; no", " I muster round",
                           " I muster round 7", " I muster round x: this is node 0 of 2, 2 workers of 4; no",
                           " I muster round 7: this is node 0 of 2, 2 workers of -4; no", " I muster 1 MB of 2 MB",
                           " I muster a, b files, c/s"}) {
    view.Take("a-0", line);
  }
  EXPECT_EQ(StatusLine(view.Facts(Job(), {Pod("a-0", 0, true)}), 80),
            "a: Running | 1 of 1 node ready | 2 restarts left");
}

TEST(StatusView, DownloadsUntilTheirPodHasEnded) {
  StatusView view;
  std::vector<PodRecord> pods = {Pod("a-data", -1, true)};
  view.Take("a-data", "x I muster 12.0 MB of 50.0 MB, 3 of 10 files, 5.0 MB/s, 8 s left");
  EXPECT_EQ(StatusLine(view.Facts(Job(), pods), 80),
            "a: Running | 12.0 MB of 50.0 MB, 3 of 10 files | 2 restarts left");
  pods[0].ended = WallTime();
  EXPECT_EQ(StatusLine(view.Facts(Job(), pods), 80), "a: Running | 2 restarts left");
}

TEST(StatusView, AnUnlimitedBudgetIsNotCounted) {
  LocalJobState job = Job();
  job.budget = kUnlimitedRestarts;
  EXPECT_EQ(StatusLine(StatusView().Facts(job, {}), 80), "a: Running");
}

}  // namespace
}  // namespace muster::local
