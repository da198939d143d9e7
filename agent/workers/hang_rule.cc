// SPDX-License-Identifier: Apache-2.0
#include "agent/workers/hang_rule.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"

namespace muster::agent {
namespace {

constexpr int kLooksPerLimit = 8;
// A look later than this: this process did not run. A busy machine may cost a little time, never a false hang.
constexpr Duration kLate = std::chrono::seconds(1);

std::string Seconds(Duration duration) {
  double seconds = std::chrono::duration<double>(duration).count();
  return seconds < 10 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.0f} s", seconds);
}

std::string StepEvidence(const RankSeen& rank, TimePoint now) {
  std::string silent = Seconds(now - *rank.beat);
  return rank.step ? fmt::format("no step reported for {} (last step {})", silent, *rank.step)
                   : fmt::format("no heartbeat for {}", silent);
}

bool Watched(const RankSeen& rank) { return !rank.ended && rank.beat.has_value(); }

bool Before(const RankSeen* a, const RankSeen* b) {
  auto key = [](const RankSeen* rank) {
    // The stamps of one file system order the beats that were noticed in the same look.
    return std::tuple(*rank->beat, rank->step.value_or(0), rank->stamp ? rank->stamp->modified_ns : 0);
  };
  return key(a) < key(b);
}

void Excuse(HangFacts& facts, Duration frozen) {
  facts.started += frozen;
  if (facts.output) *facts.output += frozen;
  for (RankSeen& rank : facts.ranks) {
    if (rank.beat) *rank.beat += frozen;
  }
}

}  // namespace

void NoteBeat(RankSeen& rank, const FileStamp& stamp, std::optional<int64_t> step, TimePoint now) {
  if (rank.stamp == stamp) return;
  rank.stamp = stamp;
  rank.step = step;
  rank.beat = now;
}

HangJudgement Judge(const HangOptions& options, HangFacts& facts, TimePoint now) {
  if (facts.expected && now - *facts.expected > kLate) Excuse(facts, now - *facts.expected);
  facts.expected.reset();
  HangJudgement judgement;
  bool all_ended = std::all_of(facts.ranks.begin(), facts.ranks.end(), [](const RankSeen& rank) { return rank.ended; });
  if (all_ended) return judgement;
  if (options.step_timeout) {
    std::vector<const RankSeen*> overdue;
    TimePoint next = now + *options.step_timeout / kLooksPerLimit;
    for (const RankSeen& rank : facts.ranks) {
      if (!Watched(rank)) continue;
      TimePoint due = std::min(*rank.beat, now) + *options.step_timeout;
      if (due <= now) overdue.push_back(&rank);
      next = std::min(next, due);
    }
    std::stable_sort(overdue.begin(), overdue.end(), Before);
    for (const RankSeen* rank : overdue) judgement.hangs.push_back({rank->local_rank, StepEvidence(*rank, now)});
    judgement.look_again = next;
  }
  if (options.log_timeout) {
    TimePoint last = std::min(std::max(facts.output.value_or(facts.started), facts.started), now);
    TimePoint due = last + *options.log_timeout;
    judgement.silent = due <= now;
    if (judgement.silent && facts.others_silent && judgement.hangs.empty()) {
      for (const RankSeen& rank : facts.ranks) {
        if (rank.ended) continue;
        judgement.hangs.push_back(
            {rank.local_rank, fmt::format("all workers of the job have been silent for {}", Seconds(now - last))});
      }
      judgement.all_silent = true;
    }
    if (judgement.silent) due = now + *options.log_timeout / kLooksPerLimit;  // to see whether they write again
    judgement.look_again = Earlier(judgement.look_again, due);
  }
  if (!judgement.hangs.empty()) judgement.look_again.reset();
  facts.expected = judgement.look_again;
  return judgement;
}

std::string NeverBeat(const HangOptions& options, const HangFacts& facts, TimePoint now) {
  if (!options.step_timeout || now - facts.started < *options.step_timeout) return "";
  bool alive = false;
  for (const RankSeen& rank : facts.ranks) {
    if (rank.beat) return "";
    alive |= !rank.ended;
  }
  if (!alive) return "";
  return fmt::format(
      "--hang-timeout: no worker has written to its MUSTER_HEARTBEAT_FILE yet, and without a first beat it finds no "
      "hang; {}",
      options.log_timeout ? "until then only --hang-log-timeout does, by silence"
                          : "for a script that does not beat give --hang-log-timeout, which finds one by silence");
}

}  // namespace muster::agent
