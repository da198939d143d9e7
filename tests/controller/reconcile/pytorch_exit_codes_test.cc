// SPDX-License-Identifier: Apache-2.0
// Every restartPolicy with every kind of exit code, in every role, under every limit.
//
// Never: a code other than 0 fails the job. ExitCode: codes 1-127 fail it; after 128-255 the pod is replaced.
// OnFailure: the kubelet restarts the container after a code other than 0. Always: after every code. The controller
// counts these. backoffLimit N allows N restarts, and the next one fails the job; without it all are allowed. A pod
// that ends with 0 and is not restarted has succeeded. The job succeeds with its master.
#include "tests/controller/reconcile/pytorch_world.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Case {
  std::string policy;
  int code;
  bool master;
  std::optional<int> limit;
};

enum class Outcome { kSucceeds, kFailsTheJob, kIsMadeAnew, kStartsAgain };

Outcome Wanted(const Case& of) {
  if (of.policy == "Always") return Outcome::kStartsAgain;
  if (of.code == 0) return Outcome::kSucceeds;
  if (of.policy == "OnFailure") return Outcome::kStartsAgain;
  if (of.policy == "Never") return Outcome::kFailsTheJob;
  return of.code < 128 ? Outcome::kFailsTheJob : Outcome::kIsMadeAnew;
}

std::string CodeInWords(int code) {
  const std::map<int, std::string> signals = {{130, "SIGINT"}, {137, "SIGKILL"}, {139, "SIGSEGV"}, {143, "SIGTERM"}};
  const auto signal = signals.find(code);
  return signal == signals.end() ? fmt::format("exit code {}", code) : "was killed by " + signal->second;
}

void Check(const Case& of) {
  const std::string name = of.master ? "a-master-0" : "a-worker-1";
  const std::string run = of.limit ? fmt::format("{{backoffLimit: {}}}", *of.limit) : "{}";
  PyTorchWorld world = RunningWorld({.policy = of.policy, .run = run});
  const Outcome wanted = Wanted(of);
  const int most = of.limit.value_or(4);
  for (int ends = 1; ends <= most + 1; ++ends) {
    SCOPED_TRACE(fmt::format("end {}", ends));
    world.Wait(std::chrono::seconds(120));
    const std::string uid = world.Pod(name).meta.uid;
    if (wanted == Outcome::kStartsAgain) {
      world.StartsAgain(name, of.code);
    } else {
      world.Ends(name, of.code);
    }
    const PyTorchDecision decision = world.Pass();
    const PyTorchJobStatus& status = world.job.status;
    if (wanted == Outcome::kSucceeds) {
      EXPECT_EQ(world.State(), of.master ? "Succeeded" : "Running");
      EXPECT_EQ((of.master ? status.master : status.worker)->succeeded, 1);
      EXPECT_EQ(status.restarts, 0);
      EXPECT_THAT(status.failures, IsEmpty());
      world.Settle();
      EXPECT_EQ(world.Pod(name).meta.uid, uid) << "it is not run again";
      return;
    }
    // Code 0 is not a failure, although under Always it is a restart that the limit counts.
    ASSERT_EQ(status.failures.empty(), of.code == 0);
    EXPECT_EQ(of.code == 0 ? 0 : status.failures.back().exit_code, of.code);
    const bool over = of.limit && ends > *of.limit;
    if (wanted == Outcome::kFailsTheJob || over) {
      EXPECT_EQ(world.State(), "Failed");
      EXPECT_TRUE(status.completion_time);
      EXPECT_TRUE(decision.status_first);
      EXPECT_EQ(Actions(decision).empty(), wanted == Outcome::kFailsTheJob) << "cleanPodPolicy is None";
      const std::string message = world.Message("Failed");
      if (of.code != 0) {
        EXPECT_THAT(message, HasSubstr(CodeInWords(of.code)));
        EXPECT_THAT(message, HasSubstr(fmt::format("pod {}, container pytorch", name)));
        EXPECT_THAT(message, HasSubstr(of.master ? "rank 0" : "rank 2"));
      }
      if (wanted == Outcome::kFailsTheJob) {
        EXPECT_THAT(message, HasSubstr(of.master ? "1 Master replica(s)" : "1 Worker replica(s)"));
        EXPECT_EQ(status.restarts, 0);
      } else {
        EXPECT_THAT(message, HasSubstr("Job a has failed because it has reached the specified backoff limit"));
        EXPECT_EQ(status.restarts, *of.limit) << "the last end is not a restart";
      }
      EXPECT_EQ(status.Find("Restarting"), nullptr) << "a job that fails never stays in Restarting";
      world.Settle();
      EXPECT_EQ(world.State(), "Failed");
      EXPECT_EQ(world.Has(name), wanted != Outcome::kStartsAgain) << "a limit ends what runs, and keeps what has ended";
      return;
    }
    EXPECT_EQ(status.restarts, ends);
    if (wanted == Outcome::kStartsAgain) {
      EXPECT_THAT(Actions(decision), IsEmpty());
      EXPECT_EQ(world.State(), "Running");
      EXPECT_EQ(world.Pod(name).meta.uid, uid);
    } else {
      EXPECT_THAT(Actions(decision), ElementsAre("delete pod " + name, "create pod " + name));
      EXPECT_EQ(world.State(), "Restarting");
      world.Settle();
      EXPECT_EQ(world.State(), "Running");
      EXPECT_NE(world.Pod(name).meta.uid, uid);
    }
    EXPECT_EQ(world.job.status.restarts, ends) << "it is counted once";
  }
  EXPECT_FALSE(of.limit.has_value());
}

TEST(PyTorchExitCodes, PolicyCodeAndLimitDecideTheEnd) {
  for (const char* policy : {"Always", "OnFailure", "Never", "ExitCode"}) {
    for (const int code : {0, 1, 2, 126, 127, 128, 130, 137, 139, 143, 255}) {
      for (const bool master : {true, false}) {
        for (const std::optional<int> limit :
             {std::optional<int>(), std::optional<int>(0), std::optional<int>(1), std::optional<int>(3)}) {
          SCOPED_TRACE(fmt::format("{}, code {}, {}, backoffLimit {}", policy, code, master ? "master" : "worker",
                                   limit ? fmt::format("{}", *limit) : "none"));
          Check({policy, code, master, limit});
        }
      }
    }
  }
}

// The kubelet starts the container again under these policies. It also does so after it has ended the container itself.
TEST(PyTorchExitCodes, ARestartThatThePlatformCausedCostsNothing) {
  for (const char* policy : {"Always", "OnFailure"}) {
    for (bool ObservedEnd::*what : {&ObservedEnd::unseen, &ObservedEnd::sandbox_lost}) {
      SCOPED_TRACE(policy);
      PyTorchWorld world = RunningWorld({.policy = policy, .run = "{backoffLimit: 1}"});
      for (int time = 0; time < 3; ++time) {
        world.Wait(std::chrono::seconds(120));
        world.StartsAgain("a-worker-0", 137).ends[0].*what = true;
        world.Settle();
      }
      EXPECT_EQ(world.State(), "Running");
      EXPECT_EQ(world.job.status.restarts, 0);
      world.Wait(std::chrono::seconds(120));
      world.StartsAgain("a-worker-0", 137);
      world.Settle();
      EXPECT_EQ(world.job.status.restarts, 1) << "the next end is its own";
    }
  }
}

// A node that was away brings the last end alone, and a higher count.
TEST(PyTorchExitCodes, EndsThatNobodySawAreOfTheKindOfTheLast) {
  for (const bool own : {true, false}) {
    SCOPED_TRACE(own);
    PyTorchWorld world = RunningWorld({.policy = "OnFailure", .run = "{backoffLimit: 5}"});
    world.Wait(std::chrono::seconds(120));
    ObservedPod& pod = world.StartsAgain("a-worker-0", 137);
    pod.restarts += 2;
    pod.ends[0].sandbox_lost = !own;
    world.Settle();
    EXPECT_EQ(world.job.status.restarts, own ? 3 : 0);
    world.Wait(std::chrono::seconds(120));
    world.StartsAgain("a-worker-0", 137);
    world.Settle();
    EXPECT_EQ(world.job.status.restarts, own ? 4 : 1) << "the next end is seen";
  }
}

// Of the ends that nobody saw, those that came with a new sandbox were the kubelet's.
TEST(PyTorchExitCodes, EndsThatNobodySawAreThoseOfTheKubeletWhereItBeganThePodAnew) {
  const struct {
    int unseen, sandboxes, charged;
  } rows[] = {{1, 1, 1}, {2, 1, 2}, {0, 1, 1}, {1, 3, 1}, {2, 0, 3}};
  for (const auto& row : rows) {
    PyTorchWorld world = RunningWorld({.policy = "OnFailure", .run = "{backoffLimit: 5}"});
    world.Wait(std::chrono::seconds(120));
    ObservedPod& pod = world.StartsAgain("a-worker-0", 137);
    pod.restarts += row.unseen;
    pod.sandboxes_lost = row.sandboxes;
    world.Settle();
    EXPECT_EQ(world.job.status.restarts, row.charged) << row.unseen << " unseen, new sandboxes " << row.sandboxes;
  }
}

// The pods of a job end together. What none of them could tell in time was one failure, too.
TEST(PyTorchExitCodes, EndsThatNobodySawAreThoseOfThePeers) {
  PyTorchWorld world = RunningWorld({.policy = "OnFailure", .run = "{backoffLimit: 5}"});
  world.Wait(std::chrono::seconds(120));
  for (const char* name : {"a-master-0", "a-worker-0", "a-worker-1"}) {
    ObservedPod& pod = world.StartsAgain(name, 134);
    ++pod.restarts;
    pod.ends[0].message = ToldAt(name, "a-worker-1", world.now, 134);
  }
  world.Settle();
  EXPECT_EQ(world.job.status.restarts, 2);
}

// A pod may become Failed although the kubelet restarts containers. training-operator v1 replaces such a pod.
TEST(PyTorchExitCodes, APodThatFailedAsAWhole) {
  struct Row {
    const char *policy, *reason;
    bool fails;
    int restarts;
  };
  const Row rows[] = {
      {"Always", "Evicted", false, 0}, {"OnFailure", "Evicted", false, 0},         {"ExitCode", "Evicted", false, 0},
      {"Never", "Evicted", true, 0},   {"OnFailure", "NodeLost", false, 0},        {"ExitCode", "Preempting", false, 0},
      {"ExitCode", "", false, 1},      {"ExitCode", "DeadlineExceeded", false, 1}, {"OnFailure", "OutOfcpu", false, 1},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("{} {}", row.policy, row.reason));
    PyTorchWorld world = RunningWorld({.policy = row.policy});
    world.Wait(std::chrono::seconds(120));
    ObservedPod& pod = world.Pod("a-worker-0");
    pod.phase = "Failed";
    pod.reason = row.reason;
    pod.message = "the node had no room";
    const PyTorchDecision decision = world.Pass();
    EXPECT_EQ(world.job.status.restarts, row.restarts);
    ASSERT_EQ(world.job.status.failures.size(), 1U);
    EXPECT_EQ(world.job.status.failures[0].counted, std::string_view(row.reason) != "Evicted" && row.restarts == 1);
    EXPECT_EQ(world.State(), row.fails ? "Failed" : "Restarting");
    if (row.fails) {
      EXPECT_THAT(world.Message("Failed"), HasSubstr("the node had no room"));
    } else {
      world.Settle();
      EXPECT_EQ(world.State(), "Running");
    }
  }
}

}  // namespace
}  // namespace muster::controller
