// SPDX-License-Identifier: Apache-2.0
// Whether workers of this node hang: a pure rule over what was observed. hang_guard.h observes.
//
// Two kinds of evidence, each with a limit of its own, both off unless asked for:
//   steps   a rank's heartbeat file does not change. Counts for a rank from its first beat on: a script that never
//           beats is never taken for a hang.
//   output  no rank of the job writes a byte. Counts from the start of the attempt, for all ranks together. One node
//           may be silent by design (only rank 0 prints), so each node tells the coordinator, which knows when all are.
//
// Only the moments at which this process noticed something count, by the monotonic clock, whatever the wall clock or a
// file server's clock does. A heartbeat file is looked at eight times per limit, so a hang is found between one limit
// and an eighth more after the last beat. Time in which this process did not run (a frozen pod) does not count.
//
// A rank that has ended does not hang. The ranks of a job wait for each other, so a rank that hangs soon stops all of
// them: the rank with the oldest last beat is named first, then the one with the lowest step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace muster::agent {

struct HangOptions {
  std::optional<Duration> step_timeout;  // --hang-timeout
  std::optional<Duration> log_timeout;   // --hang-log-timeout
  int signal = 0;                        // --hang-signal, on which workers write evidence of their own; 0: none
  bool on() const { return step_timeout || log_timeout; }
};

// Tells one content of a heartbeat file from the next. Never compared with a clock.
struct FileStamp {
  int64_t modified_ns = 0;
  int64_t size = 0;
  uint64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};

struct RankSeen {
  int local_rank = 0;
  bool ended = false;
  std::optional<FileStamp> stamp;  // of its heartbeat file; nullopt: not written yet
  std::optional<TimePoint> beat;   // when `stamp` was noticed
  std::optional<int64_t> step;     // the number in the file
};

struct HangFacts {
  TimePoint started{};
  std::vector<RankSeen> ranks;
  std::optional<TimePoint> output;    // when one of them last wrote a byte
  bool others_silent = false;         // every other node of the round is silent too, or there is none
  std::optional<TimePoint> expected;  // when the next look is due; set by Judge()
};

// Call it when the heartbeat file of `rank` looks like this.
void NoteBeat(RankSeen& rank, const FileStamp& stamp, std::optional<int64_t> step, TimePoint now);

struct Hang {
  int local_rank = 0;
  std::string evidence;  // "no step reported for 300 s (last step 120)"
};
struct HangJudgement {
  std::vector<Hang> hangs;              // the likeliest cause first; empty: none
  bool all_silent = false;              // the hang is the silence of the whole job: no rank of `hangs` is the cause
  bool silent = false;                  // this node's workers have written nothing for the limit
  std::optional<TimePoint> look_again;  // nullopt: a hang was found, or there is nothing to look at
};
// In `facts` it changes only `expected` and, if this process did not run for a time, moves the moments by that time.
HangJudgement Judge(const HangOptions& options, HangFacts& facts, TimePoint now);

// A warning to log once, if some rank lives and no rank has beaten within the limit; else empty.
std::string NeverBeat(const HangOptions& options, const HangFacts& facts, TimePoint now);

}  // namespace muster::agent
