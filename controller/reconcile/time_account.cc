// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/time_account.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "controller/reconcile/train_job_conditions.h"

namespace muster::controller {
namespace {

// By which the clocks of two machines may differ.
constexpr std::chrono::seconds kSkew{5};

size_t At(TimeUse use) { return static_cast<size_t>(use); }

WallTime BeginOf(const RunTime& run) { return WallTime(std::chrono::milliseconds(run.began_unix_ms)); }

WallTime EndOf(const RunTime& run) { return BeginOf(run) + std::chrono::floor<WallTime::duration>(TotalOf(run.spent)); }

TimeSpent InMillis(TimeSpent spent) {
  for (Duration& time : spent) time = std::chrono::floor<std::chrono::milliseconds>(Bounded(time));
  return spent;
}

// In whole milliseconds. The times may be any that a status says, so as nanoseconds they may not fit.
Duration Between(WallTime from, WallTime to) {
  const auto between = std::chrono::floor<std::chrono::milliseconds>(to - from);
  constexpr auto kMost = std::chrono::milliseconds(static_cast<int64_t>(1000 * kMostSecondsSpent));
  return std::clamp<std::chrono::milliseconds>(between, std::chrono::milliseconds(0), kMost);
}

// Whether an attempt has worked before the present run.
bool HasWorked(const TimeSpent& earlier) { return TotalOf(earlier) > earlier[At(TimeUse::kWaiting)]; }

RunTime AsPart(RunTime run, const TimeSpent& earlier) {
  if (!HasWorked(earlier)) return run;
  Duration& restart = run.spent[At(TimeUse::kRestart)];
  restart = Bounded(restart + run.spent[At(TimeUse::kWaiting)]);
  run.spent[At(TimeUse::kWaiting)] = {};
  return run;
}

JobTime First(const AgentRun& first, const TimeFacts& facts) {
  JobTime time{.since = BeginOf(first.time), .pod = first.pod, .run = first.time};
  WallTime from = facts.began.value_or(time.since);
  if (facts.initializers) {
    time.initializers = Between(from, *facts.initializers);
    from = std::max(from, *facts.initializers);
  }
  time.pods = Between(from, time.since);
  return time;
}

void Follow(const AgentRun& run, const TimeFacts& facts, JobTime* time) {
  const RunTime& next = run.time;
  const WallTime ended = EndOf(time->run);
  const WallTime resumed = std::min(facts.resumed.value_or(ended), BeginOf(next));
  const Duration suspended = Between(ended, resumed);
  time->suspended = Bounded(time->suspended + suspended);
  time->earlier = AgentsTime(*time);
  Duration& restart = time->earlier[At(TimeUse::kRestart)];
  restart = Bounded(restart + Between(ended, BeginOf(next)) - suspended);
  time->pod = run.pod;
  time->run = AsPart(next, time->earlier);
}

// `next`: of another agent, over the same time as the run that is not heard any more.
void Replace(const AgentRun& run, JobTime* time) {
  const RunTime& next = run.time;
  time->since = std::min(time->since, BeginOf(next));
  time->earlier = {};
  time->earlier[At(TimeUse::kWaiting)] = Between(time->since, BeginOf(next));
  time->pod = run.pod;
  time->run = next;
}

bool IsOf(const AgentRun& run, const JobTime& time) {
  return run.pod == time.pod && run.time.began_unix_ms == time.run.began_unix_ms;
}

// Whether it began after the run that is followed. Clocks of machines differ, by less than half of a run. In the unit
// of WallTime, since a year that a status says may not fit into nanoseconds.
bool IsLater(const AgentRun& run, const JobTime& time) {
  const auto half = std::chrono::floor<WallTime::duration>(TotalOf(time.run.spent) / 2);
  const auto slack = std::min<WallTime::duration>(kSkew, half);
  return BeginOf(run.time) + slack >= EndOf(time.run) && BeginOf(run.time) > BeginOf(time.run);
}

// Of `runs` in the order of their begins: what is new about the run that is followed. True: its agent may tell more.
bool Hear(const std::vector<AgentRun>& runs, const TimeFacts& facts, JobTime* time) {
  bool over = false;
  for (const AgentRun& run : runs) {
    over = over || (run.pod == time->pod && IsLater(run, *time));  // its container was started again
    if (!IsOf(run, *time)) continue;
    over = over || run.over;
    if (TotalOf(run.time.spent) > TotalOf(time->run.spent)) time->run = AsPart(run.time, time->earlier);
  }
  if (over) return false;
  if (facts.running.contains(time->pod)) return true;
  const AgentRun* other = nullptr;  // of the same time
  for (const AgentRun& run : runs) {
    if (IsOf(run, *time) || IsLater(run, *time) || EndOf(run.time) <= EndOf(time->run) + kSkew) continue;
    if (other == nullptr || EndOf(run.time) > EndOf(other->time)) other = &run;
  }
  if (other == nullptr) return false;
  Replace(*other, time);
  return Hear(runs, facts, time);
}

}  // namespace

std::optional<JobTime> AccountTime(std::optional<JobTime> known, std::vector<AgentRun> runs, const TimeFacts& facts) {
  for (AgentRun& run : runs) run.time.spent = InMillis(run.time.spent);
  std::sort(runs.begin(), runs.end(), [](const AgentRun& a, const AgentRun& b) {
    return std::tie(a.time.began_unix_ms, a.pod) < std::tie(b.time.began_unix_ms, b.pod);
  });
  if (!known && !runs.empty()) known = First(runs.front(), facts);
  while (known && !Hear(runs, facts, &*known)) {
    const auto next =
        std::find_if(runs.begin(), runs.end(), [&known](const AgentRun& run) { return IsLater(run, *known); });
    if (next == runs.end()) break;
    Follow(*next, facts, &*known);
  }
  return known;
}

void Account(const std::vector<Placed>& all, const std::optional<AgentsSaid>& agents, WallTime now,
             TrainJobDecision* decision) {
  TrainJobStatus& status = decision->status;
  TimeFacts facts{.began = status.start_time};
  const Condition* suspended = status.Find(kSuspended);
  if (suspended != nullptr && !suspended->status) facts.resumed = suspended->since;
  if (facts.began && facts.resumed) facts.began = std::max(*facts.began, *facts.resumed);
  std::vector<AgentRun> runs;
  std::vector<std::pair<RunTime, TrainingFacts>> trainings;
  const auto hear = [&](const ObservedPod& pod, bool over, const auto& said) {
    if (!said.time) return;
    runs.push_back({pod.meta.name, over, *said.time});
    if (said.training) trainings.emplace_back(*said.time, *said.training);
  };
  for (const Placed& placed : all) {
    if (IsInitializer(*placed.planned) && placed.job != nullptr && placed.job->complete_at) {
      facts.initializers = std::max(facts.initializers.value_or(WallTime::min()), *placed.job->complete_at);
    }
    for (const ObservedPod* pod : placed.pods) {
      if (pod->phase == "Running") facts.running.insert(pod->meta.name);
      if (agents && agents->pod_uid == pod->meta.uid) hear(*pod, false, *agents);
      for (const ObservedEnd& end : pod->ends) {
        if (end.message) hear(*pod, true, *end.message);
      }
    }
  }
  status.time = AccountTime(std::move(status.time), std::move(runs), facts);
  // Of the run that is followed, else the newest.
  const auto order = [&status](const auto& told) {
    return std::pair(told.first.began_unix_ms == status.time->run.began_unix_ms, EndOf(told.first));
  };
  const auto newest = std::max_element(trainings.begin(), trainings.end(),
                                       [&order](const auto& a, const auto& b) { return order(a) < order(b); });
  if (newest == trainings.end()) return;
  decision->training = newest->second;
  decision->training_at = now;
}

}  // namespace muster::controller
