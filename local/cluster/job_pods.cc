// SPDX-License-Identifier: Apache-2.0
#include "local/cluster/job_pods.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/iso_time.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/meta.h"
#include "controller/reconcile/back_off.h"
#include "controller/reconcile/observed.h"
#include "local/cluster/job_pod.h"
#include "local/cluster/job_rules.h"

namespace muster::local {

using namespace controller;

namespace {

constexpr BackOffRules kPauses{std::chrono::seconds(10), std::chrono::minutes(10)};

// How the Job ends.
struct Verdict {
  bool success = false;
  std::string reason, message;
};

WallTime AfterPause(WallTime end, int failures) {
  return end + std::chrono::duration_cast<WallTime::duration>(BackOff(kPauses, failures));
}

class Sync {
 public:
  Sync(const Json& job, bool deleted, JobRules rules, std::vector<JobPod> pods, WallTime now)
      : status_(MapField(job, "status")),
        conditions_(ListField(status_, "conditions")),
        deleted_(deleted),
        rules_(std::move(rules)),
        pods_(std::move(pods)),
        now_(now) {}

  JobStep Run();

 private:
  bool IsTrue(const char* type) const;
  bool SetCondition(const char* type, bool value, const std::string& reason, const std::string& message);
  void Due(WallTime time) { step_.again = std::min(step_.again.value_or(time), time); }
  std::optional<WallTime> Deadline() const;

  bool Valid(const JobPod& pod) const { return pod.index >= 0 && pod.index < rules_.completions; }
  bool Failed(const JobPod& pod) const;
  bool Counts(const JobPod& pod) const { return MatchFailure(rules_, *pod.object).counts; }
  bool FailsIndex(const JobPod& pod) const;

  void CountPods();
  void CollectIndexes();
  void CollectLastFailures();
  std::optional<Verdict> ToldVerdict() const;
  std::optional<Verdict> PolicyFailure() const;
  std::optional<Verdict> LimitFailure() const;
  std::optional<Verdict> IndexFailure() const;
  std::optional<Verdict> Decided() const;

  void Remove(const JobPod& pod);
  std::vector<const JobPod*> TooMany(int least) const;
  void Manage();
  std::optional<WallTime> PauseOfJob() const;
  WallTime PauseOfIndex(int index) const;
  std::vector<int> Pending(int most) const;
  void Create(int most);
  void NoteFailures(int index);
  void RecordSuspended();
  void CountEnded();
  void RecordEnd();
  void WriteStatus();

  const Json& status_;  // from the last step
  Json conditions_;
  const bool deleted_;
  const JobRules rules_;
  std::vector<JobPod> pods_;
  const WallTime now_;

  JobStep step_;
  std::optional<std::string> started_, completed_;  // startTime, completionTime
  std::vector<const JobPod*> active_;               // active before this step
  std::set<const JobPod*> removed_;
  int active_count_ = 0, ready_ = 0, terminating_ = 0, failed_ = 0;
  Indexes succeeded_, failed_indexes_;
  // With backoffLimitPerIndex: for each index that waits for another pod, the pod that failed last. It stays uncounted
  // until then, because its annotations say how often the index has failed.
  std::map<int, const JobPod*> last_failures_;
  std::optional<Verdict> verdict_;
};

bool Sync::IsTrue(const char* type) const {
  return std::any_of(conditions_.begin(), conditions_.end(), [&](const Json& condition) {
    return TextField(condition, "type") == type && TextField(condition, "status") == "True";
  });
}

// Returns whether the condition has changed. A condition that has never been true is not added as False.
bool Sync::SetCondition(const char* type, bool value, const std::string& reason, const std::string& message) {
  const char* status = value ? "True" : "False";
  const std::string now = IsoTime(now_);
  Json wanted = {{"type", type},     {"status", status},  {"lastProbeTime", now}, {"lastTransitionTime", now},
                 {"reason", reason}, {"message", message}};
  for (Json& condition : conditions_) {
    if (TextField(condition, "type") != type) continue;
    if (TextField(condition, "status") == status && TextField(condition, "reason") == reason &&
        TextField(condition, "message") == message) {
      return false;
    }
    condition = std::move(wanted);
    return true;
  }
  if (value) conditions_.push_back(std::move(wanted));
  return value;
}

std::optional<WallTime> Sync::Deadline() const {
  if (!rules_.deadline_seconds || rules_.suspended || !started_) return std::nullopt;
  const auto started = ParseWallTime(*started_);
  if (!started.ok()) return std::nullopt;
  return *started + std::chrono::seconds(*rules_.deadline_seconds);
}

// A pod that is being deleted counts as failed, unless the Job replaces only pods that have ended.
bool Sync::Failed(const JobPod& pod) const {
  if (pod.phase == "Failed") return true;
  return !rules_.only_replace_failed && pod.Terminating();
}

bool Sync::FailsIndex(const JobPod& pod) const {
  const FailureMatch match = MatchFailure(rules_, *pod.object);
  return match.fails_index || (match.counts && pod.failures >= *rules_.backoff_limit_per_index);
}

void Sync::CountPods() {
  failed_ = CountField(status_, "failed");
  for (const JobPod& pod : pods_) {
    if (pod.Terminating()) ++terminating_;
    if (!pod.Active()) continue;
    active_.push_back(&pod);
    if (pod.ready) ++ready_;
  }
  active_count_ = static_cast<int>(active_.size());
}

void Sync::CollectIndexes() {
  succeeded_ = ReadIndexes(TextField(status_, "completedIndexes"), rules_.completions);
  if (rules_.backoff_limit_per_index) {
    failed_indexes_ = ReadIndexes(TextField(status_, "failedIndexes"), rules_.completions);
  }
  for (const JobPod& pod : pods_) {
    if (!pod.tracked || !Valid(pod)) continue;
    if (pod.phase == "Succeeded") succeeded_.insert(pod.index);
    if (rules_.backoff_limit_per_index && Failed(pod) && FailsIndex(pod)) failed_indexes_.insert(pod.index);
  }
}

void Sync::CollectLastFailures() {
  if (!rules_.backoff_limit_per_index) return;
  Indexes over = succeeded_;
  over.insert(failed_indexes_.begin(), failed_indexes_.end());
  for (const JobPod* pod : active_) over.insert(pod->index);
  const auto all = [](const JobPod& pod) { return int64_t{pod.failures} + pod.ignored; };
  for (const JobPod& pod : pods_) {
    if (!pod.tracked || !Valid(pod) || !Failed(pod) || over.contains(pod.index)) continue;
    const JobPod*& last = last_failures_[pod.index];
    if (last == nullptr || (all(*last) <= all(pod) && last->ended <= pod.ended)) last = &pod;
  }
}

std::optional<Verdict> Sync::ToldVerdict() const {
  for (const char* type : {"SuccessCriteriaMet", "FailureTarget"}) {
    for (const Json& condition : conditions_) {
      if (TextField(condition, "type") != type || TextField(condition, "status") != "True") continue;
      return Verdict{type[0] == 'S', TextField(condition, "reason"), TextField(condition, "message")};
    }
  }
  return std::nullopt;
}

std::optional<Verdict> Sync::PolicyFailure() const {
  for (const JobPod& pod : pods_) {
    if (!Failed(pod)) continue;
    std::string message = MatchFailure(rules_, *pod.object).fails_job;
    if (!message.empty()) return Verdict{false, "PodFailurePolicy", std::move(message)};
  }
  return std::nullopt;
}

std::optional<Verdict> Sync::LimitFailure() const {
  int64_t failed = failed_, restarts = 0;
  for (const JobPod& pod : pods_) {
    if (pod.tracked && Valid(pod) && Failed(pod) && Counts(pod)) ++failed;
    if (pod.phase == "Running" || pod.phase == "Pending") restarts += pod.restarts;
  }
  const int64_t most_restarts = std::max(rules_.backoff_limit, 1);
  if (failed > rules_.backoff_limit || (rules_.restarts_on_failure && restarts >= most_restarts)) {
    return Verdict{false, "BackoffLimitExceeded", "Job has reached the specified backoff limit"};
  }
  const auto deadline = Deadline();
  if (!deadline || now_ < *deadline) return std::nullopt;
  return Verdict{false, "DeadlineExceeded", "Job was active longer than specified deadline"};
}

std::optional<Verdict> Sync::IndexFailure() const {
  const int failed = static_cast<int>(failed_indexes_.size());
  if (rules_.max_failed_indexes && failed > *rules_.max_failed_indexes) {
    return Verdict{false, "MaxFailedIndexesExceeded",
                   "Job has exceeded the specified maximal number of failed indexes"};
  }
  if (failed == 0 || failed + std::ssize(succeeded_) < rules_.completions) return std::nullopt;
  return Verdict{false, "FailedIndexes", "Job has failed indexes"};
}

std::optional<Verdict> Sync::Decided() const {
  if (auto told = ToldVerdict()) return told;
  if (auto failure = PolicyFailure()) return failure;
  if (auto failure = LimitFailure()) return failure;
  if (auto failure = IndexFailure()) return failure;
  if (auto message = MatchSuccess(rules_, succeeded_)) return Verdict{true, "SuccessPolicy", *std::move(message)};
  return std::nullopt;
}

void Sync::Remove(const JobPod& pod) {
  step_.remove.push_back(pod.name);
  removed_.insert(&pod);
  --active_count_;
  ++terminating_;
  if (pod.ready) --ready_;
}

// The active pods to remove: those without a valid index, all but one of each index, and others up to `least`.
std::vector<const JobPod*> Sync::TooMany(int least) const {
  std::vector<const JobPod*> pods = active_;
  std::sort(pods.begin(), pods.end(), [](const JobPod* a, const JobPod* b) { return GoesFirst(*a, *b); });
  std::vector<const JobPod*> surplus, left;
  Indexes kept;
  for (auto it = pods.rbegin(); it != pods.rend(); ++it) {
    const bool keeps = Valid(**it) && kept.insert((*it)->index).second;
    (keeps ? left : surplus).push_back(*it);
  }
  while (std::ssize(surplus) < least) {
    surplus.push_back(left.back());
    left.pop_back();
  }
  return surplus;
}

// Either removes pods or creates some.
void Sync::Manage() {
  const int wanted = rules_.suspended
                         ? 0
                         : std::clamp(rules_.completions - static_cast<int>(succeeded_.size()), 0, rules_.parallelism);
  const std::vector<const JobPod*> surplus = TooMany(std::max(active_count_ - wanted, 0));
  for (const JobPod* pod : surplus) Remove(*pod);
  if (!surplus.empty() || rules_.suspended) return;
  const int most = wanted - active_count_ - (rules_.only_replace_failed ? terminating_ : 0);
  if (most <= 0) return;
  const auto pause = PauseOfJob();
  if (pause && now_ < *pause) return Due(*pause);
  Create(most);
}

// The end of the pause after the failures since the last success; nullopt: there is no pause.
std::optional<WallTime> Sync::PauseOfJob() const {
  if (rules_.backoff_limit_per_index) return std::nullopt;
  std::optional<WallTime> success, failure;
  for (const JobPod& pod : pods_) {
    if (Valid(pod) && pod.phase == "Succeeded") success = std::max(success, std::optional(pod.ended));
  }
  int failures = 0;
  for (const JobPod& pod : pods_) {
    if (!Valid(pod) || pod.phase != "Failed" || pod.deleted || (success && pod.ended <= *success)) continue;
    ++failures;
    failure = std::max(failure, std::optional(pod.ended));
  }
  return failure ? std::optional(AfterPause(*failure, failures)) : std::nullopt;
}

WallTime Sync::PauseOfIndex(int index) const {
  const auto last = last_failures_.find(index);
  if (last == last_failures_.end()) return now_;
  const JobPod& pod = *last->second;
  return AfterPause(pod.ended, pod.failures + pod.ignored + 1);
}

// The first indexes that have no pod and need one.
std::vector<int> Sync::Pending(int most) const {
  Indexes taken = succeeded_;
  taken.insert(failed_indexes_.begin(), failed_indexes_.end());
  for (const JobPod& pod : pods_) {
    if (pod.Active() || (rules_.only_replace_failed && pod.Terminating())) taken.insert(pod.index);
  }
  std::vector<int> pending;
  for (int index = 0; index < rules_.completions && std::ssize(pending) < most; ++index) {
    if (!taken.contains(index)) pending.push_back(index);
  }
  return pending;
}

void Sync::Create(int most) {
  for (int index : Pending(most)) {
    const WallTime pause = PauseOfIndex(index);
    if (now_ < pause) {
      Due(pause);
      continue;
    }
    step_.create.push_back(index);
    ++active_count_;
    if (rules_.backoff_limit_per_index) NoteFailures(index);
  }
}

void Sync::NoteFailures(int index) {
  int failures = 0, ignored = 0;
  if (const auto last = last_failures_.find(index); last != last_failures_.end()) {
    const bool counts = Counts(*last->second);
    failures = last->second->failures + (counts ? 1 : 0);
    ignored = last->second->ignored + (counts ? 0 : 1);
  }
  Json& annotations = step_.annotations[index];
  annotations = {{kIndexFailuresAnnotation, fmt::format("{}", failures)}};
  if (ignored > 0) annotations[kIndexIgnoredAnnotation] = fmt::format("{}", ignored);
}

void Sync::RecordSuspended() {
  if (rules_.suspended) {
    if (SetCondition("Suspended", true, "JobSuspended", "Job suspended")) started_.reset();
  } else if (SetCondition("Suspended", false, "JobResumed", "Job resumed")) {
    started_ = IsoTime(now_);
  }
}

// Counts pods that have ended, pods that are removed, and all pods once the Job has a verdict. If the Job has failed,
// pods that still run count as failed.
void Sync::CountEnded() {
  for (const JobPod& pod : pods_) {
    if (!pod.tracked) continue;
    const bool waits = last_failures_.contains(pod.index) && last_failures_.at(pod.index) == &pod;
    const bool failed = Failed(pod);
    const bool goes = deleted_ || verdict_ || removed_.contains(&pod);
    if (!goes && pod.phase != "Succeeded" && (!failed || waits)) continue;
    step_.counted.push_back(pod.name);
    const bool fails = failed || (verdict_ && !verdict_->success);
    if (pod.phase != "Succeeded" && fails && Valid(pod) && Counts(pod)) ++failed_;
  }
}

// Sets the condition that the Job is going to end, and once no pod is terminating the condition that it has ended.
void Sync::RecordEnd() {
  const auto& [success, reason, message] = *verdict_;
  const char* bound = success ? "SuccessCriteriaMet" : "FailureTarget";
  SetCondition(bound, true, reason, message);
  if (terminating_ > 0) return;
  SetCondition(success ? "Complete" : "Failed", true, reason, message);
  if (success) completed_ = IsoTime(now_);
}

void Sync::WriteStatus() {
  Json status = {{"ready", ready_}, {"terminating", terminating_}, {"uncountedTerminatedPods", Json::object()}};
  const std::pair<const char*, int> counts[] = {
      {"active", active_count_}, {"succeeded", static_cast<int>(succeeded_.size())}, {"failed", failed_}};
  for (const auto& [name, count] : counts) {
    if (count > 0) status[name] = count;
  }
  PutText(status, "completedIndexes", WriteIndexes(succeeded_));
  if (rules_.backoff_limit_per_index) status["failedIndexes"] = WriteIndexes(failed_indexes_);
  if (started_) status["startTime"] = *started_;
  if (completed_) status["completionTime"] = *completed_;
  if (!conditions_.empty()) status["conditions"] = std::move(conditions_);
  step_.status = std::move(status);
}

JobStep Sync::Run() {
  if (IsTrue("Complete") || IsTrue("Failed")) {
    step_.status = status_;
    for (const JobPod& pod : pods_) {
      if (pod.tracked) step_.counted.push_back(pod.name);
    }
    return std::move(step_);
  }
  if (std::string started = TextField(status_, "startTime"); !started.empty()) started_ = std::move(started);
  if (!started_ && !rules_.suspended) started_ = IsoTime(now_);
  CountPods();
  CollectIndexes();
  CollectLastFailures();
  verdict_ = Decided();
  if (verdict_) {
    for (const JobPod* pod : active_) Remove(*pod);
  } else {
    if (!deleted_) Manage();
    if (std::ssize(succeeded_) >= rules_.completions && active_count_ == 0) {
      verdict_ = {true, "CompletionsReached", "Reached expected number of succeeded pods"};
    } else if (!deleted_) {
      RecordSuspended();
    }
  }
  CountEnded();
  if (verdict_) {
    RecordEnd();
    step_.again.reset();
  } else if (const auto deadline = Deadline()) {
    Due(*deadline);
  }
  WriteStatus();
  return std::move(step_);
}

}  // namespace

StatusOr<JobStep> StepJob(const Json& job, const std::vector<const Json*>& pods, WallTime now) {
  MUSTER_ASSIGN_OR_RETURN(const Meta meta, ReadMeta(job));
  MUSTER_ASSIGN_OR_RETURN(JobRules rules, ReadJobRules(job));
  std::vector<JobPod> read;
  read.reserve(pods.size());
  for (const Json* pod : pods) {
    MUSTER_ASSIGN_OR_RETURN(JobPod one, ReadJobPod(*pod));
    read.push_back(std::move(one));
  }
  return Sync(job, meta.deleted.has_value(), std::move(rules), std::move(read), now).Run();
}

}  // namespace muster::local
