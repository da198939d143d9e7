// SPDX-License-Identifier: Apache-2.0
// Conditions and counts of a PyTorchJob, as training-operator writes them.
#include "controller/reconcile/pytorch_conditions.h"

#include "controller/reconcile/train_job_conditions.h"
#include "tests/controller/reconcile/pytorch_world.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The conditions in their order, such as "Created Running=False Succeeded".
std::string Texts(const PyTorchJobStatus& status) {
  std::vector<std::string> texts;
  for (const JobCondition& condition : status.conditions) {
    texts.push_back(condition.type + (condition.status ? "" : "=False"));
  }
  return Join(texts, " ");
}

// The message of both jobs' conditions is JSON text: it must stay UTF-8.
TEST(PyTorchConditions, ALongMessageIsCutBetweenCharacters) {
  const std::string fits(kLongestConditionMessage - 1, 'x');
  PyTorchJobStatus status;
  SetJobCondition(&status, "Created", true, "r", fits + "\u00e9", kNow);
  EXPECT_EQ(status.conditions.back().message, fits);
  TrainJobStatus of_train_job;
  SetCondition(&of_train_job, "Failed", true, "r", fits + "\u00e9", 1, kNow);
  EXPECT_EQ(of_train_job.conditions.back().message, fits);
}

TEST(PyTorchConditions, RulesOfTheSetter) {
  PyTorchJobStatus status;
  SetJobCondition(&status, "Created", true, "r", "m", kNow);
  SetJobCondition(&status, "Running", true, "r", "m", kNow);
  EXPECT_EQ(Texts(status), "Created Running");
  SetJobCondition(&status, "Running", true, "r", "another message", kNow + kSecond);
  EXPECT_EQ(status.conditions.back(), (JobCondition{"Running", true, "r", "m", kNow, kNow}))
      << "the same status and reason: nothing changes";
  SetJobCondition(&status, "Created", true, "other", "m2", kNow + kSecond);
  EXPECT_EQ(Texts(status), "Running Created") << "what has changed comes last";
  EXPECT_EQ(status.conditions.back(), (JobCondition{"Created", true, "other", "m2", kNow + kSecond, kNow}))
      << "the same status: since stays";
  SetJobCondition(&status, "Restarting", true, "r", "m", kNow);
  EXPECT_EQ(Texts(status), "Created Restarting");
  SetJobCondition(&status, "Running", true, "r", "m", kNow);
  EXPECT_EQ(Texts(status), "Created Running");
  SetJobCondition(&status, "Succeeded", true, "r", "m", kNow + 2 * kSecond);
  EXPECT_EQ(Texts(status), "Created Running=False Succeeded");
  EXPECT_EQ(status.Find("Running")->since, kNow + 2 * kSecond);
  SetJobCondition(&status, "Failed", true, "r", "m", kNow);
  for (const char* type : {"Created", "Running", "Restarting", "Succeeded", "Failed"}) {
    SetJobCondition(&status, type, false, "later", "m", kNow);
  }
  EXPECT_EQ(Texts(status), "Created Running=False Succeeded Failed") << "nothing changes after Failed";
}

TEST(PyTorchConditions, ALongMessageIsCut) {
  PyTorchJobStatus status;
  SetFailed(&status, std::string(100'000, 'x'), kNow);
  EXPECT_EQ(status.Find("Failed")->message.size(), 32768U);
}

TEST(PyTorchConditions, WordsOfV1) {
  struct Row {
    bool master;
    const char *running, *succeeded;
  };
  for (const Row& row : {Row{true, "PyTorchJob a is running.", "PyTorchJob a is successfully completed."},
                         Row{false, "PyTorchJob ns/a is running.", "PyTorchJob ns/a successfully completed."}}) {
    PyTorchWorld world({.master = row.master, .workers = row.master ? 0 : 1});
    world.Pass();
    EXPECT_EQ(world.job.status.conditions.back(),
              (JobCondition{"Created", true, "PyTorchJobCreated", "PyTorchJob a is created.", kNow, kNow}));
    world.Settle();
    EXPECT_EQ(world.job.status.conditions.back(),
              (JobCondition{"Running", true, "PyTorchJobRunning", row.running, kNow, kNow}));
    world.Ends(row.master ? "a-master-0" : "a-worker-0", 0);
    world.Settle();
    EXPECT_EQ(world.job.status.conditions.back(),
              (JobCondition{"Succeeded", true, "PyTorchJobSucceeded", row.succeeded, kNow, kNow}));
  }
}

TEST(PyTorchConditions, WordsOfASuspension) {
  PyTorchWorld world = RunningWorld({});
  PyTorchParts parts;
  parts.run = "{suspend: true}";
  world.Change(parts);
  world.Settle();
  EXPECT_EQ(Texts(world.job.status), "Created Running=False Suspended");
  EXPECT_EQ(*world.job.status.Find("Running"),
            (JobCondition{"Running", false, "PyTorchJobSuspended", "PyTorchJob a is suspended.", kNow, kNow}));
  EXPECT_EQ(*world.job.status.Find("Suspended"),
            (JobCondition{"Suspended", true, "PyTorchJobSuspended", "PyTorchJob a is suspended.", kNow, kNow}));
  parts.run = "{}";
  world.Change(parts);
  world.Pass();
  EXPECT_EQ(world.job.status.conditions.back(),
            (JobCondition{"Suspended", false, "PyTorchJobResumed", "PyTorchJob a is resumed.", kNow, kNow}));
  world.Settle();
  EXPECT_EQ(Texts(world.job.status), "Created Suspended=False Running");
}

TEST(PyTorchConditions, RestartingGoesBackToRunning) {
  PyTorchWorld world = RunningWorld({.policy = "ExitCode"});
  world.Wait(std::chrono::seconds(60));
  world.Ends("a-worker-1", 143);
  world.Pass();
  EXPECT_EQ(Texts(world.job.status), "Created Restarting");
  EXPECT_EQ(world.Message("Restarting"), "PyTorchJob a is restarting because 1 Worker replica(s) failed.");
  EXPECT_EQ(world.job.status.Find("Restarting")->reason, "PyTorchJobRestarting");
  world.Pass();
  EXPECT_EQ(Texts(world.job.status), "Created Restarting") << "the pod does not run yet, and the master does";
  world.Settle();
  EXPECT_EQ(Texts(world.job.status), "Created Running");
}

TEST(PyTorchConditions, AFailureByPolicyNamesThemAll) {
  PyTorchWorld world = RunningWorld({.policy = "ExitCode"});
  world.Ends("a-worker-1", 3);
  world.Ends("a-master-0", 4).ends[0].finished = world.now + kSecond;
  world.Pass();
  EXPECT_EQ(
      world.Message("Failed"),
      "PyTorchJob a is failed because 1 Master replica(s) and 1 Worker replica(s) failed: rank 2 on pod a-worker-1, "
      "container pytorch (node n1) ended with exit code 3; see kubectl logs -n ns a-worker-1 -c pytorch");
  EXPECT_EQ(world.job.status.Find("Failed")->reason, "PyTorchJobFailed");
  EXPECT_EQ(Texts(world.job.status), "Created Running=False Failed");
}

TEST(PyTorchConditions, RunningIsTheMastersOrAnyWorkers) {
  for (const bool master : {true, false}) {
    PyTorchWorld world({.master = master});
    world.Pass();
    ObservedPod& worker = world.Pod("a-worker-1");
    worker.phase = "Running";
    world.Pass();
    EXPECT_EQ(world.State(), master ? "Created" : "Running");
    if (!master) continue;
    world.Pod("a-master-0").phase = "Running";
    world.Pass();
    EXPECT_EQ(world.State(), "Running");
  }
}

TEST(PyTorchConditions, PodsAreCountedByTheirPhase) {
  PyTorchWorld world = RunningWorld({.workers = 6});
  world.Pod("a-worker-1").phase = "Pending";
  world.Pod("a-worker-2").phase = "Unknown";
  world.Ends("a-worker-3", 0);
  world.Ends("a-worker-4", 1);
  world.IsDeleted("a-worker-5");
  world.Pass();
  const auto selector = [](const char* type) {
    return fmt::format(
        "training.kubeflow.org/job-name=a,training.kubeflow.org/operator-name=pytorchjob-controller,"
        "training.kubeflow.org/replica-type={}",
        type);
  };
  EXPECT_EQ(world.job.status.master, (ReplicaStatus{1, 0, 0, selector("master")}));
  EXPECT_EQ(world.job.status.worker, (ReplicaStatus{1, 1, 2, selector("worker"), "3"}));
  PyTorchParts alone{.workers = 0};
  world.Change(alone);
  world.Settle();
  EXPECT_FALSE(world.job.status.worker) << "a type that is there no more has no counts";
}

TEST(PyTorchConditions, TimesAreThoseOfTheChange) {
  PyTorchWorld world({.policy = "Never"});
  world.Pass();
  world.Wait(kSecond);
  world.Settle();
  EXPECT_EQ(world.job.status.start_time, kNow);
  EXPECT_EQ(world.job.status.Find("Running")->since, kNow + kSecond);
  world.Wait(kSecond);
  world.Ends("a-worker-0", 3);
  world.Settle();
  EXPECT_EQ(world.job.status.completion_time, kNow + 2 * kSecond);
  world.Wait(kSecond);
  world.Settle();
  EXPECT_EQ(world.job.status.completion_time, kNow + 2 * kSecond);
}

TEST(PyTorchConditions, EventsOfAnEnd) {
  PyTorchWorld world = RunningWorld({.policy = "ExitCode"});
  world.Ends("a-worker-0", 3);
  const PyTorchDecision decision = world.Pass();
  EXPECT_THAT(Reasons(decision), ElementsAre("ExitedWithCode", "PodFailed", "PyTorchJobFailed"));
  EXPECT_EQ(decision.events[0].message, "Pod: ns.a-worker-0 exited with code 3");
  EXPECT_FALSE(decision.events[0].warning);
  EXPECT_EQ(decision.events[2].message, world.Message("Failed"));
}

}  // namespace
}  // namespace muster::controller
