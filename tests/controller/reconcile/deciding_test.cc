// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/deciding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/reconcile/train_job_finished.h"
#include "tests/controller/reconcile/decided.h"
#include "tests/controller/reconcile/pytorch_world.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// `node` has ended with `code` at `when`, and `proxy` runs.
ObservedPod Outlasted(ObservedPod pod, int code, WallTime when, const std::string& decides = "node") {
  pod.decides = decides;
  pod.running = {"proxy"};
  ObservedEnd end;
  end.container = decides;
  end.exit_code = code;
  end.reason = code == 0 ? "Completed" : "Error";
  end.finished = when;
  pod.ends = {end};
  return pod;
}

Observed OnePod(int code, WallTime when) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0", 0, 1)};
  observed.pods = {Outlasted(Pod(observed.jobs[0], 0), code, when)};
  return observed;
}

TrainJobPlan OneNode() {
  TrainJobPlan plan = TwoNodes();
  plan.jobs[0].pods = 1;
  return plan;
}

TEST(DecidingEnd, IsWhatTheKubeletDoesNotStartAgain) {
  const struct {
    const char* policy;
    int code;
    bool started_again;
    bool wanted;
  } rows[] = {{"Never", 137, false, true},      {"Never", 0, false, true},   {"OnFailure", 0, false, true},
              {"OnFailure", 137, false, false}, {"Always", 0, false, false}, {"Always", 137, false, false},
              {"Never", 137, true, false}};
  for (const auto& row : rows) {
    const Json end = {{"terminated", {{"exitCode", row.code}}}};
    Json node = {{"name", "node"}, {"state", end}};
    if (row.started_again) node = {{"name", "node"}, {"state", {{"running", Json::object()}}}, {"lastState", end}};
    const Json proxy = {{"name", "proxy"}, {"state", {{"running", Json::object()}}}};
    const auto pod = ReadPod(
        Json{{"metadata", {{"name", "p"}}},
             {"spec", {{"restartPolicy", row.policy}, {"containers", {{{"name", "proxy"}}, {{"name", "node"}}}}}},
             {"status", {{"phase", "Running"}, {"containerStatuses", {node, proxy}}}}});
    ASSERT_TRUE(pod.ok()) << pod.status();
    EXPECT_EQ(pod->decides, "node");
    EXPECT_EQ(DecidingEnd(*pod) != nullptr, row.wanted) << row.policy << row.code;
    EXPECT_EQ(IsOutlasted(*pod), row.wanted) << row.policy << row.code;
  }
}

TEST(HasSucceeded, ByTheContainerThatDecides) {
  const ObservedPod pod = Outlasted(Pod(There("a-node-0"), 0), 0, kNow);
  EXPECT_FALSE(HasSucceeded(pod, kNow + 29 * kSecond)) << "the others may still end by themselves";
  EXPECT_TRUE(HasSucceeded(pod, kNow + 30 * kSecond));
  ObservedPod over = pod;
  over.phase = "Failed";  // the proxy has failed
  over.running.clear();
  EXPECT_TRUE(HasSucceeded(over, kNow));
  over.reason = "Evicted";
  EXPECT_FALSE(HasSucceeded(over, kNow)) << "it may have ended with 0 because it was told to";
  EXPECT_FALSE(HasSucceeded(Outlasted(Pod(There("a-node-0"), 0), 1, kNow - kServingEnds), kNow));
}

TEST(Deciding, TheOthersEndAfterAFailureAndThePodIsReplaced) {
  Observed observed = OnePod(137, kNow - kSecond);
  TrainJob job = Job();
  TrainJobDecision decision = Decide(job, OneNode(), observed, kNow);
  EXPECT_THAT(Actions(decision), ElementsAre("end a-node-0-0-x"));
  EXPECT_THAT(Reasons(decision), ElementsAre("PodFailed"));
  EXPECT_EQ(decision.status.restarts, 1);
  EXPECT_THAT(decision.status.message, HasSubstr("container node has ended; still running: proxy"));
  job.status = decision.status;
  observed.pods[0].ended_here = true;
  decision = Decide(job, OneNode(), observed, kNow);
  EXPECT_THAT(Actions(decision), IsEmpty());
  observed.pods[0].phase = "Failed";
  observed.pods[0].running.clear();
  decision = Decide(job, OneNode(), observed, kNow);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].kind, Action::Kind::kCreatePodOfJob);
  EXPECT_EQ(decision.status.restarts, 1);
  EXPECT_EQ(decision.status.message, "");
}

TEST(Deciding, AfterAFatalCodeThePodStaysWithItsLogs) {
  Observed observed = OnePod(3, kNow - kSecond);
  TrainJob job = Job();
  TrainJobDecision decision = Decide(job, OneNode(), observed, kNow);
  EXPECT_NE(decision.status.Find("Failed"), nullptr);
  EXPECT_THAT(Actions(decision), ElementsAre("end a-node-0-0-x"));
  job.status = decision.status;
  observed.pods[0].phase = "Failed";
  observed.pods[0].running.clear();
  observed.pods[0].ended_here = true;
  EXPECT_THAT(Actions(DecideFinished(job, observed, kNow)), ElementsAre("suspend a-node-0"));
}

TEST(Deciding, TheTrainJobIsCompleteAfterASuccess) {
  Observed observed = OnePod(0, kNow);
  TrainJob job = Job();
  TrainJobDecision decision = Decide(job, OneNode(), observed, kNow + 29 * kSecond);
  EXPECT_THAT(decision.status.conditions, IsEmpty());
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.again, kNow + 30 * kSecond);
  decision = Decide(job, OneNode(), observed, kNow + 30 * kSecond);
  ASSERT_NE(decision.status.Find("Complete"), nullptr);
  EXPECT_TRUE(decision.status_first);
  EXPECT_THAT(decision.status.completed_jobs, ElementsAre("a-node-0"));
  EXPECT_EQ(decision.status.jobs[0].succeeded, 1);
  EXPECT_EQ(decision.status.ready_nodes, 1);
  EXPECT_THAT(Actions(decision), ElementsAre("end a-node-0-0-x"));
}

TEST(Deciding, AStepThatHasEndedSoStaysEnded) {
  const TrainJobPlan plan = WithData();
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-dataset-initializer-0", 0, 1)};
  observed.pods = {Outlasted(Pod(observed.jobs[0], 0), 0, kNow - kServingEnds, "dataset-initializer")};
  TrainJob job = Job();
  const TrainJobDecision decision = Decide(job, plan, observed, kNow);
  EXPECT_THAT(decision.status.completed_jobs, ElementsAre("a-dataset-initializer-0"));
  EXPECT_THAT(Actions(decision), ElementsAre("create a-node-0", "end a-dataset-initializer-0-0-x"));
  job.status = decision.status;
  observed.pods.clear();
  observed.jobs[0].failed_at = kNow;  // the deadline of its pod
  observed.jobs.push_back(There("a-node-0"));
  EXPECT_FALSE(Decide(job, plan, observed, kNow).status.Finished());
  observed.jobs.erase(observed.jobs.begin());
  EXPECT_THAT(Actions(Decide(job, plan, observed, kNow)), IsEmpty()) << "it is not recreated";
}

// An elastic job has gone on without a node that was lost, and has succeeded. The new pod of that node finds no peer.
TEST(RunIsOver, APodThatComesTooLateIsNotAwaited) {
  enum class Other { kLate, kPending, kGone, kFailed, kFailedAndLate, kEarly, kDeletedAndLate, kGaveUp, kWaitsToGoOn };
  const struct {
    const char* what;
    const char* run_id;
    Other other;
    bool agent, over;
  } rows[] = {
      {"created after the end", "uid-a", Other::kLate, true, true},
      {"waits for a machine", "uid-a", Other::kPending, true, true},
      {"does not exist now", "uid-a", Other::kGone, true, true},
      {"failed, and is replaced later", "uid-a", Other::kFailed, true, false},
      {"failed, and its successor is late", "uid-a", Other::kFailedAndLate, true, true},
      {"on a machine that does not answer, and its successor is late", "uid-a", Other::kDeletedAndLate, true, true},
      {"was there before: it ends by itself", "uid-a", Other::kEarly, true, false},
      {"gave up, since it met nobody", "uid-a", Other::kGaveUp, true, true},
      {"gave up, and starts again", "uid-a", Other::kWaitsToGoOn, true, true},
      {"the pod that succeeded was in no run", "", Other::kLate, true, false},
      {"the pod that succeeded had a run of its own", "alone", Other::kLate, true, false},
      {"no agents", "uid-a", Other::kLate, false, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    TrainJobPlan plan = TwoNodes();
    plan.jobs[0].agent = row.agent;
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0")};
    observed.jobs[0].meta.owners = {{"trainer.kubeflow.org/v1alpha1", "TrainJob", "a", Job().meta.uid, true}};
    const auto pod = [&observed](const char* suffix, std::chrono::seconds after_the_end) {
      ObservedPod made = Pod(observed.jobs[0], 1, suffix);
      made.meta.created = kNow - kSecond + after_the_end;
      return made;
    };
    observed.pods = {SucceededIn(row.run_id, Pod(observed.jobs[0], 0))};
    const std::chrono::seconds before(-60), after(1);
    switch (row.other) {
      case Other::kLate:
        observed.pods.push_back(pod("y", after));
        break;
      case Other::kPending:
        observed.pods.push_back(pod("y", before));
        observed.pods.back().phase = "Pending";
        observed.pods.back().ran = false;
        break;
      case Other::kGone:
        break;
      case Other::kFailed:
        observed.pods.push_back(Failed(pod("x", before), 137));
        break;
      case Other::kFailedAndLate:
        observed.pods.push_back(Failed(pod("x", before), 137));
        observed.pods.push_back(pod("y", after));
        break;
      case Other::kEarly:
        observed.pods.push_back(pod("x", before));
        break;
      case Other::kDeletedAndLate:
        observed.pods.push_back(pod("x", before));
        observed.pods.back().meta.deleted = kNow;
        observed.pods.push_back(pod("y", after));
        break;
      case Other::kGaveUp:
        observed.pods.push_back(Failed(pod("x", before), kExitCoordinatorLost, TerminationMessage()));
        break;
      case Other::kWaitsToGoOn:
        observed.pods.push_back(Failed(pod("x", before), kExitRendezvousTimeout, TerminationMessage()));
        observed.pods.back().phase = "Running";
        observed.pods.back().ends[0].started_again = true;
        break;
    }
    TrainJob job = Job();
    TrainJobDecision decision = Decide(job, plan, observed, kNow);
    EXPECT_EQ(decision.status.Find("Complete") != nullptr, row.over);
    if (!row.over) continue;
    EXPECT_EQ(decision.status.restarts, 0);
    EXPECT_TRUE(decision.status_first);
    EXPECT_THAT(Actions(decision), ElementsAre("suspend a-node-0")) << "the log of node 0 stays";
    job.status = decision.status;
    observed.pods.pop_back();
    EXPECT_NE(Decide(job, plan, observed, kNow).status.Find("Complete"), nullptr) << "it stays complete";
  }
}

// An eviction took the pod of node 0 before any controller had read its word. Its Job counts it as succeeded.
TEST(RunIsOver, WithoutTheWordOfAPodWhoseIndexHasSucceeded) {
  const struct {
    const char* what;
    int code;  // with which the pod of node 1 ended; 0: it waits
    std::vector<std::pair<int, int>> completed;
    bool over;
  } rows[] = {
      {"it waits for peers", 0, {{0, 0}}, false},
      {"it gave up, since it met nobody", kExitRendezvousTimeout, {{0, 0}}, true},
      {"its coordinator was lost", kExitCoordinatorLost, {{0, 0}}, true},
      {"it failed by itself", 1, {{0, 0}}, false},
      {"no index has succeeded", kExitRendezvousTimeout, {}, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    TrainJobPlan plan = TwoNodes();
    plan.jobs[0].agent = true;
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0")};
    observed.jobs[0].meta.owners = {{"trainer.kubeflow.org/v1alpha1", "TrainJob", "a", Job().meta.uid, true}};
    observed.jobs[0].completed = row.completed;
    observed.pods = {Pod(observed.jobs[0], 1)};
    if (row.code != 0) observed.pods[0] = Failed(observed.pods[0], row.code, TerminationMessage());
    EXPECT_EQ(Decide(Job(), plan, observed, kNow).status.Find("Complete") != nullptr, row.over);
  }
}

// The Workers have succeeded in the run of all nodes. The Master had no part in it.
TEST(RunIsOver, APyTorchJobDoesNotAwaitAMasterThatFindsNobody) {
  enum class Master { kLate, kGone, kGaveUp, kEarly };
  const struct {
    const char* what;
    const char* run_id;
    int rank;
    Master master;
    bool over, again = false;
  } rows[] = {
      {"created after the end", "none", 1, Master::kLate, true},
      {"deleted, and not made again", "none", 1, Master::kGone, true},
      {"gave up, since it met nobody", "none", 1, Master::kGaveUp, true},
      {"was there before: it ends by itself", "none", 1, Master::kEarly, false},
      {"the Workers were in another run", "alone", 1, Master::kLate, false},
      {"each Worker had a run of its own", "none", 0, Master::kLate, false},
      {"the kubelet starts the Workers again", "none", 1, Master::kLate, false, true},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    PyTorchWorld world({.workers = 1, .container = kTorchrun});
    world.Settle();
    world.Ends("a-worker-0", 0);
    ObservedPod& worker = world.Pod("a-worker-0");
    if (row.again) worker.phase = "Running";
    worker.ends[0].started_again = row.again;
    worker.ends[0].message = TerminationMessage{.run_id = row.run_id, .node_rank = row.rank, .round = 2};
    ObservedPod& master = world.Pod("a-master-0");
    master.meta.created = world.now + (row.master == Master::kLate ? 1 : -60) * kSecond;
    if (row.master == Master::kGaveUp) {
      master = Failed(master, kExitRendezvousTimeout, TerminationMessage());
      master.ends[0].finished = world.now;
    }
    if (row.master == Master::kGone) {
      std::erase_if(world.seen.pods, [](const ObservedPod& pod) { return pod.replica_type == "master"; });
    }
    const PyTorchDecision decision = world.Pass();
    EXPECT_EQ(world.job.status.Is("Succeeded"), row.over);
    if (!row.over) continue;
    EXPECT_EQ(world.job.status.restarts, 0);
    EXPECT_THAT(world.job.status.failures, IsEmpty());
    EXPECT_FALSE(world.Has("a-master-0") && StillRuns(world.Pod("a-master-0"))) << "it would wait";
    EXPECT_TRUE(world.Has("a-worker-0")) << "its log stays";
  }
}

// The Job was deleted by hand and created again; the Job controller has seen one change, from the old Job to the new
// one.
TEST(Deciding, APodThatIsLeftOfADeletedJobIsTouchedOnce) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  ObservedJob gone = observed.jobs[0];
  gone.meta.uid = "uid-gone";
  for (int index = 0; index < 2; ++index) observed.pods.push_back(Pod(observed.jobs[0], index));
  ObservedPod left = Failed(Pod(gone, 0, "y"), 137);
  left.tracked = true;
  left.meta.deleted = kNow;
  observed.pods.push_back(left);
  TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow + 59 * kSecond);
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.again, kNow + kOrphanedFor);
  EXPECT_THAT(Actions(Decide(Job(), TwoNodes(), observed, kNow + kOrphanedFor)), ElementsAre("end a-node-0-0-y"));
  observed.pods.back().ended_here = true;
  EXPECT_THAT(Actions(Decide(Job(), TwoNodes(), observed, kNow + kOrphanedFor)), IsEmpty());
  observed.pods.back().ended_here = false;
  observed.jobs.push_back(gone);
  EXPECT_THAT(Actions(Decide(Job(), TwoNodes(), observed, kNow + kOrphanedFor)),
              ::testing::Not(::testing::Contains("end a-node-0-0-y")));
}

TEST(Deciding, APyTorchJobSucceedsByItsContainer) {
  PyTorchWorld world({});
  world.Settle();
  ObservedPod& master = world.Pod("a-master-0");
  master = Outlasted(master, 0, world.now, "pytorch");
  EXPECT_EQ(world.Pass().again, world.now + kServingEnds);
  EXPECT_FALSE(world.job.status.Finished());
  world.Wait(kServingEnds);
  EXPECT_THAT(Actions(world.Pass()), ElementsAre("end a-master-0"));
  EXPECT_TRUE(world.job.status.Is("Succeeded"));
}

// Without a Master. Worker 0 has succeeded; then its pod is deleted: by a drain, PodGC, a node that goes away.
TEST(PyTorchSuccess, IsRecordedAndDoesNotRunAgain) {
  PyTorchWorld world({.master = false, .workers = 3});
  world.Settle();
  world.Ends("a-worker-0", 0);
  world.Settle();
  EXPECT_EQ(world.job.status.worker->succeeded_indexes, "0");
  world.seen.pods.erase(world.seen.pods.begin());
  ASSERT_FALSE(world.Has("a-worker-0"));
  world.Settle();
  EXPECT_FALSE(world.Has("a-worker-0"));
  EXPECT_EQ(std::tie(world.job.status.worker->succeeded, world.job.status.worker->active), std::make_tuple(1, 2));
  EXPECT_TRUE(world.job.status.Is("Running"));
  world.Ends("a-worker-1", 0);
  world.Ends("a-worker-2", 0);
  world.Settle();
  EXPECT_TRUE(world.job.status.Is("Succeeded"));
}

TEST(PyTorchSuccess, OfAPodThatWasToldToEndIsNotRecorded) {
  for (const bool ended_before : {false, true}) {
    PyTorchWorld world({.master = false, .workers = 3});
    world.Settle();
    ObservedPod& pod = world.Ends("a-worker-0", 0);
    pod.meta.deleted = world.now + PyTorchWorld::kGrace;
    pod.told_to_end = world.now + (ended_before ? 1 : 0) * kSecond;
    world.Pass();
    world.Settle();
    EXPECT_EQ(world.Has("a-worker-0"), !ended_before);
    EXPECT_EQ(world.job.status.worker->succeeded_indexes, ended_before ? "0" : "");
  }
}

}  // namespace
}  // namespace muster::controller
