// SPDX-License-Identifier: Apache-2.0
// Which failure counts as the cause when several pods of a PyTorchJob fail.
#include "controller/reconcile/pytorch_replicas.h"
#include "tests/controller/reconcile/pytorch_world.h"

namespace muster::controller {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kMinute = std::chrono::seconds(60);

PyTorchParts ByCode(const std::string& run = "{}") { return {.policy = "ExitCode", .run = run}; }

PyTorchWorld LongRunning(const PyTorchParts& parts) {
  PyTorchWorld world = RunningWorld(parts);
  world.Wait(20 * kMinute);
  return world;
}

TEST(PyTorchFailures, AnOutOfMemoryKillIsCounted) {
  PyTorchWorld world = LongRunning(ByCode("{backoffLimit: 1}"));
  world.Ends("a-worker-0", 137).ends[0].reason = "OOMKilled";
  world.Pass();
  EXPECT_EQ(world.State(), "Restarting");
  EXPECT_EQ(world.job.status.restarts, 1) << "it is the job's own memory";
  const Failure& failure = world.job.status.failures.at(0);
  EXPECT_TRUE(failure.oom);
  EXPECT_EQ(failure.reason, "OOMKilled");
  EXPECT_EQ(failure.signal, "SIGKILL");
}

TEST(PyTorchFailures, AnOutOfMemoryKillOfAChildIsCounted) {
  PyTorchWorld world = LongRunning(ByCode("{backoffLimit: 1}"));
  world.Ends("a-worker-0", 1).ends[0].reason = "OOMKilled";
  world.Pass();
  EXPECT_EQ(world.State(), "Restarting");
  EXPECT_EQ(world.job.status.restarts, 1);
}

TEST(PyTorchFailures, OfSeveralContainersTheFirstDecides) {
  struct End {
    const char* container;
    int code;
    int after;  // seconds
    bool init = false;
  };
  struct Row {
    const char* what;
    std::vector<End> ends;
    bool fatal;
    const char* container;
  };
  const Row rows[] = {
      {"the other one came later", {{"pytorch", 137, 0}, {"side", 1, 5}}, false, "pytorch"},
      {"and is listed first", {{"a-side", 1, 5}, {"pytorch", 137, 0}}, false, "pytorch"},
      {"the other one came first", {{"pytorch", 137, 5}, {"side", 3, 0}}, true, "side"},
      {"the other one was well", {{"side", 0, 0}, {"pytorch", 3, 5}}, true, "pytorch"},
      {"only the other one was bad", {{"pytorch", 0, 0}, {"side", 143, 5}}, false, "side"},
      {"in one second", {{"a-side", 1, 0}, {"pytorch", 137, 0}}, false, "pytorch"},
      {"in one second, the other way round", {{"a-side", 143, 0}, {"pytorch", 3, 0}}, true, "pytorch"},
      {"an init container", {{"fetch", 1, 0, true}}, true, "fetch"},
      {"the wait for the master", {{"init-pytorch", 1, 0, true}}, false, "init-pytorch"},
      {"an init container that was killed", {{"fetch", 137, 0, true}}, false, "fetch"},
      {"a sidecar that is stopped at the end, in one second",
       {{"log", 143, 0, true}, {"pytorch", 3, 0}},
       true,
       "pytorch"},
      {"a sidecar that ends badly when it is stopped", {{"log", 1, 1, true}, {"pytorch", 143, 0}}, false, "pytorch"},
      {"no container has ended", {}, false, ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    PyTorchWorld world = LongRunning(ByCode());
    ObservedPod& pod = world.Ends("a-worker-0", 1);
    pod.ends.clear();
    for (const End& end : row.ends) {
      pod.ends.push_back(PyTorchWorld::EndOf(end.code, world.now + end.after * kSecond, end.container));
      pod.ends.back().init = end.init;
    }
    world.Wait(10 * kSecond);
    world.Pass();
    EXPECT_EQ(world.State(), row.fatal ? "Failed" : "Restarting");
    EXPECT_EQ(world.job.status.failures.at(0).container, row.container);
  }
}

TEST(PyTorchFailures, ADeletedPodCostsNothingUnderEachPolicy) {
  for (const char* policy : {"Always", "OnFailure", "Never", "ExitCode"}) {
    SCOPED_TRACE(policy);
    PyTorchWorld world = LongRunning({.policy = policy, .run = "{backoffLimit: 0}"});
    world.IsDeleted("a-worker-0");
    PyTorchDecision decision = world.Pass();
    EXPECT_THAT(Actions(decision), IsEmpty());
    EXPECT_THAT(Reasons(decision), Contains("PodDeleted"));
    EXPECT_EQ(world.State(), "Restarting");
    EXPECT_EQ(world.job.status.worker->failed, 1);
    EXPECT_EQ(world.job.status.worker->active, 1);
    world.Ends("a-worker-0", 1);  // it ends in its grace period and still exists
    world.Pass();
    EXPECT_EQ(world.State(), "Restarting");
    world.End();
    EXPECT_THAT(Actions(world.Pass()), ElementsAre("create pod a-worker-0"));
    world.Settle();
    EXPECT_EQ(world.State(), "Running");
    EXPECT_EQ(world.job.status.restarts, 0);
  }
}

TEST(PyTorchFailures, APodThatIsGoneBeforeItsCodeWasRead) {
  for (const char* policy : {"Always", "OnFailure", "Never", "ExitCode"}) {
    SCOPED_TRACE(policy);
    PyTorchWorld world = LongRunning({.policy = policy, .run = "{backoffLimit: 0}"});
    world.Vanishes("a-master-0");
    const PyTorchDecision decision = world.Pass();
    EXPECT_THAT(Actions(decision), ElementsAre("create pod a-master-0"));
    EXPECT_THAT(Reasons(decision), ElementsAre("PodDeleted", "SuccessfulCreatePod"));
    EXPECT_THAT(decision.events[0].message, HasSubstr("before its exit code was read; it is recreated"));
    EXPECT_EQ(world.State(), "Restarting");
    EXPECT_THAT(Reasons(world.Pass()), IsEmpty()) << "it is said once";
    world.Settle();
    EXPECT_EQ(world.State(), "Running");
    EXPECT_EQ(world.job.status.restarts, 0);
  }
}

TEST(PyTorchFailures, AnEvictionIsNotCountedWhateverItsCode) {
  for (const int code : {1, 137}) {
    PyTorchWorld world = LongRunning(ByCode("{backoffLimit: 0}"));
    world.Ends("a-worker-0", code).disrupted = true;
    const PyTorchDecision decision = world.Pass();
    EXPECT_EQ(world.State(), "Restarting");
    EXPECT_EQ(world.job.status.restarts, 0);
    EXPECT_FALSE(world.job.status.failures.at(0).counted);
    EXPECT_THAT(Reasons(decision), Contains("PodDisrupted"));
    EXPECT_THAT(Actions(decision), ElementsAre("delete pod a-worker-0", "create pod a-worker-0"));
  }
}

// Without an agent, the peers of a killed rank end with 1 when their collective operation fails.
TEST(PyTorchFailures, APeersFailureExplainsA1ThatCameAfterIt) {
  struct Row {
    const char* what;
    int peer;                    // exit code of the peer
    std::chrono::seconds after;  // how much later the pod ends with 1
    bool fatal;
  };
  const Row rows[] = {
      {"soon after", 143, 3 * kSecond, false},
      {"at the end of NCCL's patience", 137, 10 * kMinute, false},
      {"too late", 143, 10 * kMinute + kSecond, true},
      {"it came first", 143, -3 * kSecond, true},
      {"both are bugs", 1, 3 * kSecond, true},
      {"in the second of a kill", 143, 0 * kSecond, false},
      {"in the second of an abort", 134, 0 * kSecond, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    PyTorchWorld world = LongRunning(ByCode("{backoffLimit: 3}"));
    world.Ends("a-master-0", row.peer);
    world.Ends("a-worker-0", 1).ends[0].finished = world.now + row.after;
    world.Wait(11 * kMinute);
    world.Pass();
    EXPECT_EQ(world.State(), row.fatal ? "Failed" : "Restarting");
    if (!row.fatal) {
      EXPECT_EQ(world.job.status.restarts, 1) << "one failure, one restart";
      EXPECT_EQ(world.job.status.failures.size(), 2U);
    }
  }
}

TEST(PyTorchFailures, APeersFailureSeenInAnEarlierPassExplainsToo) {
  PyTorchWorld world = LongRunning(ByCode("{backoffLimit: 1}"));
  world.Ends("a-master-0", 143);
  world.Pass();
  world.Run();
  world.Wait(5 * kSecond);
  world.Ends("a-worker-0", 1);
  world.Ends("a-worker-1", 1);
  world.Pass();
  EXPECT_EQ(world.State(), "Restarting");
  EXPECT_EQ(world.job.status.restarts, 1);
  world.Settle();
  EXPECT_EQ(world.State(), "Running");
}

TEST(PyTorchFailures, APodThatWasMadeAfterwardsIsNotExplained) {
  PyTorchWorld world = LongRunning(ByCode());
  world.Ends("a-master-0", 143);
  world.Wait(kSecond);
  world.Settle();
  world.Wait(5 * kSecond);
  world.Ends("a-master-0", 1);
  world.Pass();
  EXPECT_EQ(world.State(), "Failed") << "it cannot start from its checkpoint";
}

// Times are whole seconds, so the new pod seems to have run already when the old pod ended.
TEST(PyTorchFailures, APodCreatedInTheSecondOfTheFailureIsNotExplained) {
  PyTorchWorld world = LongRunning(ByCode());
  world.Ends("a-worker-0", 137);
  world.Settle();
  world.Wait(kSecond);
  world.Ends("a-worker-0", 2);
  world.Pass();
  EXPECT_EQ(world.State(), "Failed");
}

TEST(PyTorchFailures, AWaitForTheMasterExplainsNoEndOfIt) {
  PyTorchWorld world = LongRunning(ByCode());
  world.Ends("a-worker-0", 1).ends[0] = PyTorchWorld::EndOf(200, world.now, "init-pytorch");
  world.Wait(kSecond);
  world.Settle();
  world.Ends("a-master-0", 1);
  world.Pass();
  EXPECT_EQ(world.State(), "Failed");
}

// The cluster did not answer: its DNS, its network, or what makes the master's Service.
TEST(PyTorchFailures, AWaitForTheMasterThatWasInVainCostsNothing) {
  for (const int code : {200, 1}) {
    for (const char* policy : {"ExitCode", "OnFailure"}) {
      SCOPED_TRACE(fmt::format("{} {}", policy, code));
      PyTorchWorld world = LongRunning({.policy = policy, .run = "{backoffLimit: 5}"});
      ObservedPod& pod = world.Ends("a-worker-0", code);
      pod.ends[0] = PyTorchWorld::EndOf(code, world.now, "init-pytorch");
      world.Wait(kSecond);
      world.Settle();
      EXPECT_EQ(world.State(), "Running");
      EXPECT_EQ(world.job.status.restarts, code == 200 ? 0 : 1);
    }
  }
}

// The new master starts beside a worker that will end because of the old master.
TEST(PyTorchFailures, AConsequenceExplainsFurtherOnesForAWhile) {
  PyTorchWorld world = LongRunning(ByCode("{backoffLimit: 1}"));
  world.Ends("a-master-0", 143);
  world.Wait(kSecond);
  world.Pass();
  world.Run();
  world.Wait(5 * kSecond);
  world.Ends("a-worker-0", 1);
  world.Pass();
  world.Run();
  world.Wait(3 * kSecond);
  world.Ends("a-master-0", 1);
  world.Pass();
  EXPECT_EQ(world.State(), "Restarting");
  EXPECT_EQ(world.job.status.restarts, 1);
}

TEST(PyTorchFailures, ABugAfterAPeersFailureEndsTheJobAtLast) {
  PyTorchWorld world = LongRunning(ByCode());
  world.Ends("a-master-0", 143);
  world.Pass();
  world.Run();
  const WallTime begin = world.now;
  for (int turn = 0; turn < 1000 && world.State() != "Failed"; ++turn) {
    world.Wait(25 * kSecond);  // each pod lives for more than a minute, so there are no pauses
    const std::string name = std::vector<std::string>{"a-worker-0", "a-master-0", "a-worker-1"}[turn % 3];
    if (world.Has(name) && world.Pod(name).phase == "Running") world.Ends(name, 1);
    world.Pass();
    world.Run();
  }
  EXPECT_EQ(world.State(), "Failed") << "restarts that cost nothing have no end";
  EXPECT_LE(world.now - begin, kPeerFailureShows + 2 * kMinute);
}

TEST(PyTorchFailures, ManyPodsEndForOneCause) {
  PyTorchWorld world = LongRunning({.workers = 40, .policy = "ExitCode", .run = "{backoffLimit: 1}"});
  world.Ends("a-master-0", 143);
  world.Wait(kSecond);
  world.Pass();
  world.Run();
  for (int worker = 0; worker < 40; ++worker) {
    world.Wait(kSecond);
    world.Ends(fmt::format("a-worker-{}", worker), 1);
    world.Pass();
    world.Run();
    ASSERT_EQ(world.State(), "Restarting") << worker << ": " << world.Message("Failed");
  }
  EXPECT_EQ(world.job.status.restarts, 1);
  EXPECT_EQ(world.job.status.failures.size(), kMostFailures);
  EXPECT_EQ(world.job.status.failures[0].exit_code, 143) << "the cause stays";
}

// More failures than the status keeps, and no failed pod is replaced yet.
TEST(PyTorchFailures, ManyThatWaitAreToldOnce) {
  PyTorchWorld world = LongRunning({.workers = 30, .policy = "ExitCode"});
  for (int round = 0; round < 2; ++round) {
    for (int worker = 0; worker < 30; ++worker) world.Ends(fmt::format("a-worker-{}", worker), 137);
    world.Pass();
    world.Run();
    world.Wait(kSecond);
  }
  EXPECT_EQ(world.job.status.restarts, 60);
  const PyTorchDecision decision = world.Decide();
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_THAT(decision.events, IsEmpty());
  EXPECT_TRUE(decision.status == world.job.status) << "it would be written for ever";
  EXPECT_TRUE(decision.again);
}

TEST(PyTorchFailures, APodWhosePhaseIsNotYetFailedKeepsItsLogs) {
  PyTorchWorld world = LongRunning({.policy = "ExitCode", .run = "{cleanPodPolicy: Running}", .container = kTorchrun});
  ObservedPod& failed = world.Ends("a-worker-0", 2);
  failed.phase = "Running";
  failed.ends[0].message = Told(2, ExitClass::kFatal, 0, "no such data");
  const PyTorchDecision decision = world.Pass();
  EXPECT_EQ(world.State(), "Failed");
  world.End();
  EXPECT_EQ(world.PodNames(), std::vector<std::string>{"a-worker-0"});
  ASSERT_TRUE(decision.again.has_value()) << "the kubelet may never set it";
  world.now = *decision.again;
  world.Pass();
  world.End();
  EXPECT_THAT(world.PodNames(), IsEmpty());
}

TEST(PyTorchFailures, WhatTheAgentSaysDecides) {
  PyTorchWorld world = LongRunning({.policy = "ExitCode", .run = "{backoffLimit: 3}", .container = kTorchrun});
  for (const char* name : {"a-master-0", "a-worker-0", "a-worker-1"}) {
    world.Ends(name, 1).ends[0].message = Told(1, ExitClass::kFatal, 0, "ValueError: no such data");
  }
  world.Pass();
  EXPECT_EQ(world.State(), "Failed");
  EXPECT_THAT(world.Message("Failed"),
              HasSubstr("rank 3 on pod a-master-0, container pytorch (node n1) ended with exit "
                        "code 1: ValueError: no such data"));
  EXPECT_EQ(world.job.status.failures.at(0).rank, 3);
}

TEST(PyTorchFailures, TheReplicaOfTheCauseFails) {
  struct Row {
    std::vector<std::string> seen;  // whose ends are known
    const char* reported_by;
  };
  for (const Row& row : {Row{{"a-master-0"}, "a-master-0"}, Row{{"a-worker-1"}, ""},
                         Row{{"a-master-0", "a-worker-0", "a-worker-1"}, "a-master-0"}}) {
    PyTorchWorld world = LongRunning({.policy = "ExitCode", .run = "{backoffLimit: 3}", .container = kTorchrun});
    world.Pod("a-worker-1").node = "n2";
    for (const std::string& name : row.seen) {
      world.Ends(name, 3).ends[0].message = ToldAt(name, "a-worker-1", world.now);
    }
    world.Pass();
    EXPECT_EQ(world.State(), "Failed");
    EXPECT_THAT(world.Message("Failed"),
                HasSubstr("because 1 Worker replica(s) failed: rank 3 on pod a-worker-1, container pytorch (node n2)"));
    const Failure& failure = world.job.status.failures.at(0);
    EXPECT_EQ(failure.pod, "a-worker-1");
    EXPECT_EQ(failure.node_rank, 2);
    EXPECT_EQ(failure.reported_by, row.reported_by);
    const auto& workers = world.job.status.Of(ReplicaType::kWorker);
    EXPECT_EQ(std::pair(workers->failed, workers->active), row.seen.size() == 3 ? std::pair(2, 0) : std::pair(1, 1));
  }
}

TEST(PyTorchFailures, AgentsThatEndForOneFailureAreChargedOnce) {
  PyTorchWorld world = LongRunning({.policy = "ExitCode", .run = "{backoffLimit: 1}", .container = kTorchrun});
  for (const char* name : {"a-master-0", "a-worker-0", "a-worker-1"}) {
    world.Ends(name, 137).ends[0].message = Told(137, ExitClass::kRetryable, 0, "killed");
  }
  world.Pass();
  EXPECT_EQ(world.State(), "Restarting");
  EXPECT_EQ(world.job.status.restarts, 1);
}

// The restarts of torchrun inside a pod do not count for the job. Each end of the pod or its container counts.
TEST(PyTorchFailures, WherePodsRestartTheAgentsOwnRestartsArePartOfNoLimit) {
  for (const char* policy : {"OnFailure", "ExitCode"}) {
    SCOPED_TRACE(policy);
    PyTorchWorld world = LongRunning({.master = false,
                                      .policy = policy,
                                      .run = "{backoffLimit: 1}",
                                      .spec = "{elasticPolicy: {maxRestarts: 3}}",
                                      .container = kTorchrun});
    for (int restart = 1; restart <= 2; ++restart) {
      auto message = Told(137, ExitClass::kRetryable, 3, "killed");
      message.cause->pid = restart;
      ObservedPod& pod = std::string_view(policy) == "OnFailure" ? world.StartsAgain("a-worker-0", 137)
                                                                 : world.Ends("a-worker-0", 137);
      pod.ends[0].message = message;
      world.Pass();
      EXPECT_EQ(world.job.status.restarts, 1) << "the last end is not a restart";
      EXPECT_EQ(world.job.status.Finished(), restart == 2) << "else it restarts for ever";
      world.Settle();
      world.Wait(2 * kMinute);
    }
  }
}

// Under the agent a fatal code counts before the pod has ended.
TEST(PyTorchFailures, AFatalCodeIsNotWaitedForAtOtherContainers) {
  PyTorchWorld world = LongRunning({.policy = "ExitCode", .container = kTorchrun});
  world.Pod("a-worker-0").ends = {PyTorchWorld::EndOf(2, world.now)};
  world.Pass();
  EXPECT_EQ(world.State(), "Failed");
}

}  // namespace
}  // namespace muster::controller
