#include "controller/reconcile/time_account.h"

#include <algorithm>
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
  for (Duration& time : spent) time = std::chrono::floor<std::chrono::milliseconds>(time);
  return spent;
}

// At least 0, in whole milliseconds.
Duration Between(WallTime from, WallTime to) {
  return std::max(Duration{}, Duration(std::chrono::floor<std::chrono::milliseconds>(to - from)));
}

// Whether an attempt has worked before the present run.
bool HasWorked(const TimeSpent& earlier) { return TotalOf(earlier) > earlier[At(TimeUse::kWaiting)]; }

RunTime AsPart(RunTime run, const TimeSpent& earlier) {
  if (!HasWorked(earlier)) return run;
  run.spent[At(TimeUse::kRestart)] += run.spent[At(TimeUse::kWaiting)];
  run.spent[At(TimeUse::kWaiting)] = {};
  return run;
}

JobTime First(const RunTime& run, const TimeFacts& facts) {
  JobTime time{.since = BeginOf(run), .run = run};
  WallTime from = facts.began.value_or(time.since);
  if (facts.initializers) {
    time.initializers = Between(from, *facts.initializers);
    from = std::max(from, *facts.initializers);
  }
  time.pods = Between(from, time.since);
  return time;
}

void Follow(const RunTime& next, const TimeFacts& facts, JobTime* time) {
  const WallTime ended = EndOf(time->run);
  const WallTime resumed = std::min(facts.resumed.value_or(ended), BeginOf(next));
  const Duration suspended = Between(ended, resumed);
  time->suspended += suspended;
  time->earlier = AgentsTime(*time);
  time->earlier[At(TimeUse::kRestart)] += Between(ended, BeginOf(next)) - suspended;
  time->run = AsPart(next, time->earlier);
}

// `next`: of another agent, over the same time as the run that is not heard any more.
void Replace(const RunTime& next, JobTime* time) {
  time->since = std::min(time->since, BeginOf(next));
  time->earlier = {};
  time->earlier[At(TimeUse::kWaiting)] = Between(time->since, BeginOf(next));
  time->run = next;
}

}  // namespace

std::optional<JobTime> AccountTime(std::optional<JobTime> known, std::vector<RunTime> runs, const TimeFacts& facts) {
  for (RunTime& run : runs) run.spent = InMillis(run.spent);
  std::sort(runs.begin(), runs.end(), [](const RunTime& a, const RunTime& b) {
    return a.began_unix_ms != b.began_unix_ms ? a.began_unix_ms < b.began_unix_ms : TotalOf(a.spent) < TotalOf(b.spent);
  });
  for (const RunTime& run : runs) {
    if (!known) {
      known = First(run, facts);
    } else if (run.began_unix_ms == known->run.began_unix_ms) {
      if (TotalOf(run.spent) > TotalOf(known->run.spent)) known->run = AsPart(run, known->earlier);
    } else if (BeginOf(run) + kSkew >= EndOf(known->run)) {
      Follow(run, facts, &*known);
    }
  }
  if (!known) return known;
  const bool heard = std::any_of(
      runs.begin(), runs.end(), [&known](const RunTime& run) { return run.began_unix_ms == known->run.began_unix_ms; });
  const RunTime* last = nullptr;
  for (const RunTime& run : runs) {
    if (last == nullptr || EndOf(run) > EndOf(*last)) last = &run;
  }
  if (!heard && last != nullptr && EndOf(*last) > EndOf(known->run) + kSkew) Replace(*last, &*known);
  return known;
}

void Account(const std::vector<Placed>& all, const std::optional<AgentsSaid>& agents, WallTime now,
             TrainJobDecision* decision) {
  TrainJobStatus& status = decision->status;
  TimeFacts facts{.began = status.start_time};
  const Condition* suspended = status.Find(kSuspended);
  if (suspended != nullptr && !suspended->status) facts.resumed = suspended->since;
  if (facts.began && facts.resumed) facts.began = std::max(*facts.began, *facts.resumed);
  std::vector<RunTime> runs;
  std::vector<std::pair<RunTime, TrainingFacts>> trainings;
  const auto hear = [&](const std::optional<RunTime>& time, const std::optional<TrainingFacts>& training) {
    if (!time) return;
    runs.push_back(*time);
    if (training) trainings.emplace_back(*time, *training);
  };
  if (agents) hear(agents->time, agents->training);
  for (const Placed& placed : all) {
    if (IsInitializer(*placed.planned) && placed.job != nullptr && placed.job->complete_at) {
      facts.initializers = std::max(facts.initializers.value_or(WallTime::min()), *placed.job->complete_at);
    }
    for (const ObservedPod* pod : placed.pods) {
      for (const ObservedEnd& end : pod->ends) {
        if (end.message) hear(end.message->time, end.message->training);
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
