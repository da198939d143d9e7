// SPDX-License-Identifier: Apache-2.0
// How a round ends: the stop, the policy, the budget, the verdict.
#include <algorithm>
#include <set>

#include "base/collective_timeout.h"
#include "base/reason_line.h"
#include "base/text.h"
#include "base/utf8.h"
#include "rendezvous/membership_machine.h"

namespace muster::rendezvous {
namespace {

constexpr size_t kMaxFailuresKept = 256;  // of one round
constexpr size_t kSmallJob = 64;          // nodes; up to this size the verdict has all texts of the failures
constexpr size_t kMaxEvidence = 512;      // bytes of a hang's evidence in a sentence
constexpr size_t kMaxWhy = 240;           // bytes of a worker's own reason in a sentence
constexpr size_t kMostRanks = 8;          // named in a sentence

// An agent reports a hang by this code, with the evidence in the message. A worker may end with the same code.
bool IsHang(const WorkerFailure& failure) { return failure.exit_code == kExitHang && failure.signal == 0; }

// Whether the loss of a node explains the failure. A late one did not end the round, whatever the worker had written.
bool FollowsALoss(const WorkerFailure& failure) { return failure.consequence || failure.late; }

// The worker never ran, for a reason that holds in the next round too: no such command, contradicting settings.
bool NeverStarts(const WorkerFailure& failure) {
  const int code = failure.exit_code;
  return failure.pid == 0 && !failure.message.empty() &&
         (code == kExitBadConfiguration || code == kExitNotExecutable || code == kExitNotFound);
}

// A training that lives for so long has most likely made progress, however long an earlier attempt lived.
constexpr Duration kGoodLife = std::chrono::minutes(10);

// A remote shell of an MPI launcher has lost its pod, or the pod is being stopped. No worker of the launcher has ended.
bool LosesAPod(const WorkerFailure& failure) {
  return failure.pid == 0 && (failure.exit_code == kExitPeerFailed || failure.exit_code == kExitStopped);
}

// OwnLine() for a sentence, with "stderr: " before a line of stderr. "": there is none.
std::string OwnWords(const WorkerFailure& failure) {
  if (const std::string line = MessageLine(failure); !line.empty()) return Abbreviated(line, kMaxWhy);
  return failure.stderr_reason.empty() ? "" : fmt::format("stderr: {}", Abbreviated(failure.stderr_reason, kMaxWhy));
}

// The first line of the failure's message, cut to kMaxEvidence bytes.
std::string_view Evidence(const WorkerFailure& failure) {
  const std::string_view message = failure.message;
  return Beginning(message.substr(0, message.find('\n')), kMaxEvidence);
}

std::string DescribeFailure(const WorkerFailure& failure) {
  const std::string node =
      fmt::format("node {}{}", failure.node,
                  failure.host.empty() || failure.host == failure.node ? "" : fmt::format(" (host {})", failure.host));
  if (NeverStarts(failure)) return fmt::format("{}: its workers cannot start: {}", node, OwnWords(failure));
  if (IsSilence(failure)) {
    return fmt::format("{}: {}", node, Evidence(failure));
  }
  std::string how;
  if (IsHang(failure) && !failure.message.empty()) {
    how = fmt::format("hangs: {}", Evidence(failure));
  } else {
    how = fmt::format("{} {}{}", failure.signal != 0 ? "was" : "ended with",
                      DescribeEnd(failure.exit_code, failure.signal), failure.core_dumped ? " (core dumped)" : "");
  }
  if (failure.oom_killed) how += fmt::format(" ({})", DescribeOom(failure.exit_code));
  if (std::string why = IsHang(failure) ? "" : OwnWords(failure); !why.empty()) how += fmt::format(" ({})", why);
  const std::string who = WhoFailed(failure);
  return fmt::format("{}: {} {}", node, who, how);
}

// The ranks that did not fail, if they are few. "": they are not, or all failed.
std::string RanksThatDidNotFail(const std::vector<WorkerFailure>& failures, int world_size) {
  std::set<int> failed;
  for (const WorkerFailure& failure : failures) failed.insert(failure.rank);
  std::vector<std::string> others;
  for (int rank = 0; rank < world_size && others.size() <= kMostRanks; ++rank) {
    if (!failed.contains(rank)) others.push_back(std::to_string(rank));
  }
  if (others.empty() || others.size() > kMostRanks || others.size() >= failed.size()) return "";
  return fmt::format("{} {}", others.size() == 1 ? "rank" : "ranks", Join(others, ", "));
}

// For workers that only lost their peers: whether they waited for them in vain. "": they did not.
std::string DescribeTimeout(const std::vector<WorkerFailure>& failures, int world_size) {
  const std::optional<CollectiveTimeout> timeout = FindCollectiveTimeout(failures);
  if (!timeout) return "";
  std::string text = fmt::format("; no worker failed by itself: the job hung in {}",
                                 timeout->operation.empty() ? "a collective operation" : timeout->operation);
  if (!timeout->missing.empty()) return text + fmt::format(", which {} did not join", timeout->missing);
  const std::string others = RanksThatDidNotFail(failures, world_size);
  return others.empty() ? text : text + fmt::format(", and only {} did not fail", others);
}

}  // namespace

std::optional<WorkerFailure> RootCause(const std::vector<WorkerFailure>& failures) {
  const auto weakness = [](const WorkerFailure& failure) {
    return failure.consequence ? 3 : ReportsAnotherProcess(OwnLine(failure)) ? 2 : failure.late ? 1 : 0;
  };
  const auto cause = std::min_element(failures.begin(), failures.end(),
                                      [&](const auto& a, const auto& b) { return weakness(a) < weakness(b); });
  return cause == failures.end() ? std::nullopt : std::optional(*cause);
}

// Keeps the failure for the verdict. A cause is kept even if there are many consequences.
void Machine::Keep(WorkerFailure failure) {
  std::vector<WorkerFailure>& known = s_.trouble.failures;
  const bool first_cause =
      !failure.consequence && std::all_of(known.begin(), known.end(), [](const auto& one) { return one.consequence; });
  if (known.size() < kMaxFailuresKept || first_cause) known.push_back(std::move(failure));
}

void Machine::HearReport(Member& member, const Report& report) {
  if (report.round != s_.round.id || !member.in_round || member.ready) return;
  if (report.late()) return HearLateFailures(report);
  if (member.report) return;
  if (s_.phase == Phase::kGathering) return;
  member.knows = report.round;
  {
    Change change(s_, member);
    member.report = report;
    member.state = report.failures.empty() ? NodeState::kSucceeded : NodeState::kStopping;
  }
  if (report.failures.empty() || s_.phase == Phase::kReforming) return;
  for (const WorkerFailure& failure : report.failures) Keep(failure);
  if (s_.phase == Phase::kRunning) {
    BeginStopping({DescribeFailure(*RootCause(report.failures)), RoundCause::kFailure}, member.node.name);
  }
}

// A late failure is the root cause only if all others are consequences and it is not. The verdict names all.
void Machine::HearLateFailures(const Report& report) {
  if (s_.phase != Phase::kStopping || s_.trouble.failures.empty()) return;
  for (WorkerFailure failure : report.failures) {
    failure.late = true;
    Keep(std::move(failure));
  }
}

// Tells every living node of the round to stop its workers, except the node `except`, which stops them by itself.
void Machine::BeginStopping(const Why& why, const std::string& except) {
  s_.phase = Phase::kStopping;
  const std::vector<WorkerFailure>& failures = s_.trouble.failures;
  s_.stopping = {.why = why,
                 .keep_evidence = UsesBudget(why.cause) && std::any_of(failures.begin(), failures.end(), IsHang),
                 .since = now_};
  Because(why.reason);
  std::vector<std::string> gone;
  for (auto& [name, member] : s_.members) {
    if (!member.in_round) continue;
    if (member.peer == 0) {
      gone.push_back(name);
    } else if (name != except && !member.leaving && !member.ready) {
      TellToStop(member);
    }
  }
  for (const std::string& name : gone) Forget(name);
}

void Machine::TellToStop(const Member& member, bool at_once) {
  const State::Stopping& stopping = s_.stopping;
  SendTo(member.peer,
         Stop{s_.round.id, stopping.why.reason, stopping.why.cause, stopping.keep_evidence && !at_once, at_once});
}

void Machine::StopAtOnce() {
  if (std::exchange(s_.stopping.at_once, true)) return;
  for (const auto& [name, member] : s_.members) {
    if (member.peer == 0 || !member.in_round || member.ready) continue;
    TellToStop(member, true);
  }
}

// The node whose failure ended the round is unhealthy and leaves. So the round ended by a change of membership, not by
// a failure of the job, unless another node failed by itself as well.
void Machine::Excuse(const std::string& node, const Why& why) {
  if (!UsesBudget(s_.stopping.why.cause) || s_.trouble.failures.empty()) return;
  std::erase_if(s_.trouble.failures, [&](const auto& failure) { return failure.node == node; });
  if (!std::all_of(s_.trouble.failures.begin(), s_.trouble.failures.end(), FollowsALoss)) return;
  s_.trouble.failures.clear();
  s_.stopping.why = why;
  Because(why.reason);
}

void Machine::Conclude() {
  if (!UsesBudget(s_.stopping.why.cause)) {
    BeginGathering(s_.stopping.why);
    return;
  }
  if (s_.trouble.failures.empty()) {  // policy always, after a success
    Restart(s_.stopping.why.reason, s_.stopping.why.cause);
    return;
  }
  // Workers that died because a peer was lost did not fail by themselves.
  bool consequences = std::all_of(s_.trouble.failures.begin(), s_.trouble.failures.end(), FollowsALoss);
  if (consequences && !s_.trouble.loss.reason.empty()) {
    BeginGathering(s_.trouble.loss);
    return;
  }
  // As the loss of a node: what became of the pod is counted where it is known. A number that the budget bounds, so
  // that no job goes on like that for ever.
  WorkerFailure cause = *RootCause(s_.trouble.failures);
  if (LosesAPod(cause) && options().policy != RestartPolicy::kNever && s_.restarts.lost_pods < options().max_restarts) {
    ++s_.restarts.lost_pods;
    BeginGathering({DescribeFailure(cause), RoundCause::kMembership});
    return;
  }
  ConcludeFailure(std::move(cause));
}

void Machine::ConcludeFailure(WorkerFailure cause) {
  int code = cause.exit_code == 0 ? kExitPeerFailed : cause.exit_code;
  std::string what = DescribeFailure(cause);
  if (cause.consequence) what += DescribeTimeout(s_.trouble.failures, s_.round.world_size);
  bool fatal = Classify(code, options().overrides) == ExitClass::kFatal && !cause.consequence;
  bool called_fatal = options().overrides.fatal.contains(code);
  if (options().policy == RestartPolicy::kNever) {
    FinishWith(code, fmt::format("{}; the restart policy is never", what), true);
  } else if (fatal && (options().policy == RestartPolicy::kExitCode || called_fatal || NeverStarts(cause))) {
    FinishWith(code, fmt::format("{}, which is fatal: trying again would give the same", what), true);
  } else if (NoProgress()) {
    FinishWith(kExitNoProgress,
               fmt::format("{}; no progress over {} in a row", what, Counted(options().no_progress_limit, "restart")),
               true);
  } else if (BudgetUsed() >= options().max_restarts) {
    const int allowed = options().max_restarts;
    FinishWith(code,
               fmt::format("{}; {}", what,
                           allowed == 0   ? "no restarts are allowed"
                           : allowed == 1 ? "the only restart is used up"
                                          : fmt::format("all {} are used up", Counted(allowed, "restart"))),
               true, allowed > 0);
  } else {
    Restart(what, RoundCause::kFailure);
    s_.overcome = std::move(cause);
  }
}

void Machine::RoundSucceeded() {
  if (options().policy == RestartPolicy::kAlways && BudgetUsed() < options().max_restarts) {
    BeginStopping({"all workers succeeded and the restart policy is always", RoundCause::kSuccess}, "");
    return;
  }
  FinishWith(0, "all workers succeeded", false);
}

// Counts a failed round; true if the limit of rounds without progress is reached. Progress is a higher step. If no
// worker reports steps, it is a life of kGoodLife, or one that is longer by more than a tenth, since no two crashes
// take exactly the same time.
bool Machine::NoProgress() {
  std::optional<Duration> life;
  std::optional<int64_t> step;
  for (const auto& [name, member] : s_.members) {
    if (!member.in_round) continue;
    if (member.report) life = std::max(life.value_or(Duration{}), member.report->lived);
    for (auto reported : {member.report ? member.report->progress : std::nullopt, member.progress}) {
      if (reported) step = std::max(step.value_or(*reported), *reported);
    }
  }
  const bool first = !s_.restarts.best_life;
  const Duration lived = life.value_or(Duration{}), longest = s_.restarts.best_life.value_or(Duration{});
  const bool better = step ? !s_.restarts.best_progress || *step > *s_.restarts.best_progress
                           : lived >= kGoodLife || lived > longest + longest / 10;
  s_.restarts.best_life = std::max(longest, lived);
  if (step) s_.restarts.best_progress = std::max(s_.restarts.best_progress.value_or(*step), *step);
  s_.restarts.without_progress = first || better ? 0 : s_.restarts.without_progress + 1;
  return options().no_progress_limit > 0 && s_.restarts.without_progress >= options().no_progress_limit;
}

int Machine::BudgetUsed() const {
  if (!options().restart_window) return s_.restarts.count;
  return static_cast<int>(std::count_if(s_.restarts.charged.begin(), s_.restarts.charged.end(),
                                        [&](TimePoint at) { return now_ - at < *options().restart_window; }));
}

void Machine::Restart(const std::string& reason, RoundCause cause) {
  ++s_.restarts.count;
  if (options().restart_window) {
    std::erase_if(s_.restarts.charged, [&](TimePoint at) { return now_ - at >= *options().restart_window; });
    s_.restarts.charged.push_back(now_);
  }
  BeginGathering({fmt::format("{}; restart {} of {}", reason, BudgetUsed(), options().max_restarts), cause});
}

void Machine::FinishWith(int exit_code, std::string reason, bool with_failures, bool budget_used) {
  Verdict verdict{exit_code, std::move(reason), exit_code == 0 ? s_.overcome : std::nullopt, {}, budget_used};
  if (with_failures && !s_.trouble.failures.empty()) {
    verdict.root_cause = RootCause(s_.trouble.failures);
    verdict.failures.push_back(*verdict.root_cause);
    // Every node gets the whole verdict. So in a large job only the root cause keeps its texts.
    bool small = s_.round.seats.size() <= kSmallJob;
    size_t most = small ? kSmallJob : 8;
    bool skipped = false;
    for (const WorkerFailure& failure : s_.trouble.failures) {
      if (!skipped && failure == *verdict.root_cause) {
        skipped = true;
        continue;
      }
      if (verdict.failures.size() >= most) break;
      verdict.failures.push_back(failure);
      if (!small) {
        verdict.failures.back().stderr_tail.clear();
        verdict.failures.back().message.clear();
      }
    }
  }
  s_.phase = Phase::kFinished;
  s_.lost.clear();
  s_.verdict = verdict;
  Because(verdict.reason);
  for (auto& [name, member] : s_.members) {
    if (member.peer != 0) SendTo(member.peer, Finish{s_.term, verdict});
    if (!member.contender) continue;
    const PeerId contender = member.contender->first;
    LeftByAll() ? HangUp(contender) : SendTo(contender, Finish{s_.term, verdict});
  }
}

}  // namespace muster::rendezvous
