// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/lost_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/plan/placement.h"
#include "tests/controller/reconcile/decided.h"
#include "tests/controller/reconcile/pytorch_world.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LostNode Lost(const char* address, std::chrono::seconds age = 20 * kSecond) {
  return {.address = address, .closed = true, .lost = kNow - age, .due = kNow - age + 3 * kSecond};
}

// Three nodes of Job a-node-0 on n0, n1 and n2. The pod on n0 has spoken: n1's agent is lost.
struct Scene {
  Scene() {
    plan.jobs[0].pods = 3;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0")};
    observed.jobs[0].pods = observed.jobs[0].active = observed.jobs[0].ready = 3;
    for (int index : {0, 1, 2}) {
      ObservedPod pod = Pod(observed.jobs[0], index);
      pod.meta.created = kNow - 600 * kSecond;
      pod.ready = true;
      pod.node = fmt::format("n{}", index);
      pod.address = fmt::format("10.0.0.{}", index);
      observed.pods.push_back(pod);
    }
    observed.agents = AgentsSaid{observed.pods[0].meta.uid, 0, {}, {Lost("10.0.0.1")}};
  }
  TrainJobDecision Pass(WallTime now = kNow) {
    TrainJobDecision decision = Decide(job, plan, observed, now);
    job.status = decision.status;
    return decision;
  }
  TrainJob job = Job();
  TrainJobPlan plan = TwoNodes();
  Observed observed;
};

TEST(LostPods, OnlyAPodThatRunsByKubernetesAloneIsReplaced) {
  struct Row {
    const char* what;
    std::function<void(Scene&)> change;
    bool replaced;
  };
  const Row rows[] = {
      {"its connection closed", [](Scene&) {}, true},
      {"the kubelet may still report its end", [](Scene& s) { s.observed.agents->lost = {Lost("10.0.0.1", kSecond)}; },
       false},
      {"it is back", [](Scene& s) { s.observed.agents->lost.clear(); }, false},
      {"nobody speaks", [](Scene& s) { s.observed.agents.reset(); }, false},
      {"the pod that spoke is gone", [](Scene& s) { s.observed.agents->pod_uid = "another"; }, false},
      {"the word of another job's pod", [](Scene& s) { s.observed.agents->lost = {Lost("10.9.9.9")}; }, false},
      {"the pod that speaks", [](Scene& s) { s.observed.agents->lost = {Lost("10.0.0.0")}; }, false},
      {"the node that speaks", [](Scene& s) { s.observed.pods[1].node = "n0"; }, false},
      {"two pods have the address of their node", [](Scene& s) { s.observed.pods[2].address = "10.0.0.1"; }, false},
      {"it has failed", [](Scene& s) { s.observed.pods[1] = Failed(s.observed.pods[1], 137); }, false},
      {"the kubelet reports the end of its container",
       [](Scene& s) {
         s.observed.pods[1] = Failed(s.observed.pods[1], 137);
         s.observed.pods[1].phase = "Running";
       },
       false},
      {"the kubelet started its container again",
       [](Scene& s) {
         s.observed.pods[1] = Failed(s.observed.pods[1], 137);
         s.observed.pods[1].phase = "Running";
         s.observed.pods[1].ends[0].started_again = true;
       },
       false},
      {"it was started again once, long before",
       [](Scene& s) {
         s.observed.pods[1] = Failed(s.observed.pods[1], 137);
         s.observed.pods[1].phase = "Running";
         s.observed.pods[1].ends[0].started_again = true;
         s.observed.pods[1].ends[0].finished = kNow - 300 * kSecond;
       },
       true},
      {"it does not run yet", [](Scene& s) { s.observed.pods[1].phase = "Pending"; }, false},
      {"the Job is suspended", [](Scene& s) { s.observed.jobs[0].suspended = true; }, false},
      {"the index has succeeded",
       [](Scene& s) {
         s.observed.jobs[0].completed = {{1, 1}};
       },
       false},
      {"without the agent", [](Scene& s) { s.plan.jobs[0].agent = false; }, false},
      {"a replacement that was lost a minute later",
       [](Scene& s) {
         s.observed.pods[1].excluded_node = "n9";
         s.observed.pods[1].meta.created = kNow - 80 * kSecond;
       },
       true},
      {"a replacement that was lost at once",
       [](Scene& s) {
         s.observed.pods[1].excluded_node = "n9";
         s.observed.pods[1].meta.created = kNow - 79 * kSecond;
       },
       false},
  };
  for (const Row& row : rows) {
    Scene scene;
    row.change(scene);
    const LostPods lost(scene.observed, kNow);
    const TrainJobDecision decision = scene.Pass();
    std::string created;
    for (const Action& action : decision.actions) {
      if (action.kind == Action::Kind::kCreatePodOfJob && action.not_on == "n1") created = action.name;
    }
    EXPECT_EQ(!created.empty(), row.replaced) << row.what;
  }
}

TEST(LostPods, IsDeletedAndReplacedElsewhereOnce) {
  Scene scene;
  scene.observed.agents->lost = {Lost("10.0.0.1", kSecond)};
  TrainJobDecision decision = scene.Pass();
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.again, kNow + 2 * kSecond);
  decision = scene.Pass(kNow + 2 * kSecond);
  ASSERT_EQ(decision.actions.size(), 2U);
  EXPECT_EQ(decision.actions[0].kind, Action::Kind::kDeletePod);
  EXPECT_EQ(decision.actions[0].name, "a-node-0-1-x");
  EXPECT_EQ(decision.actions[1].kind, Action::Kind::kCreatePodOfJob);
  EXPECT_EQ(decision.actions[1].index, 1);
  EXPECT_EQ(decision.actions[1].not_on, "n1");
  EXPECT_THAT(Reasons(decision), ElementsAre("PodLost"));
  EXPECT_THAT(decision.events[0].message,
              HasSubstr("the agents have lost pod a-node-0-1-x (node n1): its connection closed; pod a-node-0-1-"));
  EXPECT_EQ(scene.job.status.restarts, 0);

  // The controller ends between the two: the new pod comes in the next pass.
  scene.observed.pods[1].meta.deleted = kNow + 32 * kSecond;
  const TrainJobDecision again = scene.Pass(kNow + 3 * kSecond);
  ASSERT_EQ(again.actions.size(), 1U);
  EXPECT_EQ(again.actions[0].name, decision.actions[1].name) << "the same one";
  EXPECT_EQ(again.actions[0].not_on, "n1");

  ObservedPod replacement = Pod(scene.observed.jobs[0], 1, "new");
  replacement.phase = "Pending";
  replacement.node = "";
  replacement.excluded_node = "n1";
  replacement.pending = "scheduler default-scheduler has not placed it";
  replacement.meta.created = replacement.moved = kNow + 3 * kSecond;
  scene.observed.pods.push_back(replacement);
  decision = scene.Pass(kNow + 4 * kSecond);
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.again, kNow + 63 * kSecond) << "the end of the exclusion";
  EXPECT_THAT(scene.job.status.message, HasSubstr("not on node n1, where the job's agents have lost its predecessor"));
  EXPECT_THAT(scene.job.status.failures, IsEmpty());
}

// The exclusion must not outlive the time in which Kubernetes notices by itself.
TEST(LostPods, AReplacementThatFindsNoNodeMayRunOnAnyAfterAMinute) {
  Scene scene;
  scene.observed.agents.reset();
  ObservedPod& pod = scene.observed.pods[1];
  pod.phase = "Pending";
  pod.node = "";
  pod.address = "";
  pod.excluded_node = "n1";
  pod.waiting_reason = "Unschedulable";
  pod.waiting = "Unschedulable: 0/3 nodes are available";
  pod.meta.created = kNow - 59 * kSecond;
  TrainJobDecision decision = scene.Pass();
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.again, kNow + kSecond);
  EXPECT_EQ(scene.job.status.reason, "Unschedulable");
  EXPECT_THAT(scene.job.status.message, HasSubstr("not on node n1"));
  scene.plan.max_restarts = 0;
  EXPECT_THAT(Actions(scene.Pass(kNow + kSecond)), IsEmpty()) << "Kubernetes would fail the Job";
  scene.plan.max_restarts = 3;
  EXPECT_THAT(Actions(scene.Pass(kNow + kSecond)), ElementsAre("delete pod a-node-0-1-x"));
  pod.meta.deleted = kNow + kSecond;
  decision = scene.Pass(kNow + kSecond);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].kind, Action::Kind::kCreatePodOfJob);
  EXPECT_EQ(decision.actions[0].not_on, "");
  EXPECT_THAT(decision.events[0].message, HasSubstr("no node but n1 fits pod a-node-0-1-x"));
}

TEST(LostPods, AnExclusionHoldsBesideTheRulesOfTheTemplate) {
  const Json kTerm = {{"matchExpressions", {{{"key", "gpu"}, {"operator", "Exists"}}}}};
  const Json kNot = {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {"n1"}}};
  const auto required = [](Json* pod) -> Json& {
    return (*pod)["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  };
  Json pod = {{"metadata", Json::object()}, {"spec", Json::object()}};
  ExcludeNode("n1", &pod);
  EXPECT_EQ(required(&pod)["nodeSelectorTerms"], Json::array({{{"matchFields", {kNot}}}}));
  EXPECT_EQ(ReadPod(pod).ok(), false) << "it has no name yet";
  EXPECT_EQ(pod["metadata"]["annotations"]["muster.dev/excluded-node"], "n1");
  required(&pod)["nodeSelectorTerms"] = Json::array({kTerm, kTerm});
  ExcludeNode("n1", &pod);
  Json both = kTerm;
  both["matchFields"] = Json::array({kNot});
  EXPECT_EQ(required(&pod)["nodeSelectorTerms"], Json::array({both, both})) << "a node that any term matches will do";
}

// A PyTorchJob that restarts in place: the replacement needs the name of the lost pod.
TEST(LostPods, OfAPyTorchJobIsDroppedAndCreatedElsewhere) {
  for (const char* restart : {"job", "pod"}) {
    PyTorchParts parts;
    parts.annotations = fmt::format("{{muster.dev/restart: {}}}", restart);
    parts.container = kTorchrun;
    PyTorchWorld world(parts);
    world.Settle();
    world.Wait(300 * kSecond);
    int number = 0;
    for (ObservedPod& pod : world.seen.pods) {
      pod.node = fmt::format("n{}", number);
      pod.address = fmt::format("10.0.0.{}", number++);
    }
    ObservedPod lost = world.Pod("a-worker-1");
    world.seen.agents = AgentsSaid{world.Pod("a-master-0").meta.uid, 0, {}, {Lost(lost.address.c_str())}};
    world.seen.agents->lost[0].lost = world.now - 20 * kSecond;
    const PyTorchDecision decision = world.Pass();
    EXPECT_THAT(Actions(decision), ElementsAre("drop pod a-worker-1", "create pod a-worker-1")) << restart;
    EXPECT_THAT(Reasons(decision), ElementsAre("PodLost", "SuccessfulCreatePod")) << restart;
    EXPECT_EQ(world.job.status.restarts, 0);
    EXPECT_NE(world.Pod("a-worker-1").meta.uid, lost.meta.uid);
    EXPECT_EQ(world.Pod("a-worker-1").excluded_node, lost.node);
    EXPECT_THAT(Actions(world.Pass()), IsEmpty());
    world.Wait(60 * kSecond);
    EXPECT_THAT(Actions(world.Pass()), ElementsAre("delete pod a-worker-1", "create pod a-worker-1"));
    EXPECT_EQ(world.Pod("a-worker-1").excluded_node, "");
  }
}

// containerd was killed between the creation and the start of a container. The kubelet leaves such a pod alone.
TEST(Stranded, APodWithoutASandboxIsCreatedAgain) {
  for (const bool agent : {true, false}) {
    Scene scene;
    scene.plan.jobs[0].agent = agent;
    scene.observed.agents.reset();
    ObservedPod& pod = scene.observed.pods[1];
    pod.phase = "Pending";
    pod.ran = true;
    pod.stranded = kNow - kStrandedFor + kSecond;
    TrainJobDecision decision = scene.Pass();
    EXPECT_THAT(Actions(decision), IsEmpty());
    EXPECT_EQ(decision.again, kNow + kSecond);
    decision = scene.Pass(kNow + kSecond);
    EXPECT_THAT(Actions(decision), ElementsAre("delete pod " + pod.meta.name));
    EXPECT_THAT(Reasons(decision), ::testing::Contains("PodLost"));
    EXPECT_THAT(decision.events[0].message, HasSubstr("lost its sandbox before it started"));
    pod.meta.deleted = kNow + 30 * kSecond;
    EXPECT_THAT(Actions(scene.Pass(kNow + 2 * kSecond)), IsEmpty());
    EXPECT_EQ(scene.job.status.restarts, 0);
  }
}

TEST(Stranded, APodOfAPyTorchJob) {
  PyTorchParts parts;
  parts.container = kTorchrun;
  PyTorchWorld world(parts);
  world.Settle();
  ObservedPod& pod = world.Pod("a-worker-1");
  pod.phase = "Pending";
  pod.stranded = world.now - kStrandedFor;
  const PyTorchDecision decision = world.Pass();
  EXPECT_THAT(Actions(decision), ElementsAre("delete pod a-worker-1", "create pod a-worker-1"));
  EXPECT_THAT(Reasons(decision), ::testing::Contains("PodLost"));
  EXPECT_EQ(world.job.status.restarts, 0);
}

}  // namespace
}  // namespace muster::controller
