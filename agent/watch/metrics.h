// SPDX-License-Identifier: Apache-2.0
// What one agent counts, and its text for Prometheus in exposition format 0.0.4
// (prometheus.io/docs/instrumenting/exposition_formats). docs/watching.md says what each name means.
//
// Passive data and a pure function. Names follow Prometheus' conventions: base units (_seconds, _bytes), _total for
// counters. Nothing is counted per worker or per peer, so the number of series does not grow with the job.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/progress/time_ledger.h"

namespace muster::agent {

// Upper bounds of the buckets of restart times, in seconds.
inline constexpr std::array kRestartBounds = {0.05, 0.1,  0.25, 0.5,   1.0,   2.5,  5.0,
                                              10.0, 30.0, 60.0, 120.0, 300.0, 600.0};

struct RestartHistogram {
  std::array<uint64_t, kRestartBounds.size() + 1> counts{};  // of each bucket alone; the last one is above all bounds
  double sum = 0;                                            // seconds
  void Add(double seconds);
};

struct StoreMetrics {
  uint64_t operations = 0;
  uint64_t connections = 0;  // open now
  uint64_t accepted = 0;
  uint64_t violations = 0;
};

struct ProcessMetrics {
  int64_t started_unix_ms = 0;
  double cpu_seconds = 0;
  int64_t resident_bytes = 0;
};

struct Metrics {
  std::string version;
  std::string commit;
  std::string run_id;
  std::string node;
  bool in_round = false;                     // workers of a round run here
  int64_t round = -1;                        // number of the last round; -1: none yet
  uint64_t rounds = 0;                       // started on this node
  std::map<std::string, uint64_t> restarts;  // by cause; has every cause, also those with zero
  std::map<std::string, uint64_t> failures;  // workers of this node that failed by themselves, by class
  int restarts_charged = 0;                  // against the budget of the whole job
  int restarts_allowed = 0;
  RestartHistogram time_to_restart;
  double time_lost_seconds = 0;
  int workers = 0;                             // of this node in a round
  int workers_running = 0;                     // now
  int standby_workers = 0;                     // that are ready now
  uint64_t standby_starts = 0;                 // workers of this node that began in a standby
  std::optional<double> first_output_seconds;  // of the last round's workers, since their start; nullopt: none yet
  int world_size = 0;
  int nodes = 0;
  std::optional<StoreMetrics> store;  // if this node has served a store
  int64_t began_unix_ms = 0;          // when this agent started
  TimeSpent spent{};                  // since the start of this agent, by use
  TimeSpent spent_ended{};            // the same without the present span, which may turn out to be another use
  ProcessMetrics process;
};

// Escapes backslash, quote and line feed for the value of a label; replaces bytes that are no UTF-8.
std::string EscapeLabel(std::string_view value);

std::string ToExposition(const Metrics& metrics);
// For a process without rounds of its own: its version and its use of CPU and memory.
std::string ToExposition(std::string_view version, std::string_view commit, const ProcessMetrics& process);

// The content type of that text.
inline constexpr std::string_view kExpositionType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace muster::agent
