// SPDX-License-Identifier: Apache-2.0
// The clocks of two nodes differ. The blame stays with the pod of the cause, whichever pod reports it.
#include "tests/controller/reconcile/pytorch_world.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

constexpr auto kHour = std::chrono::hours(1);

struct Row {
  std::chrono::hours ahead;  // the clock of the cause's node
  bool peer, own;            // whose end is known
};
constexpr Row kRows[] = {
    {-kHour, true, false}, {-kHour, false, true}, {-kHour, true, true},
    {kHour, true, false},  {kHour, false, true},  {kHour, true, true},
};

// The end of a pod whose agent is on host `at`. The worker on host `cause` raised an exception.
ObservedPod Told(ObservedPod pod, const std::string& at, const std::string& cause, WallTime raised, WallTime ended) {
  pod = Failed(std::move(pod), 3, ToldAt(at, cause, raised));
  pod.ends[0].finished = ended;
  return pod;
}

TEST(Clocks, ATrainJobBlamesThePodOfTheCause) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(fmt::format("{} h ahead, peer {}, own {}", row.ahead.count(), row.peer, row.own));
    const WallTime ended = kNow - kSecond, raised = ended + row.ahead;
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0")};
    ObservedPod peer = Pod(observed.jobs[0], 0), own = Pod(observed.jobs[0], 1);
    own.node = "n2";
    peer.meta.created = own.meta.created = kNow - 60 * kSecond;
    if (row.peer) peer = Told(peer, "a-node-0-0", "a-node-0-1", raised, ended);
    if (row.own) own = Told(own, "a-node-0-1", "a-node-0-1", raised, raised);
    observed.pods = {peer, own};
    const TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
    ASSERT_NE(decision.status.Find("Failed"), nullptr);
    EXPECT_THAT(decision.status.message, HasSubstr("rank 3 on pod a-node-0-1-x (node n2)"));
    EXPECT_THAT(decision.status.message, HasSubstr("KeyError: 'x'"));
    ASSERT_EQ(decision.status.failures.size(), 1U);
    EXPECT_EQ(decision.status.failures[0].pod, "a-node-0-1-x");
  }
}

TEST(Clocks, APyTorchJobBlamesThePodOfTheCause) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(fmt::format("{} h ahead, peer {}, own {}", row.ahead.count(), row.peer, row.own));
    PyTorchWorld world = RunningWorld({.policy = "ExitCode"});
    world.Wait(std::chrono::minutes(20));
    const WallTime raised = world.now + row.ahead;
    ObservedPod &peer = world.Pod("a-master-0"), &own = world.Pod("a-worker-0");
    if (row.peer) peer = Told(peer, "a-master-0", "a-worker-0", raised, world.now);
    if (row.own) own = Told(own, "a-worker-0", "a-worker-0", raised, raised);
    world.Pass();
    EXPECT_EQ(world.State(), "Failed");
    EXPECT_THAT(world.Message("Failed"), HasSubstr("1 Worker replica(s) failed: rank 3 on pod a-worker-0"));
    ASSERT_FALSE(world.job.status.failures.empty());
    for (const Failure& failure : world.job.status.failures) EXPECT_EQ(failure.pod, "a-worker-0");
  }
}

}  // namespace
}  // namespace muster::controller
