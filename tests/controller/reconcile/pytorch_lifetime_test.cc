// SPDX-License-Identifier: Apache-2.0
// How a PyTorchJob ends, is suspended, resumed and scaled, and is deleted.
#include "tests/controller/reconcile/pytorch_world.h"

namespace muster::controller {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kMinute = std::chrono::seconds(60);

TEST(PyTorchSuccess, TheMasterOrTheWorkersDecideIt) {
  struct Row {
    const char* what;
    PyTorchParts parts;
    std::vector<std::pair<std::string, int>> ends;
    const char* state;
  };
  const PyTorchParts both{.policy = "Never"}, workers{.master = false, .policy = "Never"},
      elastic{.master = false, .policy = "Never", .spec = "{elasticPolicy: {}}"},
      elastic_master{.policy = "Never", .spec = "{elasticPolicy: {}}"};
  const Row rows[] = {
      {"the master", both, {{"a-master-0", 0}}, "Succeeded"},
      {"the master, and a worker failed", both, {{"a-worker-1", 1}, {"a-master-0", 0}}, "Succeeded"},
      {"all workers, not the master", both, {{"a-worker-0", 0}, {"a-worker-1", 0}}, "Running"},
      {"one worker", workers, {{"a-worker-0", 0}}, "Running"},
      {"all workers", workers, {{"a-worker-0", 0}, {"a-worker-1", 0}}, "Succeeded"},
      {"one of two fails", workers, {{"a-worker-0", 0}, {"a-worker-1", 1}}, "Failed"},
      {"any worker of an elastic job", elastic, {{"a-worker-1", 0}}, "Succeeded"},
      {"also where another failed", elastic, {{"a-worker-1", 0}, {"a-worker-0", 1}}, "Succeeded"},
      {"the master of an elastic job", elastic_master, {{"a-worker-0", 0}}, "Running"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    PyTorchWorld world = RunningWorld(row.parts);
    for (const auto& [name, code] : row.ends) world.Ends(name, code);
    world.Pass();
    EXPECT_EQ(world.State(), row.state);
    world.Settle();
    EXPECT_EQ(world.State(), row.state);
  }
}

TEST(PyTorchSuccess, WhatStillRanCountsAsSucceeded) {
  PyTorchWorld world = RunningWorld({});
  world.Ends("a-master-0", 0);
  const PyTorchDecision decision = world.Pass();
  EXPECT_TRUE(decision.status_first);
  EXPECT_THAT(Reasons(decision), ElementsAre("PyTorchJobSucceeded"));
  EXPECT_EQ(world.job.status.completion_time, world.now);
  EXPECT_EQ(world.job.status.worker->active, 0);
  EXPECT_EQ(world.job.status.worker->succeeded, 2);
  EXPECT_FALSE(world.job.status.Is("Running"));
  world.Settle();
}

TEST(PyTorchDeadline, IsKeptWithoutAnyOtherEvent) {
  PyTorchWorld world = RunningWorld({.run = "{activeDeadlineSeconds: 60}"});
  world.Wait(59 * kSecond);
  PyTorchDecision decision = world.Pass();
  EXPECT_EQ(world.State(), "Running");
  EXPECT_EQ(decision.again, *world.job.status.start_time + kMinute);
  world.now = *decision.again;
  decision = world.Pass();
  EXPECT_EQ(world.State(), "Failed");
  EXPECT_EQ(world.Message("Failed"), "Job a has failed because it was active longer than specified deadline");
  EXPECT_THAT(world.job.status.message, testing::HasSubstr("raise spec.runPolicy.activeDeadlineSeconds"));
  EXPECT_THAT(Reasons(decision), ElementsAre("PyTorchJobFailed", "SuccessfulDeletePod"));
  EXPECT_EQ(world.job.status.completion_time, world.now);
}

TEST(PyTorchDeadline, ZeroFailsAtOnce) {
  PyTorchWorld world({.run = "{activeDeadlineSeconds: 0}"});
  EXPECT_THAT(Actions(world.Pass()), IsEmpty());
  EXPECT_EQ(world.State(), "Failed");
}

TEST(PyTorchDeadline, CountsFromTheResume) {
  PyTorchWorld world = RunningWorld({.run = "{activeDeadlineSeconds: 60}"});
  world.Wait(59 * kSecond);
  PyTorchParts parts = world.parts();
  parts.run = "{activeDeadlineSeconds: 60, suspend: true}";
  world.Change(parts);
  world.Settle();
  world.Wait(10 * kMinute);
  world.Settle();
  EXPECT_EQ(world.State(), "Suspended") << "a suspended job is not active";
  parts.run = "{activeDeadlineSeconds: 60}";
  world.Change(parts);
  world.Settle();
  EXPECT_EQ(world.State(), "Running");
  EXPECT_EQ(world.Decide().again, world.now + kMinute);
}

TEST(PyTorchDeadline, ASuccessOfTheSameMomentCounts) {
  PyTorchWorld world = RunningWorld({.run = "{activeDeadlineSeconds: 60}"});
  world.Wait(kMinute);
  world.Ends("a-master-0", 0);
  world.Pass();
  EXPECT_EQ(world.State(), "Succeeded");
}

TEST(PyTorchTtl, TheJobIsDeletedAfterItsTime) {
  for (const int code : {0, 1}) {
    PyTorchWorld world = RunningWorld({.policy = "ExitCode", .run = "{ttlSecondsAfterFinished: 60}"});
    world.Ends("a-master-0", code);
    const PyTorchDecision decision = world.Pass();
    EXPECT_EQ(decision.again, world.now + kMinute);
    world.Wait(59 * kSecond);
    world.Settle();
    EXPECT_FALSE(world.gone);
    world.Wait(kSecond);
    EXPECT_THAT(Actions(world.Pass()), ElementsAre("delete job a"));
  }
}

TEST(PyTorchTtl, ZeroIsAtOnceButAfterTheStatus) {
  PyTorchWorld world = RunningWorld({.run = "{ttlSecondsAfterFinished: 0}"});
  world.Ends("a-master-0", 0);
  const PyTorchDecision decision = world.Decide();
  EXPECT_TRUE(decision.status_first);
  EXPECT_THAT(Actions(decision), ElementsAre("delete job a"));
}

// training-operator does not set completionTime after a fatal exit code, and so never deletes the job.
TEST(PyTorchTtl, OfAFailedJobWithoutCompletionTime) {
  PyTorchWorld world({.run = "{ttlSecondsAfterFinished: 60}"});
  world.job.status.conditions = {{"Created", true, "PyTorchJobCreated", "", world.now, world.now},
                                 {"Failed", true, "PyTorchJobFailed", "", world.now, world.now}};
  world.Wait(30 * kSecond);
  EXPECT_EQ(world.Pass().again, world.now + 30 * kSecond);
  EXPECT_EQ(world.job.status.completion_time, world.now - 30 * kSecond);
  world.Wait(30 * kSecond);
  EXPECT_THAT(Actions(world.Pass()), ElementsAre("delete job a"));
}

TEST(PyTorchTtl, AnEndThatAnotherControllerWroteStaysTheState) {
  for (const char* end : {"Succeeded", "Failed"}) {
    PyTorchWorld world({.run = "{ttlSecondsAfterFinished: 60}"});
    world.job.status.conditions = {{end, true, "", "", world.now - 30 * kSecond, world.now - 30 * kSecond}};
    world.Settle();
    EXPECT_EQ(world.State(), end);
    EXPECT_EQ(world.job.status.completion_time, world.now - 30 * kSecond);
  }
}

TEST(PyTorchCleanUp, ThePolicyDecidesWhatStays) {
  struct Row {
    const char *policy, *code_of;  // how the job ends
    std::vector<std::string> pods, services;
  };
  const std::vector<std::string> all = {"a-master-0", "a-worker-0", "a-worker-1", "a-worker-2"};
  const Row rows[] = {
      {"None", "0", all, all},
      {"Running", "0", {"a-master-0", "a-worker-0"}, {"a-master-0", "a-worker-0"}},
      {"All", "0", {}, {}},
      {"None", "2", all, all},
      {"Running", "2", {"a-master-0", "a-worker-0"}, {"a-master-0", "a-worker-0"}},
      {"All", "2", {}, {}},
      {"None", "deadline", {"a-worker-0"}, {"a-worker-0"}},
      {"None", "137", {"a-master-0", "a-worker-0"}, {"a-master-0", "a-worker-0"}},
      {"Running", "deadline", {"a-worker-0"}, {"a-worker-0"}},
      {"All", "deadline", {}, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("{} after {}", row.policy, row.code_of));
    const bool deadline = std::string_view(row.code_of) == "deadline";
    PyTorchWorld world = RunningWorld(
        {.workers = 3,
         .policy = "ExitCode",
         .run = fmt::format("{{cleanPodPolicy: {}, activeDeadlineSeconds: 60, backoffLimit: 0}}", row.policy)});
    world.Ends("a-worker-0", 0);
    world.Pod("a-worker-2").phase = "Pending";
    if (!deadline) world.Ends("a-master-0", std::stoi(row.code_of));
    if (deadline) world.Wait(kMinute);
    const PyTorchDecision decision = world.Pass();
    EXPECT_TRUE(decision.status_first) << "the status says why before the logs go";
    EXPECT_TRUE(world.job.status.Finished());
    for (int pass = 0; pass < 3; ++pass) {
      world.End();
      EXPECT_THAT(Actions(world.Pass()), IsEmpty());
    }
    EXPECT_EQ(world.PodNames(), row.pods);
    EXPECT_EQ(world.ServiceNames(), row.services);
  }
}

TEST(PyTorchCleanUp, NothingRunsAgainWhateverVanishes) {
  PyTorchWorld world = RunningWorld({.policy = "ExitCode"});
  world.Ends("a-master-0", 0);
  world.Settle();
  for (const char* name : {"a-master-0", "a-worker-0"}) world.Vanishes(name);
  world.seen.services.clear();
  world.Ends("a-worker-1", 1);
  const PyTorchJobStatus end = world.job.status;
  const PyTorchDecision decision = world.Decide();
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_TRUE(decision.status == end);
}

TEST(PyTorchSuspend, AllPodsAndServicesGo) {
  PyTorchWorld world = RunningWorld({.run = "{cleanPodPolicy: None}"});
  world.Ends("a-worker-1", 0);
  world.Pass();
  PyTorchParts parts = world.parts();
  parts.run = "{suspend: true, cleanPodPolicy: None}";
  world.Change(parts);
  const PyTorchDecision decision = world.Pass();
  EXPECT_THAT(Reasons(decision), Contains("PyTorchJobSuspended"));
  EXPECT_EQ(world.State(), "Suspended");
  EXPECT_FALSE(world.job.status.Is("Running"));
  EXPECT_EQ(world.job.status.master->active, 0);
  world.Settle();
  EXPECT_THAT(world.PodNames(), IsEmpty());
  EXPECT_THAT(world.ServiceNames(), IsEmpty());
  parts.run = "{}";
  world.Change(parts);
  world.Wait(kMinute);
  EXPECT_THAT(Reasons(world.Pass()), Contains("PyTorchJobResumed"));
  EXPECT_EQ(world.job.status.start_time, world.now);
  world.Settle();
  EXPECT_EQ(world.State(), "Running");
  EXPECT_FALSE(world.job.status.Is("Suspended"));
  EXPECT_EQ(world.job.status.restarts, 0);
}

// The controller does not watch the objects of a gang of Kubernetes.
TEST(PyTorchSuspend, AGangGoesWithItsJob) {
  const auto deletions = [](const PyTorchDecision& decision) {
    std::vector<std::string> kinds;
    for (const Action& action : decision.actions) {
      if (action.kind == Action::Kind::kDeleteObject) kinds.push_back(TextField(action.object(), "kind"));
    }
    return kinds;
  };
  PyTorchParts parts{.annotations = "{muster.dev/gang: native}"};
  PyTorchWorld world = RunningWorld(parts);
  EXPECT_EQ(world.objects, (std::set<std::string>{"PodGroup", "Workload"}));
  parts.run = "{suspend: true}";
  world.Change(parts);
  EXPECT_THAT(deletions(world.Pass()), ElementsAre("PodGroup", "Workload"));
  EXPECT_THAT(deletions(world.Pass()), IsEmpty());
  world.Settle();
  parts.run = "{}";
  world.Change(parts);
  world.Settle();
  EXPECT_EQ(world.objects, (std::set<std::string>{"PodGroup", "Workload"}));
  world.Ends("a-master-0", 0);
  EXPECT_THAT(deletions(world.Pass()), ElementsAre("PodGroup", "Workload"));
  EXPECT_THAT(deletions(world.Decide()), ElementsAre("PodGroup", "Workload")) << "the first pass may have failed";
  world.Wait(kMinute);
  EXPECT_THAT(deletions(world.Decide()), IsEmpty());
}

TEST(PyTorchSuspend, AJobSuspendedFromTheStartCreatesNothing) {
  PyTorchWorld world({.run = "{suspend: true, activeDeadlineSeconds: 0, backoffLimit: 0}"});
  EXPECT_THAT(Actions(world.Pass()), IsEmpty());
  EXPECT_EQ(world.State(), "Suspended");
  EXPECT_FALSE(world.job.status.start_time);
  world.Settle();
}

// The job is resumed while its old pods are still ending.
TEST(PyTorchSuspend, AResumeThatComesSoonIsNoRestart) {
  for (const char* annotations : {"{}", "{muster.dev/restart: job}"}) {
    SCOPED_TRACE(annotations);
    PyTorchWorld world = RunningWorld({.policy = "ExitCode", .annotations = annotations});
    PyTorchParts parts = world.parts();
    parts.run = "{suspend: true}";
    world.Change(parts);
    world.Pass();
    parts.run = "{}";
    world.Change(parts);
    const PyTorchDecision decision = world.Pass();
    EXPECT_THAT(Reasons(decision), Not(Contains("PodDeleted")));
    EXPECT_THAT(world.PodNames().size(), 3U) << "they have not ended";
    EXPECT_EQ(world.State(), "Suspended") << "Suspended is False, and nothing runs yet";
    world.Settle();
    EXPECT_EQ(world.State(), "Running");
    EXPECT_EQ(world.job.status.attempt, 0);
    EXPECT_EQ(world.job.status.restarts, 0);
  }
}

// The API server's clock is behind, so new pods look older than the resume.
TEST(PyTorchSuspend, APodThatIsDeletedLaterIsALostOne) {
  PyTorchWorld world = RunningWorld({.policy = "ExitCode", .annotations = "{muster.dev/restart: job}"});
  PyTorchParts parts = world.parts();
  parts.run = "{suspend: true}";
  world.Change(parts);
  world.Settle();
  parts.run = "{}";
  world.Change(parts);
  world.Settle();
  for (ObservedPod& pod : world.seen.pods) pod.meta.created = world.now - 5 * kSecond;
  world.Wait(kMinute);
  world.IsDeleted("a-worker-0");
  world.Pass();
  EXPECT_EQ(world.State(), "Restarting");
  EXPECT_EQ(world.job.status.attempt, 1);
}

TEST(PyTorchScale, PodsAreAddedAndRemoved) {
  PyTorchWorld world = RunningWorld(
      {.master = false, .spec = "{elasticPolicy: {minReplicas: 1, maxReplicas: 4}}", .container = kTorchrun});
  PyTorchParts parts = world.parts();
  parts.workers = 4;
  world.Change(parts);
  PyTorchDecision decision = world.Pass();
  EXPECT_THAT(Actions(decision), ElementsAre("service a-worker-2", "service a-worker-3", "create pod a-worker-2",
                                             "create pod a-worker-3", "tell a-worker-0", "tell a-worker-1"));
  world.Settle();
  EXPECT_EQ(world.State(), "Running");
  parts.workers = 1;
  world.Change(parts);
  decision = world.Pass();
  EXPECT_THAT(Actions(decision), Contains("tell a-worker-0"));
  EXPECT_THAT(Reasons(decision), Contains("SuccessfulDeletePod"));
  EXPECT_EQ(world.State(), "Running");
  world.Settle();
  EXPECT_THAT(world.PodNames(), ElementsAre("a-worker-0"));
  EXPECT_THAT(world.ServiceNames(), ElementsAre("a-worker-0"));
  EXPECT_EQ(world.State(), "Running");
  EXPECT_EQ(world.job.status.restarts, 0);
}

TEST(PyTorchScale, AFailureOfAPodThatGoesIsNone) {
  PyTorchWorld world = RunningWorld({.policy = "ExitCode"});
  PyTorchParts parts = world.parts();
  parts.workers = 1;
  world.Change(parts);
  world.Pass();
  world.Ends("a-worker-1", 1);
  world.Settle();
  EXPECT_EQ(world.State(), "Running");
}

TEST(PyTorchLifetime, AJobThatIsBeingDeletedIsLeftAlone) {
  PyTorchWorld world = RunningWorld({});
  world.job.meta.deleted = world.now;
  world.Vanishes("a-worker-0");
  const PyTorchDecision decision = world.Decide();
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_TRUE(decision.status == world.job.status);
}

TEST(PyTorchLifetime, AJobThatCannotBePlannedSaysWhyOnce) {
  PyTorchWorld world({});
  const Status why = absl::InvalidArgumentError("spec.x: it is wrong");
  PyTorchDecision decision = Decide(world.job, why, world.seen, world.now);
  EXPECT_EQ(decision.status.message, "spec.x: it is wrong");
  EXPECT_EQ(decision.status.conditions.back().type, "Created");
  EXPECT_THAT(Reasons(decision), ElementsAre("InvalidPyTorchJob"));
  EXPECT_THAT(Reasons(DecideAfterRefusal(world.job, why, world.now)), ElementsAre("FailedCreatePod"));
  world.job.status = decision.status;
  decision = Decide(world.job, why, world.seen, world.now);
  EXPECT_THAT(decision.events, IsEmpty());
  EXPECT_TRUE(decision.status == world.job.status);
}

}  // namespace
}  // namespace muster::controller
