// Whether workers of this node stand still: a pure rule over what was seen of them. hang_guard.h does the seeing.
//
// Two kinds of evidence, each with a limit of its own, both off unless asked for:
//   steps   a rank's heartbeat file does not change. Counts for a rank from its first beat on: a script that never
//           beats is never taken for a hang.
//   output  no rank of the job writes a byte. Counts from the start of the attempt, for all ranks together: one node
//   may
//           be silent by design (only rank 0 prints), so the coordinator is told, and knows when all nodes are.
//
// Only the moments at which this process noticed something count, by the monotonic clock: a jump of the wall clock, or
// a file server with another clock, changes nothing. A heartbeat file is looked at eight times per limit, so a hang is
// found between one limit and an eighth more after the last beat. Time in which this process itself did not run (a
// frozen pod) is not counted against anybody.
//
// A rank that has ended does not hang. Ranks of a job wait for each other, so that one that hangs soon stops all: the
// one whose last beat is the oldest is named first, then the one with the lowest step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace muster::agent {

struct HangOptions {
  std::optional<Duration> step_timeout;  // --hang-timeout
  std::optional<Duration> log_timeout;   // --hang-log-timeout
  int signal = 0;                        // --hang-signal, sent to the workers for their own evidence; 0: none
  bool on() const { return step_timeout || log_timeout; }
};

// What tells one content of a heartbeat file from the next. Never compared with a clock.
struct FileStamp {
  int64_t modified_ns = 0;
  int64_t size = 0;
  uint64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};

struct RankSeen {
  int local_rank = 0;
  bool ended = false;
  std::optional<FileStamp> stamp;  // of its heartbeat file, since it was written first
  std::optional<TimePoint> beat;   // when that was noticed
  std::optional<int64_t> step;     // the number in it
};

struct HangFacts {
  TimePoint started{};
  std::vector<RankSeen> ranks;
  std::optional<TimePoint> output;    // the last byte any of them wrote
  bool others_silent = false;         // every other node of the round is silent too, or there is none
  std::optional<TimePoint> expected;  // when the next look was to be; kept by Judge
};

// The heartbeat file of `rank` looks like this now.
void NoteBeat(RankSeen& rank, const FileStamp& stamp, std::optional<int64_t> step, TimePoint now);

struct Hang {
  int local_rank = 0;
  std::string evidence;  // "no step reported for 300 s (last step 120)"
};
struct HangJudgement {
  std::vector<Hang> hangs;              // the likeliest cause first; empty: none
  bool all_silent = false;              // by silence, which is the whole job's: no rank of `hangs` is the cause
  bool silent = false;                  // this node's workers have written nothing for the limit
  std::optional<TimePoint> look_again;  // nullopt: a hang was found, or there is nothing to look at
};
// Changes nothing in `facts` but `expected`, and the moments that a time without us has put off.
HangJudgement Judge(const HangOptions& options, HangFacts& facts, TimePoint now);

// What the user is told once when some rank lives and none has ever beaten within the limit; empty: nothing.
std::string NeverBeat(const HangOptions& options, const HangFacts& facts, TimePoint now);

}  // namespace muster::agent
