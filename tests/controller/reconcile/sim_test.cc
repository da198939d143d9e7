// SPDX-License-Identifier: Apache-2.0
// Random lives of TrainJobs against a model of the Job controller, the kubelet and an API server whose calls sometimes
// fail. The seed of a failed life is printed; MUSTER_SIM_SEED=SEED runs only that life.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "base/text.h"
#include "controller/reconcile/replacement.h"
#include "controller/reconcile/train_job_finished.h"
#include "tests/controller/reconcile/planned.h"

namespace muster::controller {
namespace {

constexpr int kSeeds = 20'000;
constexpr int kChaos = 60;   // steps with failures
constexpr int kQuiet = 200;  // steps without failures, within which a job has to end
constexpr int kBudget = 2;

struct ModelPod {
  ObservedPod pod;
  bool over = false;  // Succeeded or Failed
};

struct ModelJob {
  ObservedJob job;
  std::vector<ModelPod> pods;
  int limit = 0;  // backoffLimit
  int told = 0;   // the planned number of pods in the template
};

class Life {
 public:
  explicit Life(uint64_t seed) : random_(seed) {
    job_.meta.ns = "default";
    job_.meta.name = "a";
    job_.meta.uid = "uid-a";
    job_.meta.created = now_;
    agent_ = Chance(2);
    plan_.subdomain = "a";
    plan_.service = {{"metadata", {{"name", "a"}}}};
    plan_.max_restarts = kBudget;
    if (Chance(2)) plan_.jobs.push_back(Planned("dataset-initializer", Step::kDatasetInitializer, 1, false));
    plan_.jobs.push_back(Planned("node", Step::kTrainer, 1 + Pick(3), agent_));
    plan_.jobs.back().scales = agent_ && Chance(3);
    AddRules();
    if (plan_.jobs.size() == 2) plan_.jobs[1].after = {{"dataset-initializer", Dependency::Until::kComplete}};
  }

  void Run() {
    for (int step = 0; step < kChaos && !::testing::Test::HasFailure(); ++step) {
      if (Chance(20)) job_.suspend = !job_.suspend;
      if (plan_.jobs.back().scales && Chance(10)) plan_.jobs.back().pods = 1 + Pick(4);
      Turn(true);
    }
    job_.suspend = false;
    for (int step = 0; step < kQuiet && !job_.status.Finished() && !::testing::Test::HasFailure(); ++step) Turn(false);
    ASSERT_TRUE(job_.status.Finished()) << "it never ended: " << job_.status.state << ": " << job_.status.message;
    const TrainJobStatus end = job_.status;
    for (int step = 0; step < 3; ++step) Controller(false);
    for (int step = 0; step < 10; ++step) Turn(false);
    Kubelet(false);  // a pod without its last phase is awaited
    Controller(false);
    EXPECT_EQ(job_.status.conditions, end.conditions) << "the end did not stay";
    for (const auto& [name, job] : jobs_) {
      EXPECT_TRUE(job.job.complete || job.job.failed_at || job.job.suspended) << name << " still runs after the end";
    }
    EXPECT_NE(end.Find("Complete") != nullptr, end.Find("Failed") != nullptr);
    // status.restarts is not checked: a Job may complete before failures beyond the budget are seen.
    EXPECT_TRUE(!bounded_ || end.attempt <= kBudget) << "its step was recreated beyond the budget";
  }

 private:
  // Adds a failurePolicy to some lives. With a rule for uncounted restarts the attempts are not bounded.
  void AddRules() {
    using Rule = FailureRule::Action;
    while (Chance(2)) {
      const Rule action = Chance(3) ? Rule::kRestartUncounted : Chance(2) ? Rule::kRestart : Rule::kFail;
      FailureRule rule{"rule", action, {}, {}, {}};
      if (Chance(2)) rule.reasons = {Chance(2) ? "PodFailurePolicy" : "BackoffLimitExceeded"};
      if (Chance(3)) rule.jobs = {Chance(2) ? "node" : "dataset-initializer"};
      bounded_ = bounded_ && action != Rule::kRestartUncounted;
      plan_.failure_rules.push_back(std::move(rule));
    }
    plan_.waits_for_old_pods = Chance(3);
  }

  bool Chance(int of) { return Pick(of) == 0; }
  int Pick(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }

  void Turn(bool chaos) {
    now_ += std::chrono::seconds(1);
    switch (Pick(3)) {
      case 0:
        return Controller(chaos);
      case 1:
        return JobController();
      default:
        return Kubelet(chaos);
    }
  }

  void Controller(bool chaos) {
    Observed observed;
    if (service_) observed.services = {HeadlessService()};
    for (const auto& [name, job] : jobs_) {
      observed.jobs.push_back(job.job);
      for (const ModelPod& pod : job.pods) observed.pods.push_back(pod.pod);
    }
    const bool finished = job_.status.Finished();
    const TrainJobDecision decision = Decide(job_, &plan_, observed, now_);
    auto write = [&] {
      EXPECT_GE(decision.status.attempt, job_.status.attempt);
      // The failure that exceeds the budget is counted until the job fails for it.
      EXPECT_TRUE(!bounded_ || decision.status.restarts >= std::min(job_.status.restarts, kBudget));
      EXPECT_TRUE(!bounded_ || !decision.status.Finished() || decision.status.restarts <= kBudget);
      job_.status = decision.status;
    };
    auto fails = [&] { return chaos && Chance(8); };  // the call fails, or the controller is killed
    if (decision.status_first) {
      if (fails()) return;
      write();
    }
    for (const Action& action : decision.actions) {
      if (fails()) return;
      CarryOut(action);
    }
    if (job_.suspend && !finished) {
      for (const auto& [name, job] : jobs_) {
        EXPECT_TRUE(job.job.complete || job.job.failed_at || job.job.suspended) << name << " runs in a suspended job";
      }
    }
    if (!decision.status_first && !decision.status_may_wait && !fails()) write();
  }

  void CarryOut(const Action& action) {
    switch (action.kind) {
      case Action::Kind::kCreateService:
        EXPECT_FALSE(service_) << "the Service is made twice";
        service_ = true;
        return;
      case Action::Kind::kCreateJob: {
        ASSERT_FALSE(jobs_.contains(action.name)) << "a second Job " << action.name;
        ModelJob made;
        made.job.meta.name = action.name;
        made.job.meta.uid = fmt::format("uid-{}", ++uids_);
        made.job.meta.annotations["muster.dev/restarts-left"] =
            action.object()["metadata"]["annotations"]["muster.dev/restarts-left"].get<std::string>();
        made.job.attempt =
            std::stoi(action.object()["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"].get<std::string>());
        const auto planned = std::find_if(plan_.jobs.begin(), plan_.jobs.end(),
                                          [&](const PlannedJob& planned) { return planned.name == action.name; });
        made.job.pods = planned->pods;
        made.limit = planned->agent ? kBudget : Pick(2);
        made.told = planned->pods;
        jobs_[action.name] = made;
        return;
      }
      case Action::Kind::kCreateObject:
        return;
      case Action::Kind::kCreatePodOfJob: {
        if (!jobs_.contains(action.job) || jobs_[action.job].job.meta.uid != action.uid) return;
        ModelJob& job = jobs_[action.job];
        for (const ModelPod& pod : job.pods) {
          if (pod.pod.meta.name == action.name) return;
          EXPECT_TRUE(pod.pod.index != action.index || pod.over || pod.pod.meta.deleted) << "a second pod of an index";
        }
        job.pods.push_back(NewPod(job, action.index, action.name));
        return;
      }
      case Action::Kind::kScaleJob:
        if (jobs_.contains(action.name)) jobs_[action.name].job.pods = action.pods;
        return;
      case Action::Kind::kAnnotatePod:
        for (ModelPod& pod : jobs_["a-node-0"].pods) {
          if (pod.pod.meta.uid == action.uid)
            pod.pod.meta.annotations["muster.dev/nodes"] = fmt::format("{}", action.pods);
        }
        return;
      case Action::Kind::kSuspendJob:
        if (jobs_.contains(action.name)) {
          jobs_[action.name].job.suspended = true;
          for (ModelPod& pod : jobs_[action.name].pods) {
            if (pod.over || pod.pod.meta.deleted) continue;
            pod.pod.meta.deleted = now_;
            pod.pod.tracked = true;
          }
          jobs_[action.name].job.ready = jobs_[action.name].job.active = 0;
        }
        return;
      case Action::Kind::kDeleteJob:
        if (jobs_.contains(action.name) && jobs_[action.name].job.meta.uid == action.uid) {
          for (const ModelPod& pod : jobs_[action.name].pods) {
            EXPECT_TRUE(!jobs_[action.name].job.suspended || !pod.pod.tracked ||
                        now_ >= *pod.pod.meta.deleted + kLostAfter)
                << "the Job controller waits for a deletion of " << pod.pod.meta.name;
          }
          jobs_.erase(action.name);
        }
        return;
      case Action::Kind::kDeletePod:
      case Action::Kind::kSuspendJobSet:
      case Action::Kind::kResumeJobSet:
      case Action::Kind::kDeleteJobSet:
      case Action::Kind::kDeleteOwner:
        return;
      case Action::Kind::kCreatePod:
      case Action::Kind::kEndPod:  // of pods with several containers
      case Action::Kind::kAdoptPod:
      case Action::Kind::kDropPod:
      case Action::Kind::kDeleteService:
      case Action::Kind::kDeleteObject:
        ADD_FAILURE() << "no action of a TrainJob: " << action.name;
    }
  }

  ModelPod NewPod(const ModelJob& job, int index, const std::string& name) {
    ModelPod made;
    made.pod.meta.name = name;
    made.pod.meta.uid = fmt::format("uid-{}", ++uids_);
    made.pod.meta.created = now_;
    made.pod.meta.owners = {{"batch/v1", "Job", job.job.meta.name, job.job.meta.uid, true}};
    made.pod.job = job.job.meta.name;
    made.pod.index = index;
    made.pod.attempt = job.job.attempt;
    made.pod.phase = "Pending";
    if (plan_.jobs.back().scales) made.pod.meta.annotations["muster.dev/nodes"] = fmt::format("{}", job.told);
    return made;
  }

  void JobController() {
    for (auto& [name, job] : jobs_) {
      if (job.job.suspended) std::erase_if(job.pods, [&](const ModelPod& pod) { return pod.pod.tracked && Chance(2); });
      if (job.job.complete || job.job.failed_at || job.job.suspended) continue;
      int failed = 0, succeeded = 0, ready = 0;
      bool fatal = false;
      for (ModelPod& pod : job.pods) {  // deletes pods of indexes that are scaled away
        if (pod.pod.index >= job.job.pods && !pod.over) pod.pod.meta.deleted = now_;
      }
      for (const ModelPod& pod : job.pods) {
        if (pod.pod.index >= job.job.pods) continue;
        if (pod.pod.phase == "Succeeded") ++succeeded;
        if (pod.pod.phase == "Failed" && !pod.pod.disrupted) ++failed;
        if (pod.pod.phase == "Running") ++ready;
        for (const ObservedEnd& end : pod.pod.ends) fatal = fatal || (end.exit_code > 0 && end.exit_code < 128);
      }
      const bool agent = name == "a-node-0" && agent_;
      job.job.succeeded = succeeded;
      job.job.failed = failed;
      job.job.ready = ready;
      if ((agent && fatal) || failed > job.limit) {
        job.job.failed_at = now_;
        job.job.failed_reason = agent && fatal ? "PodFailurePolicy" : "BackoffLimitExceeded";
        continue;
      }
      if (succeeded == job.job.pods) {
        job.job.complete = true;
        job.job.active = job.job.ready = 0;
        continue;
      }
      for (int index = 0; index < job.job.pods; ++index) {
        const bool there = std::any_of(job.pods.begin(), job.pods.end(), [&](const ModelPod& pod) {
          // podReplacementPolicy: Failed beside a podFailurePolicy (under the agent), else TerminatingOrFailed.
          return pod.pod.index == index && pod.pod.phase != "Failed" && (agent || !pod.pod.meta.deleted);
        });
        // The Job controller's back-off is longer than most of these lives.
        if (there || (failed > 0 && !Chance(6))) continue;
        job.pods.push_back(NewPod(job, index, fmt::format("{}-{}-{}", name, index, ++uids_)));
      }
      job.job.active = job.job.pods - succeeded;
    }
  }

  void Kubelet(bool chaos) {
    for (auto& [name, job] : jobs_) {
      for (ModelPod& pod : job.pods) {
        if (!pod.pod.will_fail || (chaos && Chance(2))) continue;
        pod.pod.will_fail = false;
        pod.pod.phase = "Failed";
      }
      if (job.job.complete || job.job.failed_at) continue;
      for (ModelPod& pod : job.pods) {
        if (pod.over || pod.pod.meta.deleted || !Chance(2)) continue;
        if (chaos && Chance(12)) {
          pod.pod.meta.deleted = now_;  // its node is lost, so the pod never ends
          pod.pod.disrupted = true;
        } else if (pod.pod.phase == "Pending") {
          pod.pod.phase = "Running";
          pod.pod.ran = true;
        } else if (chaos && Chance(4)) {
          Fail(&pod);
        } else if (!chaos || Chance(4)) {
          pod.pod.phase = "Succeeded";
          pod.over = true;
        }
      }
    }
  }

  void Fail(ModelPod* pod) {
    pod->over = true;
    pod->pod.will_fail = Chance(2);  // its phase comes later
    if (!pod->pod.will_fail) pod->pod.phase = "Failed";
    pod->pod.disrupted = Chance(4);
    ObservedEnd end;
    end.container = "node";
    end.exit_code = Chance(4) ? 1 + Pick(127) : 128 + Pick(80);
    end.finished = now_;
    if (agent_ && Chance(2)) {
      end.message = TerminationMessage();
      end.message->exit_code = end.exit_code;
      end.message->exit_class = Classify(end.exit_code);
      end.message->max_restarts = kBudget;
      end.message->restart_count = Chance(4) ? Pick(kBudget + 1) : 0;
      if (Chance(2)) end.message->cause = WorkerFailure();
    }
    pod->pod.ends = {end};
  }

  std::mt19937_64 random_;
  WallTime now_ = WallTime(std::chrono::seconds(1'800'000'000));
  TrainJob job_;
  TrainJobPlan plan_;
  bool agent_ = false;
  bool bounded_ = true;  // the budget bounds the attempts
  bool service_ = false;
  std::map<std::string, ModelJob> jobs_;
  int uids_ = 0;
};

TEST(Simulation, EveryJobEnds) {
  const char* one = std::getenv("MUSTER_SIM_SEED");
  const int first = one != nullptr ? std::atoi(one) : 0;
  for (int seed = first; seed < (one != nullptr ? first + 1 : kSeeds); ++seed) {
    SCOPED_TRACE(fmt::format("MUSTER_SIM_SEED={}", seed));
    Life(static_cast<uint64_t>(seed)).Run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace muster::controller
