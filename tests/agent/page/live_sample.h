// SPDX-License-Identifier: Apache-2.0
// A run for tests of the live page: it trains in its third round, and one rank is slow.
#pragma once

#include <fmt/format.h>

#include <cmath>

#include "agent/page/live_facts.h"

namespace muster::agent {

struct LiveSample {
  int nodes = 4, slots = 4;
  int tick = 0;  // seconds since the first look; most numbers depend on it
  int slow = 6;  // rank; -1: none
  bool gpu = false;
  std::string text = "step {} loss {:.3f}";  // of each rank's last line: fmt, of position and loss
  std::string name = "node-{}";              // of a node: fmt, of its number
};

inline double SampleLoss(double position) {
  return 2.3 * std::exp(-position / 900) + 0.12 + 0.02 * std::sin(position / 7);
}

inline rendezvous::RankTelemetry SampleRank(const LiveSample& sample, int rank) {
  using std::chrono::milliseconds;
  rendezvous::RankTelemetry told;
  told.local_rank = rank % sample.slots;
  told.pid = 1000 + rank;
  told.position = 1240 + 3 * sample.tick + rank % 2;
  told.end = 5000;
  told.loss = SampleLoss(*told.position);
  told.cpus = 1 + 0.1 * ((rank + sample.tick) % 5);
  told.memory_bytes = (int64_t{2048} + 16 * (rank % 7)) << 20;
  told.silent = milliseconds(200);
  told.step_time = milliseconds(rank == sample.slow ? 472 : 301 + rank * 7 % 23);
  if (sample.gpu) told.gpu_share = 0.9 + 0.01 * (rank % 5), told.gpu_memory_bytes = int64_t{31} << 30;
  told.last_line = fmt::format(fmt::runtime(sample.text), *told.position, *told.loss);
  return told;
}

inline LiveFacts SampleFacts(const LiveSample& sample) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  LiveFacts facts;
  facts.view.source = "coordinator";
  facts.view.job = "TrainJob digits";
  facts.view.version = "0.1.0";
  rendezvous::StatusReport& report = facts.view.report;
  report.run_id = "digits-7f";
  report.phase = "running";
  report.round = {1, 2};
  report.restart_count = 2;
  report.max_restarts = 5;
  report.min_nodes = report.max_nodes = sample.nodes;
  report.reason = "worker rank 3 on node-0 was killed by SIGKILL (out of memory)";
  const int workers = sample.nodes * sample.slots;
  for (int node = 0; node < sample.nodes; ++node) {
    rendezvous::StatusLine line;
    line.node = fmt::format(fmt::runtime(sample.name), node);
    line.host = fmt::format("digits-node-0-{}", node);
    line.state = "running";
    line.rank = node;
    line.slots = sample.slots;
    line.pid = 17;
    line.last_heard = milliseconds(300);
    rendezvous::Telemetry told;
    told.round = report.round;
    for (int rank = 0; rank < sample.slots; ++rank)
      told.ranks.push_back(SampleRank(sample, node * sample.slots + rank));
    for (int point = 0; node == 0 && point < 200; ++point) {
      const double position = (1240.0 + 3 * sample.tick) * point / 199;
      told.curve.push_back({position, SampleLoss(position)});
    }
    line.telemetry = std::move(told);
    report.nodes.push_back(std::move(line));
  }
  const auto mark = [&](int number, int began, std::optional<int> stopping, rendezvous::RoundCause cause,
                        const std::string& reason, const std::string& stop) {
    report.rounds.push_back({{1, number},
                             sample.nodes,
                             workers,
                             number,
                             cause,
                             reason,
                             seconds(began + sample.tick),
                             stopping ? std::optional<Duration>(seconds(*stopping + sample.tick)) : std::nullopt,
                             stop});
  };
  mark(0, 1450, 1190, rendezvous::RoundCause::kMembership, fmt::format("all {} nodes are ready", sample.nodes),
       "worker rank 1 on node-0 ended with exit code 1: RuntimeError: CUDA error: an illegal memory access");
  mark(1, 1184, 800, rendezvous::RoundCause::kFailure, "restart 1 of 5", report.reason);
  mark(2, 790, std::nullopt, rendezvous::RoundCause::kFailure, "restart 2 of 5", "");
  facts.pace = {.position = 1240 + 3 * sample.tick,
                .end = 5000,
                .epoch = std::nullopt,
                .loss = SampleLoss(1240 + 3 * sample.tick),
                .in_epochs = false,
                .step_time = milliseconds(312),
                .left = seconds(1174 - sample.tick),
                .slow = std::nullopt};
  facts.sentence = fmt::format("Training: {} workers on {} nodes, in round 2, for 13 min", workers, sample.nodes);
  if (sample.slow >= 0 && sample.slow < workers) {
    facts.pace.slow = {sample.slow, fmt::format(fmt::runtime(sample.name), sample.slow / sample.slots),
                       milliseconds(472), milliseconds(312)};
    facts.warnings.push_back(
        {LiveWarning::Kind::kSlow,
         fmt::format("Rank {} is slower than the others: 472 ms a step, the others 312 ms", sample.slow)});
  }
  facts.time.spent = {seconds(21), seconds(38), seconds(1130 + sample.tick), seconds(196), seconds(0), seconds(16)};
  facts.time.goodput = 1130.0 / 1401;
  return facts;
}

}  // namespace muster::agent
