// SPDX-License-Identifier: Apache-2.0
// What a PyTorchJob finds in the cluster: Services, pods of no owner or another one, other objects, its PodGroup.
#include "controller/reconcile/pytorch_conditions.h"
#include "tests/controller/reconcile/pytorch_world.h"

namespace muster::controller {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A user's Service with the labels of a replica.
ObservedService Users(const std::string& name, const std::string& type, std::optional<int> index) {
  ObservedService service;
  service.meta.name = name;
  service.meta.uid = "uid-of-" + name;
  service.replica_type = type;
  service.index = index;
  return service;
}

ObservedPod NobodysPod(const std::string& name, const std::string& type, int index) {
  ObservedPod pod;
  pod.meta.name = name;
  pod.meta.uid = "uid-of-" + name;
  pod.replica_type = type;
  pod.index = index;
  pod.phase = "Running";
  pod.ran = true;
  return pod;
}

TEST(PyTorchServices, OneForEachReplica) {
  PyTorchWorld world({});
  const PyTorchDecision decision = world.Pass();
  EXPECT_THAT(Actions(decision),
              ElementsAre("service a-master-0", "service a-worker-0", "service a-worker-1", "create pod a-master-0",
                          "create pod a-worker-0", "create pod a-worker-1"));
  EXPECT_THAT(Reasons(decision), ElementsAre("SuccessfulCreateService", "SuccessfulCreatePod"));
  EXPECT_EQ(decision.events[1].message, "Created pod: a-master-0, a-worker-0, a-worker-1");
}

TEST(PyTorchServices, ADeletedServiceIsRecreated) {
  PyTorchWorld world = RunningWorld({});
  std::erase_if(world.seen.services, [](const auto& service) { return service.meta.name == "a-worker-0"; });
  EXPECT_THAT(Actions(world.Pass()), ElementsAre("service a-worker-0"));
}

TEST(PyTorchServices, SeveralForOneReplicaAreLeftAsTheyAre) {
  struct Row {
    const char* what;
    bool own;  // the job's own Service is one of them
  };
  for (const Row& row : {Row{"beside the job's own", true}, Row{"two of users", false}}) {
    SCOPED_TRACE(row.what);
    PyTorchWorld world = RunningWorld({});
    if (!row.own) world.Service("a-worker-0") = Users("theirs", "worker", 0);
    world.seen.services.push_back(Users("node-port", "worker", 0));
    PyTorchDecision decision = world.Pass();
    EXPECT_THAT(Actions(decision), IsEmpty());
    ASSERT_THAT(Reasons(decision), ElementsAre("ServiceConflict"));
    EXPECT_TRUE(decision.events[0].warning);
    const std::string& said = decision.events[0].message;
    EXPECT_THAT(said, HasSubstr("node-port"));
    EXPECT_THAT(said, HasSubstr(row.own ? "a-worker-0" : "theirs"));
    EXPECT_THAT(said, HasSubstr("training.kubeflow.org/job-name"));
    EXPECT_EQ(world.job.status.message, said);
    EXPECT_EQ(world.State(), "Running") << "an event, and no condition: the last condition is the state";
    EXPECT_THAT(Reasons(world.Pass()), IsEmpty()) << "it is said once";
    // The Services also stay when the replica is scaled away.
    PyTorchParts fewer;
    fewer.workers = 0;
    world.Change(fewer);
    world.Settle();
    EXPECT_THAT(world.ServiceNames(), Contains("node-port"));
    EXPECT_THAT(world.ServiceNames(), Contains(row.own ? "a-worker-0" : "theirs"));
    EXPECT_THAT(world.job.status.message, IsEmpty());
  }
}

TEST(PyTorchServices, AConflictDoesNotHoldUpTheOthers) {
  PyTorchWorld world({});
  for (const char* name : {"x", "y"}) world.seen.services.push_back(Users(name, "master", 0));
  EXPECT_THAT(Actions(world.Pass()), ElementsAre("service a-worker-0", "service a-worker-1", "create pod a-master-0",
                                                 "create pod a-worker-0", "create pod a-worker-1"));
}

TEST(PyTorchServices, OneOfAUserDoesNotTakeTheNameAway) {
  PyTorchWorld world({});
  world.seen.services.push_back(Users("node-port", "master", 0));
  EXPECT_THAT(Actions(world.Pass()), Contains("service a-master-0")) << "the workers look the master up by this name";
}

TEST(PyTorchServices, OfReplicasThatArePlannedNoMore) {
  PyTorchWorld world = RunningWorld({.workers = 3});
  world.seen.services.push_back(Users("users-own", "worker", 9));
  world.seen.services.push_back(Users("without-index", "worker", std::nullopt));
  PyTorchParts fewer{.workers = 1};
  world.Change(fewer);
  EXPECT_THAT(Actions(world.Pass()), ElementsAre("delete pod a-worker-1", "delete pod a-worker-2",
                                                 "delete service a-worker-1", "delete service a-worker-2"));
  EXPECT_THAT(world.ServiceNames(), ElementsAre("a-master-0", "a-worker-0", "users-own", "without-index"));
}

TEST(PyTorchAdoption, APodWithoutAnOwnerIsAdopted) {
  PyTorchWorld world({});
  world.seen.pods.push_back(NobodysPod("a-worker-1", "worker", 1));
  const PyTorchDecision decision = world.Pass();
  EXPECT_THAT(Actions(decision), Contains("adopt a-worker-1"));
  EXPECT_THAT(Actions(decision), Not(Contains("create pod a-worker-1")));
  EXPECT_THAT(Reasons(decision), Contains("AdoptedPod"));
  world.Settle();
  EXPECT_EQ(world.State(), "Running");
  EXPECT_EQ(world.Pod("a-worker-1").meta.uid, "uid-of-a-worker-1");
}

TEST(PyTorchAdoption, PodsOfOthersOrBeyondThePlanAreNotAdopted) {
  PyTorchWorld world = RunningWorld({});
  ObservedPod other = NobodysPod("other", "worker", 0);
  other.meta.owners = {{"batch/v1", "Job", "other", "uid-other", true}};
  world.seen.pods.push_back(other);
  world.seen.pods.push_back(NobodysPod("beyond", "worker", 7));
  world.seen.pods.push_back(NobodysPod("of-no-type", "evaluator", 0));
  EXPECT_THAT(Actions(world.Pass()), IsEmpty());
  PyTorchParts ends = world.parts();
  ends.run = "{cleanPodPolicy: All}";
  world.Change(ends);
  world.seen.has_objects = true;
  world.Ends("a-master-0", 0);
  world.Settle();
  EXPECT_EQ(world.State(), "Succeeded");
  EXPECT_THAT(world.PodNames(), ElementsAre("beyond", "of-no-type", "other"));
}

TEST(PyTorchAdoption, APodOfAnEarlierJobOfThatNameIsNone) {
  PyTorchWorld world({.workers = 0});
  ObservedPod old = NobodysPod("a-master-0", "master", 0);
  old.meta.owners = {{kKubeflowApi, kPyTorchJobKind, "a", "uid-of-an-earlier-a", true}};
  old.meta.deleted = world.now;
  old.phase = "Succeeded";
  world.seen.pods.push_back(old);
  EXPECT_THAT(Actions(world.Pass()), ElementsAre("service a-master-0", "create pod a-master-0"));
  EXPECT_EQ(world.State(), "Created") << "its success is not this job's";
}

// A job of training-operator: its pods, its Services and its status.
PyTorchWorld TakenOver(const std::string& policy, const std::string& annotations) {
  PyTorchOptions options = PyTorchTestOptions();
  options.with_agent = false;  // the controller plans so beside pods without the agent
  PyTorchWorld world = RunningWorld({.policy = policy, .annotations = annotations, .container = kTorchrun}, options);
  for (ObservedPod& pod : world.seen.pods) {
    pod.meta.annotations.clear();
    pod.made_here = false;
  }
  world.job.status.message.clear();
  world.seen.has_objects = false;
  return world;
}

TEST(PyTorchTakeover, WhatTrainingOperatorMadeGoesOn) {
  for (const char* annotations : {"{}", "{muster.dev/restart: job}"}) {
    PyTorchWorld world = TakenOver("ExitCode", annotations);
    const PyTorchDecision decision = world.Decide();
    EXPECT_THAT(Actions(decision), IsEmpty());
    EXPECT_THAT(decision.events, IsEmpty());
    EXPECT_TRUE(decision.status == world.job.status);
  }
}

// training-operator before 1.8 leaves such a job in Restarting for ever (kubeflow/trainer#2044).
TEST(PyTorchTakeover, AJobThatIsStuckInRestartingFails) {
  PyTorchWorld world = TakenOver("ExitCode", "{}");
  world.Ends("a-worker-0", 2);
  SetJobCondition(&world.job.status, "Restarting", true, "PyTorchJobRestarting", "", world.now);
  world.Pass();
  EXPECT_EQ(world.State(), "Failed");
}

TEST(PyTorchTakeover, RestartsByTheKubeletCountFromTheStart) {
  PyTorchWorld world = TakenOver("OnFailure", "{}");
  world.Pod("a-worker-0").restarts = 2;
  world.Pass();
  EXPECT_EQ(world.job.status.restarts, 2);
  EXPECT_EQ(world.State(), "Running");
}

TEST(PyTorchObjects, AreMadeFirstAndNotAgain) {
  PyTorchWorld world({.master = false, .spec = "{elasticPolicy: {metrics: [{type: Pods}]}}", .container = kTorchrun});
  PyTorchDecision decision = world.Pass();
  EXPECT_TRUE(decision.objects_made);
  EXPECT_EQ(Actions(decision).at(0), "object a-token-uid-a");
  EXPECT_EQ(Actions(decision).at(1), "object a");
  world.Settle();
  EXPECT_THAT(world.objects, ElementsAre("HorizontalPodAutoscaler", "Secret"));
  EXPECT_FALSE(world.Pass().objects_made);
  // A suspended job has no autoscaler; it comes back with the job.
  PyTorchParts paused = world.parts();
  paused.run = "{suspend: true}";
  world.Change(paused);
  world.Settle();
  EXPECT_THAT(world.objects, ElementsAre("Secret"));
  paused.run = "{}";
  world.Change(paused);
  world.Settle();
  EXPECT_THAT(world.objects, ElementsAre("HorizontalPodAutoscaler", "Secret"));
}

TEST(PyTorchGangs, PodsWaitForVolcanoAlone) {
  for (const char* scheduler : {"volcano", "scheduler-plugins"}) {
    SCOPED_TRACE(scheduler);
    PyTorchOptions options = PyTorchTestOptions();
    options.gang_scheduler = scheduler;
    PyTorchWorld world({}, options);
    world.Pass();
    if (std::string_view(scheduler) == "volcano") {
      EXPECT_THAT(world.PodNames(), IsEmpty());
      world.Pass();
      EXPECT_THAT(world.PodNames(), IsEmpty());
      EXPECT_THAT(world.job.status.message, HasSubstr("PodGroup a: Volcano has not let it in yet"));
      EXPECT_EQ(world.State(), "Created");
      world.seen.pod_group->phase = "";
      world.Pass();
      EXPECT_THAT(world.PodNames(), IsEmpty());
      world.seen.pod_group->phase = "Inqueue";
    }
    world.Settle();
    EXPECT_EQ(world.State(), "Running");
    EXPECT_THAT(world.job.status.message, IsEmpty());
    EXPECT_TRUE(world.seen.pod_group.has_value());
    world.Ends("a-master-0", 0);
    const PyTorchDecision decision = world.Pass();
    EXPECT_THAT(Actions(decision), ElementsAre("delete object a"));
    EXPECT_THAT(Reasons(decision), Contains("SuccessfulDeletePodGroup"));
    world.Settle();
    EXPECT_FALSE(world.seen.pod_group.has_value());
  }
}

TEST(PyTorchGangs, APodGroupOfSomebodyElseStays) {
  PyTorchWorld world = RunningWorld({});
  ObservedPodGroup group;
  group.meta.name = "a";
  group.api_version = "scheduling.volcano.sh/v1beta1";
  world.seen.pod_group = group;
  world.Ends("a-master-0", 0);
  world.Settle();
  EXPECT_TRUE(world.seen.pod_group.has_value());
}

TEST(PyTorchWaiting, ThePodsOwnWordsAreTheMessage) {
  PyTorchWorld world({});
  world.Pass();
  world.Pod("a-worker-1").waiting = "ImagePullBackOff: container pytorch: not found";
  world.Pass();
  EXPECT_EQ(world.job.status.message, "pod a-worker-1: ImagePullBackOff: container pytorch: not found");
  world.Pod("a-worker-1").waiting = "";
  world.Settle();
  EXPECT_THAT(world.job.status.message, IsEmpty());
}

TEST(PyTorchWaiting, APodThatDoesNotRunIsNamedWithAnEvent) {
  PyTorchWorld world({});
  world.Pass();
  ObservedPod& pod = world.Pod("a-worker-0");
  pod.pending = "scheduler default-scheduler has not placed it";
  pod.moved = world.now;
  pod.event.reason = "FailedResourceClaimCreation";
  pod.event.message = "ResourceClaimTemplate \"nosuch\" not found";
  pod.event.last = world.now;
  EXPECT_EQ(world.Pass().again, world.now + std::chrono::seconds(10));
  EXPECT_THAT(world.job.status.message, IsEmpty());
  world.Wait(std::chrono::seconds(10));
  EXPECT_THAT(Reasons(world.Pass()), ElementsAre("Waiting"));
  EXPECT_EQ(world.job.status.message,
            "pod a-worker-0: FailedResourceClaimCreation: ResourceClaimTemplate \"nosuch\" not found");
  EXPECT_THAT(Reasons(world.Pass()), IsEmpty()) << "it is told once";
}

}  // namespace
}  // namespace muster::controller
