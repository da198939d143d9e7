// SPDX-License-Identifier: Apache-2.0
// Restarts of one pod or of the whole PyTorchJob: each is counted once and happens after its pause.
#include "tests/controller/reconcile/pytorch_world.h"

namespace muster::controller {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kMinute = std::chrono::seconds(60);

PyTorchWorld LongRunning(const PyTorchParts& parts) {
  PyTorchWorld world = RunningWorld(parts);
  world.Wait(20 * kMinute);
  return world;
}

const PyTorchParts kByCode{.policy = "ExitCode", .run = "{backoffLimit: 3}"};
const PyTorchParts kWhole{.policy = "ExitCode", .run = "{backoffLimit: 3}", .annotations = "{muster.dev/restart: job}"};
const PyTorchParts kWholeByAgents{.policy = "ExitCode",
                                  .run = "{backoffLimit: 3}",
                                  .annotations = "{muster.dev/restart: job}",
                                  .container = kTorchrun};

TEST(PyTorchRestarts, CountedOnceWhereverTheControllerEnds) {
  for (int writes = 0; writes <= 3; ++writes) {
    SCOPED_TRACE(fmt::format("it ends after {} writes", writes));
    PyTorchWorld world = LongRunning(kByCode);
    const std::string lost = world.Ends("a-worker-0", 143).meta.uid;
    const PyTorchDecision decision = world.Decide();
    EXPECT_TRUE(decision.status_first) << "what the pod ended with would be lost with the pod";
    world.CarryOut(decision, writes);
    world.Wait(kSecond);
    world.Settle();
    EXPECT_EQ(world.job.status.restarts, 1);
    EXPECT_EQ(world.job.status.failures.size(), 1U);
    EXPECT_EQ(world.Uids().count(lost), 0U);
    EXPECT_EQ(world.Uids().size(), 3U);
    EXPECT_EQ(world.State(), "Running");
  }
}

TEST(PyTorchRestarts, WhatWasChargedForAPodIsForgottenWithIt) {
  PyTorchWorld world = LongRunning(kByCode);
  const std::string uid = world.Ends("a-worker-0", 143).meta.uid;
  world.CarryOut(world.Decide(), 1);
  EXPECT_THAT(world.job.status.counted, ElementsAre(CountedPod{uid, 1}));
  const PyTorchDecision again = world.Decide();
  EXPECT_EQ(again.status.restarts, 1);
  EXPECT_THAT(Reasons(again), Not(Contains("PodFailed")));
  world.Settle();
  EXPECT_THAT(world.job.status.counted, IsEmpty());
}

TEST(PyTorchRestarts, RestartsByTheKubeletAreCountedOnce) {
  PyTorchWorld world = LongRunning({.run = "{backoffLimit: 3}"});
  world.StartsAgain("a-worker-0", 137);
  world.StartsAgain("a-worker-0", 137);  // a second restart before the next pass
  world.Pass();
  EXPECT_EQ(world.job.status.restarts, 2);
  world.Settle();
  EXPECT_EQ(world.job.status.restarts, 2);
  EXPECT_EQ(world.job.status.counted.size(), 1U);
  // A new pod of that name counts from 0, and the restarts used so far stay.
  world.Vanishes("a-worker-0");
  world.Settle();
  EXPECT_EQ(world.job.status.restarts, 2);
  EXPECT_THAT(world.job.status.counted, IsEmpty());
  world.StartsAgain("a-worker-0", 137);
  world.Pass();
  EXPECT_EQ(world.job.status.restarts, 3);
  EXPECT_EQ(world.State(), "Running");
  world.StartsAgain("a-master-0", 1);
  world.Pass();
  EXPECT_EQ(world.State(), "Failed");
}

TEST(PyTorchRestarts, AtOnceAfterALifeOfAMinuteElseInGrowingPauses) {
  PyTorchWorld world = LongRunning({.policy = "ExitCode"});
  std::vector<int64_t> pauses;
  for (int time = 0; time < 10; ++time) {
    world.Ends("a-worker-0", 137);
    const WallTime ended = world.now;
    PyTorchDecision decision = world.Pass();
    EXPECT_EQ(world.State(), "Restarting");
    for (int look = 0; look < 3 && decision.again && Actions(decision).empty(); ++look) {
      world.now = *decision.again;
      decision = world.Pass();
    }
    EXPECT_THAT(Actions(decision), ElementsAre("delete pod a-worker-0", "create pod a-worker-0"));
    pauses.push_back(std::chrono::duration_cast<std::chrono::seconds>(world.now - ended).count());
    world.Settle();
    world.Wait(time == 7 ? 2 * kMinute : kSecond);
  }
  EXPECT_EQ(pauses.size(), 10U);
  EXPECT_THAT(std::vector<int64_t>(pauses.begin(), pauses.begin() + 7), ElementsAre(0, 5, 10, 20, 40, 80, 160));
  EXPECT_EQ(pauses[7], 300);
  EXPECT_EQ(pauses[8], 0) << "it had lived for two minutes";
}

// The API server removes a pod at once if its phase is final. Otherwise its name stays taken.
TEST(PyTorchRestarts, APodThatWillFailIsCountedAtOnceRecreatedLater) {
  PyTorchWorld world = LongRunning({.policy = "ExitCode"});
  ObservedPod& pod = world.Ends("a-worker-0", 137);
  pod.phase = "Running";
  pod.will_fail = true;
  PyTorchDecision decision = world.Pass();
  EXPECT_EQ(world.State(), "Restarting");
  EXPECT_EQ(world.job.status.failures.size(), 1U);
  EXPECT_EQ(world.job.status.restarts, 1);
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.again, world.now + 30 * kSecond) << "its node may not answer";
  pod.will_fail = false;
  pod.phase = "Failed";
  decision = world.Pass();
  EXPECT_THAT(Actions(decision), ElementsAre("delete pod a-worker-0", "create pod a-worker-0"));
  EXPECT_EQ(world.job.status.restarts, 1);
}

TEST(PyTorchRestarts, APodThatNeverRanIsNotRecreatedAtOnce) {
  PyTorchWorld world(kByCode);
  world.Pass();
  ObservedPod& pod = world.Pod("a-worker-0");
  pod.phase = "Failed";
  pod.reason = "OutOfcpu";
  const PyTorchDecision decision = world.Pass();
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.again, world.now + 5 * kSecond);
}

TEST(PyTorchRestarts, TimeThatIsSetBackHoldsNothingUp) {
  PyTorchWorld world = LongRunning(kByCode);
  for (int time = 0; time < 2; ++time) {
    world.Ends("a-worker-0", 137);
    world.now -= 5 * kMinute;
    EXPECT_THAT(Actions(world.Pass()), ElementsAre("delete pod a-worker-0", "create pod a-worker-0"));
    world.Settle();
  }
  EXPECT_EQ(world.job.status.restarts, 2);
  EXPECT_EQ(world.State(), "Running");
}

TEST(PyTorchRestarts, ALostNodesPodIsDropped) {
  PyTorchWorld world = LongRunning(kByCode);
  world.IsDeleted("a-worker-0");
  PyTorchDecision decision = world.Pass();
  const WallTime lost = *world.Pod("a-worker-0").meta.deleted + 30 * kSecond;
  EXPECT_EQ(decision.again, lost);
  world.now = lost - kSecond;
  EXPECT_THAT(Actions(world.Pass()), IsEmpty());
  world.now = lost;
  decision = world.Pass();
  EXPECT_THAT(Actions(decision), ElementsAre("drop pod a-worker-0"));
  EXPECT_THAT(Reasons(decision), Contains("PodLost"));
  EXPECT_THAT(Actions(world.Pass()), ElementsAre("create pod a-worker-0"));
  world.Settle();
  EXPECT_EQ(world.State(), "Running");
  EXPECT_EQ(world.job.status.restarts, 0);
}

TEST(PyTorchRestarts, TheWholeJobWithoutAgents) {
  PyTorchWorld world = LongRunning(kWhole);
  const auto before = world.Uids();
  world.Ends("a-worker-0", 143);
  PyTorchDecision decision = world.Pass();
  EXPECT_EQ(world.job.status.attempt, 1);
  EXPECT_EQ(world.job.status.restarts, 1);
  EXPECT_TRUE(decision.status_first);
  EXPECT_THAT(Actions(decision),
              ElementsAre("delete pod a-master-0", "delete pod a-worker-0", "delete pod a-worker-1"));
  EXPECT_THAT(decision.events.back().message, HasSubstr("all pods are recreated, restart 1 of 3: "));
  EXPECT_THAT(decision.events.back().message, HasSubstr("pod a-worker-0"));
  EXPECT_EQ(world.State(), "Restarting");
  EXPECT_THAT(Actions(world.Pass()), IsEmpty()) << "two of the last attempt are left";
  world.Vanishes("a-master-0");
  EXPECT_THAT(Actions(world.Pass()), IsEmpty()) << "one of the last attempt is left";
  world.Vanishes("a-worker-1");
  decision = world.Pass();
  EXPECT_THAT(Actions(decision),
              ElementsAre("create pod a-master-0", "create pod a-worker-0", "create pod a-worker-1"));
  EXPECT_EQ(world.Pod("a-worker-1").attempt, 1);
  EXPECT_EQ(world.Pod("a-worker-1").meta.Annotation("muster.dev/restarts-left"), "2");
  world.Settle();
  EXPECT_EQ(world.State(), "Running");
  EXPECT_EQ(world.job.status.attempt, 1);
  for (const std::string& uid : world.Uids()) EXPECT_EQ(before.count(uid), 0U);
}

// Agents under a command other than torchrun do not know of each other.
TEST(PyTorchRestarts, TheWholeJobsLimit) {
  for (const char* container : {"{}", "{command: [python, t.py]}"}) {
    SCOPED_TRACE(container);
    PyTorchParts parts = kWhole;
    parts.container = container;
    PyTorchWorld world = LongRunning(parts);
    for (int restart = 1; restart <= 4; ++restart) {
      world.Wait(2 * kMinute);
      world.Ends("a-worker-1", 137);
      world.Settle();
      EXPECT_EQ(world.job.status.restarts, std::min(restart, 3)) << "the last end is not a restart";
      EXPECT_EQ(world.job.status.attempt, std::min(restart, 3));
      EXPECT_EQ(world.State(), restart <= 3 ? "Running" : "Failed");
    }
    EXPECT_THAT(world.Message("Failed"), HasSubstr("has reached the specified backoff limit"));
  }
}

TEST(PyTorchRestarts, WhatBreaksWhileTheOldPodsEndCostsNothing) {
  PyTorchWorld world = LongRunning(kWhole);
  world.Ends("a-worker-0", 143);
  world.Pass();
  world.Ends("a-master-0", 1);
  world.Ends("a-worker-1", 143);
  world.Settle();
  EXPECT_EQ(world.State(), "Running");
  EXPECT_EQ(world.job.status.restarts, 1);
  EXPECT_EQ(world.job.status.attempt, 1);
}

TEST(PyTorchRestarts, TheWholeJobForAPodThatIsGone) {
  for (const bool deleted : {false, true}) {
    SCOPED_TRACE(deleted ? "it is being deleted" : "it is gone");
    PyTorchWorld world = LongRunning(kWhole);
    const auto before = world.Uids();
    if (deleted) {
      world.IsDeleted("a-master-0");
    } else {
      world.Vanishes("a-master-0");
    }
    world.Settle();
    EXPECT_EQ(world.job.status.attempt, 1);
    EXPECT_EQ(world.job.status.restarts, 0) << "that is not a failure of the job";
    for (const std::string& uid : world.Uids()) EXPECT_EQ(before.count(uid), 0U);
    EXPECT_EQ(world.State(), "Running");
  }
}

TEST(PyTorchRestarts, TheWholeJobWhereverTheControllerEnds) {
  for (int writes = 0; writes <= 5; ++writes) {
    SCOPED_TRACE(fmt::format("it ends after {} writes", writes));
    PyTorchWorld world = LongRunning(kWhole);
    const auto before = world.Uids();
    world.Ends("a-worker-0", 143);
    world.CarryOut(world.Decide(), writes);
    world.Settle();
    EXPECT_EQ(world.job.status.attempt, 1);
    EXPECT_EQ(world.job.status.restarts, 1);
    for (const std::string& uid : world.Uids()) EXPECT_EQ(before.count(uid), 0U);
  }
}

TEST(PyTorchRestarts, AFatalCodeIsFatalForTheWholeJobToo) {
  for (const PyTorchParts& parts : {kWhole, kWholeByAgents}) {
    PyTorchWorld world = LongRunning(parts);
    world.Ends("a-worker-0", 2);
    world.Pass();
    EXPECT_EQ(world.State(), "Failed");
    EXPECT_EQ(world.job.status.attempt, 0);
  }
}

TEST(PyTorchRestarts, WithAgentsOnlyTheLostPodIsRecreated) {
  PyTorchWorld world = LongRunning(kWholeByAgents);
  const std::string master = world.Pod("a-master-0").meta.uid;
  world.Ends("a-worker-0", 137);
  EXPECT_THAT(Actions(world.Pass()), ElementsAre("delete pod a-worker-0", "create pod a-worker-0"));
  world.Settle();
  EXPECT_EQ(world.Pod("a-master-0").meta.uid, master);
  EXPECT_EQ(world.job.status.attempt, 0);
  EXPECT_EQ(world.job.status.restarts, 1);
  // The agents that run would refuse one with another budget.
  EXPECT_EQ(world.Pod("a-worker-0").meta.Annotation("muster.dev/restarts-left"), "3");
}

TEST(PyTorchRestarts, WhatTheAgentsChargedIsCountedOnce) {
  PyTorchWorld world = LongRunning(kWholeByAgents);
  // Two restarts in place, then a node dies.
  world.Ends("a-worker-0", 137).ends[0].message = Told(137, ExitClass::kRetryable, 2, "killed");
  world.Pass();
  EXPECT_EQ(world.job.status.restarts, 3);
  world.Settle();
  EXPECT_EQ(world.job.status.restarts, 3);
  EXPECT_EQ(world.State(), "Running");
}

// While they run the agents say it; their messages say it again in the end.
TEST(PyTorchRestarts, RestartsInPlaceShowWhileTheyHappen) {
  PyTorchWorld world = LongRunning(kWholeByAgents);
  const TerminationMessage last = ToldAt("a-master-0", "a-worker-1", world.now - 20 * kSecond, 139);
  world.seen.agents = AgentsSaid{world.Pod("a-master-0").meta.uid, 1, last.cause};
  const PyTorchDecision decision = world.Pass();
  EXPECT_EQ(world.job.status.restarts, 1);
  EXPECT_THAT(Reasons(decision), ElementsAre("Restarted"));
  EXPECT_THAT(decision.events[0].message, HasSubstr("rank 3 on pod a-worker-1, container pytorch (node n1)"));
  EXPECT_THAT(Actions(decision), IsEmpty());
  ASSERT_EQ(world.job.status.failures.size(), 1U);
  EXPECT_EQ(world.job.status.failures[0].pod, "a-worker-1");
  EXPECT_EQ(world.State(), "Running");
  EXPECT_THAT(world.Pass().events, IsEmpty()) << "it is said once";
  world.seen.agents->pod_uid = world.Pod("a-worker-0").meta.uid;
  EXPECT_THAT(world.Pass().events, IsEmpty()) << "another agent says the same";
  for (const char* name : {"a-master-0", "a-worker-0", "a-worker-1"}) {
    TerminationMessage message = last;
    message.exit_code = 0;
    message.restart_count = 1;
    world.Ends(name, 0).ends[0].message = message;
  }
  world.Pass();
  EXPECT_EQ(world.State(), "Succeeded");
  EXPECT_EQ(world.job.status.restarts, 1);
  EXPECT_EQ(world.job.status.failures.size(), 1U);
}

TEST(PyTorchRestarts, OnlyAPodOfTheJobSpeaksForIt) {
  PyTorchWorld world = LongRunning(kWholeByAgents);
  world.seen.agents = AgentsSaid{"uid of another pod", 2, {}};
  world.Pass();
  EXPECT_EQ(world.job.status.restarts, 0);
  world.seen.agents = AgentsSaid{world.Pod("a-worker-0").meta.uid, 1'000'000, {}};
  world.Pass();
  EXPECT_EQ(world.job.status.restarts, 3) << "never more than the budget";
}

TEST(PyTorchRestarts, AgentsThatUsedTheBudgetUpEndTheJob) {
  PyTorchWorld world = LongRunning(kWholeByAgents);
  for (const char* name : {"a-master-0", "a-worker-0", "a-worker-1"}) {
    world.Ends(name, 137).ends[0].message = Told(137, ExitClass::kRetryable, 3, "killed");
  }
  world.Pass();
  EXPECT_EQ(world.State(), "Failed");
  EXPECT_THAT(world.Message("Failed"), HasSubstr("has reached the specified backoff limit: rank 3 on pod a-master-0"));
  EXPECT_EQ(world.job.status.restarts, 3);
}

TEST(PyTorchRestarts, ALieAboutTheAgentsRestartsIsBounded) {
  PyTorchWorld world = LongRunning(kWholeByAgents);
  auto message = Told(137, ExitClass::kRetryable, 1'000'000'000, "killed");
  message.max_restarts = 0;
  world.Ends("a-worker-0", 137).ends[0].message = message;
  world.Pass();
  EXPECT_LE(world.job.status.restarts, 4);
}

TEST(PyTorchBackoffLimit, ThePodThatReachedItStaysWithItsLog) {
  PyTorchWorld world = RunningWorld({.master = false, .workers = 1, .run = "{backoffLimit: 1}"});
  ObservedPod& pod = world.Pod("a-worker-0");
  ObservedEnd end = PyTorchWorld::EndOf(1, world.now - 20 * kSecond);
  end.started_again = end.waits_to_start = true;
  pod.ends = {end};
  pod.restarts = 1;
  world.Pass();
  EXPECT_FALSE(world.job.status.Finished()) << "one restart is allowed";
  world.Pod("a-worker-0").restarts = 2;
  const PyTorchDecision decision = world.Pass();
  EXPECT_TRUE(world.job.status.Is("Failed"));
  EXPECT_EQ(world.job.status.restarts, 1);
  EXPECT_THAT(Actions(decision), ElementsAre("end a-worker-0"));
}

TEST(PyTorchBackoffLimit, TheKubeletDoesNotRestartAfterTheLastOne) {
  const PlannedPyTorch planned({.run = "{backoffLimit: 1}"});
  const auto policy = [&](int left) {
    return TextField(planned.Pod(ReplicaType::kWorker, 0, {.restarts_left = left})["spec"], "restartPolicy");
  };
  EXPECT_EQ(policy(1), "OnFailure");
  EXPECT_EQ(policy(0), "Never");
  EXPECT_EQ(PlannedPyTorch({}).Pod(ReplicaType::kWorker, 0)["spec"]["restartPolicy"], "OnFailure") << "no limit";
}

}  // namespace
}  // namespace muster::controller
