// SPDX-License-Identifier: Apache-2.0
// A run for the tests of `muster top`: two nodes of two ranks each, and one that is lost.
#pragma once

#include <string>

#include "agent/live/terminal_frame.h"
#include "agent/live/top_state.h"

namespace muster::agent {

inline constexpr TimePoint kNow{std::chrono::hours(5)};

inline rendezvous::RankTelemetry WorkerOf(int local_rank, double cpus, int64_t megabytes, std::string line) {
  rendezvous::RankTelemetry worker{.local_rank = local_rank, .pid = 200 + local_rank, .cpus = cpus};
  worker.memory_bytes = megabytes << 20;
  worker.last_line = std::move(line);
  worker.silent = std::chrono::seconds(local_rank);
  worker.position = 250 - local_rank;
  worker.end = 1000;
  worker.loss = 0.1234;
  worker.step_time = std::chrono::milliseconds(350);
  return worker;
}

inline rendezvous::StatusLine NodeOf(int rank, std::vector<rendezvous::RankTelemetry> workers) {
  const std::string name = "node-" + std::to_string(rank);
  rendezvous::StatusLine node{.node = name, .host = "host-" + std::to_string(rank), .state = "running", .rank = rank};
  node.slots = static_cast<int>(workers.size());
  node.pid = 100 + rank;
  node.last_heard = std::chrono::milliseconds(400);
  node.telemetry = rendezvous::Telemetry{.round = {1, 2}, .ranks = std::move(workers), .curve = {}, .seconds = {}};
  return node;
}

inline LiveView SmallRun() {
  LiveView view{.report = {}, .source = "coordinator", .source_reason = "", .job = "TrainJob digits", .version = ""};
  rendezvous::StatusReport& report = view.report;
  report.run_id = "digits";
  report.phase = "running";
  report.round = {1, 2};
  report.restart_count = 1;
  report.max_restarts = 3;
  report.min_nodes = 2;
  report.max_nodes = 3;
  report.reason = "node node-2 is lost: its connection closed";
  report.nodes = {NodeOf(0, {WorkerOf(0, 1.02, 1200, "step 250 of 1000 loss 0.1234"), WorkerOf(1, 0.97, 900, "")}),
                  NodeOf(1, {WorkerOf(0, 3.5, 2048, "Waiting for data"), WorkerOf(1, 0.01, 700, "中文 é")})};
  report.nodes[0].telemetry->seconds = {{"training", 93.0}, {"start", 2.0}, {"restart", 5.0}};
  report.lost = {{.node = "node-2", .host = "host-2", .control_address = "", .closed = true}};
  report.lost[0].lost = std::chrono::seconds(30);
  report.lost[0].last_heard = std::chrono::seconds(31);
  using std::chrono::minutes;
  report.rounds = {
      {.id = {1, 0}, .nodes = 3, .began = minutes(60), .stopping = minutes(40)},
      {.id = {1, 1}, .cause = rendezvous::RoundCause::kFailure, .began = minutes(39), .stopping = minutes(10)},
      {.id = {1, 2}, .cause = rendezvous::RoundCause::kMembership, .began = minutes(9)}};
  return view;
}

inline TopState StateOf(const LiveView& view, Size size) {
  TopState state;
  state.facts.target = {.kind = TopTarget::Kind::kCoordinator, .host = "10.0.0.7", .port = 29400};
  state.facts.came = kNow;
  return Settled(std::move(state), view, size, kNow);
}

inline std::string TextOf(const Picture& picture) {
  std::string text;
  for (const Line& line : picture.lines) text += line.Text() + "\n";
  return text;
}

}  // namespace muster::agent
