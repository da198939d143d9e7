// SPDX-License-Identifier: Apache-2.0
// What an agent tells of its node's workers while somebody looks at the run: their state, what they use, the last line
// that each wrote, how far its training is. Passive values; nothing is decided by them.
//
// The coordinator asks for it (TelemetryWanted in messages.h), so a run that nobody looks at sends none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "rendezvous/round.h"

namespace muster::rendezvous {

inline constexpr size_t kMaxLastLine = 240;  // bytes
inline constexpr size_t kMaxCurvePoints = 256;

struct RankTelemetry {
  int local_rank = 0;
  int64_t pid = 0;
  std::optional<int> exit_code;     // it has ended; 128 + n for signal n
  double cpus = 0;                  // cores in use, with its child processes, over the last second
  int64_t memory_bytes = 0;         // resident, with its child processes
  std::optional<double> gpu_share;  // 0 to 1: how busy its GPUs are; nullopt: not known
  std::optional<int64_t> gpu_memory_bytes;
  std::string last_line;           // the newest line of its output, UTF-8; empty: none was seen
  std::optional<Duration> silent;  // since its last output; nullopt: none was seen
  // As in agent/progress/rank_progress.h.
  std::optional<double> position, end, epoch, loss;
  bool in_epochs = false;
  std::optional<Duration> step_time;
  bool operator==(const RankTelemetry&) const = default;
};

// A point of the loss curve: position and loss, both finite.
struct CurvePoint {
  double position = 0;
  double loss = 0;
  bool operator==(const CurvePoint&) const = default;
};

struct Telemetry {
  RoundId round;                          // of these workers
  std::vector<RankTelemetry> ranks;       // by local rank
  std::vector<CurvePoint> curve;          // of the rank that is furthest; only from the node with rank 0
  std::map<std::string, double> seconds;  // where the node's time went, by use (agent/progress/time_ledger.h)
  bool operator==(const Telemetry&) const = default;
};

// A round as the coordinator saw it. The newest kMostMarks are kept; a coordinator that took over knows its own alone.
struct RoundMark {
  RoundId id;
  int nodes = 0;
  int world_size = 0;
  int restart_count = 0;
  RoundCause cause = RoundCause::kMembership;
  std::string reason;                // why it was made
  Duration began{};                  // how long ago
  std::optional<Duration> stopping;  // how long ago it began to end; nullopt: it goes on
  std::string stop_reason;
  bool operator==(const RoundMark&) const = default;
};
inline constexpr size_t kMostMarks = 100;

}  // namespace muster::rendezvous
