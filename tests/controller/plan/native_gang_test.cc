// SPDX-License-Identifier: Apache-2.0
// Workloads and PodGroups of TrainJobs and PyTorchJobs in gangs of Kubernetes.
#include "controller/plan/native_gang.h"

#include <gmock/gmock.h>

#include "controller/api/lenient.h"
#include "controller/plan/elastic.h"
#include "tests/controller/plan/planned.h"
#include "tests/controller/plan/pytorch_planned.h"

namespace muster::controller {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr char kNative[] = "{muster.dev/gang: native}";

std::string And(const std::string& annotation) {
  return "{muster.dev/gang: native, muster.dev/gang-" + annotation + "}";
}

// The objects of the plan by kind; with two.
std::map<std::string, Json> ObjectsOf(const std::vector<PlannedObject>& objects) {
  std::map<std::string, Json> by_kind;
  for (const PlannedObject& planned : objects) {
    if (planned.object["apiVersion"] != kGangApi) continue;
    EXPECT_FALSE(planned.for_initializers);
    by_kind[planned.object["kind"]] = planned.object;
  }
  return by_kind;
}

std::string GroupOf(const Json& job) {
  return TextField(PartOf(job, "spec", "template", "spec", "schedulingGroup"), "podGroupName");
}

TEST(NativeGang, HasAWorkloadAndAPodGroup) {
  const TrainJobPlan plan = PlanOf(JobWith("{trainer: {numNodes: 3}}", kNative),
                                   TrainerRuntime({.pod = "{priorityClassName: high, schedulerName: own}"}));
  auto objects = ObjectsOf(plan.objects);
  ASSERT_EQ(objects.size(), 2U);
  const std::string policy =
      "schedulingPolicy: {gang: {minCount: 3}}, disruptionMode: PodGroup, priorityClassName: high";
  EXPECT_EQ(objects["Workload"]["spec"],
            YamlOf("{controllerRef: {apiGroup: trainer.kubeflow.org, kind: TrainJob, name: train}, podGroupTemplates: "
                   "[{name: pods, " +
                   policy + "}]}"));
  EXPECT_EQ(
      objects["PodGroup"]["spec"],
      YamlOf("{podGroupTemplateRef: {workload: {workloadName: train, podGroupTemplateName: pods}}, " + policy + "}"));
  EXPECT_EQ(At(objects["Workload"], "/metadata/name"), "train");
  EXPECT_EQ(At(objects["PodGroup"], "/metadata/name"), "train-0");
  for (const PlannedObject& planned : plan.objects) EXPECT_EQ(planned.if_there, PlannedObject::IfThere::kReplace);
  EXPECT_FALSE(plan.objects[0].of_start);
  EXPECT_TRUE(plan.objects[1].of_start);
  for (const auto& [kind, object] : objects) {
    EXPECT_EQ(At(object, "/metadata/ownerReferences/0/uid"), "uid-1") << kind;
    EXPECT_EQ(At(object, "/metadata/labels/jobset.sigs.k8s.io~1jobset-name"), "train") << kind;
  }
  EXPECT_EQ(GroupOf(plan.jobs[0].Object()), "train-0");
  const Json again = JobOfAttempt(plan.jobs[0], {.number = 2, .pod_group = "train-2"});
  EXPECT_EQ(GroupOf(again), "train-2");
  EXPECT_EQ(At(again, "/metadata/annotations/muster.dev~1pod-group"), "train-2");
  EXPECT_EQ(WorkloadIn(plan.objects)["spec"], objects["Workload"]["spec"]);
  EXPECT_TRUE(At(WorkloadIn(plan.objects), "/metadata/ownerReferences").is_null());
}

TEST(NativeGang, IsAskedForByTheJobElseByItsRuntime) {
  struct Row {
    std::string job, runtime;
    bool native;
  };
  for (const Row& row : std::vector<Row>{{"{}", "{}", false},
                                         {kNative, "{}", true},
                                         {"{}", kNative, true},
                                         {"{muster.dev/gang: \"off\"}", kNative, false},
                                         // What the runtime says of its gang does not count without one.
                                         {"{muster.dev/gang: \"off\"}", And("topology: rack"), false}}) {
    SCOPED_TRACE(row.job + row.runtime);
    const TrainJobPlan plan = PlanOf(JobWith("{}", row.job), TrainerRuntime({.annotations = row.runtime}));
    EXPECT_EQ(ObjectsOf(plan.objects).size(), row.native ? 2U : 0U);
    EXPECT_EQ(plan.jobs[0].in_gang, row.native);
    EXPECT_EQ(GroupOf(plan.jobs[0].Object()), row.native ? "train-0" : "");
    EXPECT_EQ(WorkloadIn(plan.objects).is_null(), !row.native);
  }
}

// Pods that exist at different times are not one gang: it would never be complete.
TEST(NativeGang, HasThePodsThatStartTogether) {
  const std::string node =
      "{name: node, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: STEP}}, spec: "
      "{parallelism: 4, template: {spec: {containers: [{name: node, image: i}]}}}}}";
  const auto as = [&](std::string text, const std::string& name, const std::string& step, int pods,
                      const std::string& after) {
    const auto put = [&text](const std::string& from, const std::string& to) {
      text.replace(text.find(from), from.size(), to);
    };
    put("name: node", "name: " + name + ", dependsOn: [" + after + "]");
    put("STEP", step);
    put("parallelism: 4", "parallelism: " + std::to_string(pods));
    return text;
  };
  struct Row {
    std::string what, jobs;
    int members;
    std::vector<std::string> gang;
  };
  for (const Row& row : std::vector<Row>{
           {"a launcher waits for the nodes",
            as(node, "node", "\"\"", 4, "") + "," + as(node, "launcher", "trainer", 1, "{name: node, status: Ready}"),
            4,
            {"node"}},
           {"jobs that begin together",
            as(node, "a", "\"\"", 2, "") + "," + as(node, "b", "trainer", 3, ""),
            5,
            {"a", "b"}}}) {
    SCOPED_TRACE(row.what);
    const TrainJobPlan plan =
        PlanOf(JobWith("{}", kNative), RuntimeWith("{template: {spec: {replicatedJobs: [" + row.jobs + "]}}}"));
    EXPECT_EQ(At(ObjectsOf(plan.objects)["PodGroup"], "/spec/schedulingPolicy/gang/minCount"), row.members);
    std::vector<std::string> gang;
    for (const PlannedJob& job : plan.jobs) {
      if (job.in_gang) gang.push_back(job.replicated_job);
      const std::string name = GroupOf(JobOfAttempt(job, {.number = 1, .pod_group = "train-1"}));
      EXPECT_EQ(name, job.in_gang ? "train-1" : "") << job.name;
    }
    EXPECT_EQ(gang, row.gang);
  }
}

// The API server refuses to change the number of pods of a Job in a gang.
TEST(NativeGang, AnElasticJobBeginsWithItsLeastAndDoesNotScale) {
  const RuntimeParts parts{.policy =
                               "{torch: {elasticPolicy: {minNodes: 2, maxNodes: 4, metrics: [{type: Resource}]}}}"};
  const TrainJobPlan plan = PlanOf(JobWith("{}", kNative), TrainerRuntime(parts));
  const Json spec = ObjectsOf(plan.objects)["PodGroup"]["spec"];
  EXPECT_EQ(plan.jobs[0].pods, 4);
  EXPECT_EQ(At(spec, "/schedulingPolicy/gang/minCount"), 2);
  EXPECT_EQ(At(spec, "/disruptionMode"), "Pod");
  EXPECT_FALSE(plan.jobs[0].scales);
  EXPECT_EQ(plan.objects.size(), 2U);  // no autoscaler
  EXPECT_THAT(plan.notices, Contains(Field(&Notice::message, HasSubstr("no HorizontalPodAutoscaler is made: Kubernetes "
                                                                       "refuses to change the number of pods"))));
  EXPECT_TRUE(PlanOf(JobWith(), TrainerRuntime(parts)).jobs[0].scales);
}

constexpr char kClaims[] =
    "{resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}, {name: net, resourceClaimName: fabric}]}";

TEST(NativeGang, HasATopologyAndClaims) {
  const TrainJobPlan plan = PlanOf(JobWith("{}", And("topology: example.com/rack, muster.dev/gang-claims: \"net\"")),
                                   TrainerRuntime({.pod = kClaims}));
  for (const auto& [kind, object] : ObjectsOf(plan.objects)) {
    const Json& spec = kind == "Workload" ? At(object, "/spec/podGroupTemplates/0") : object["spec"];
    EXPECT_EQ(At(spec, "/schedulingConstraints"), YamlOf("{topology: [{key: example.com/rack}]}"));
    EXPECT_EQ(At(spec, "/resourceClaims/0"), YamlOf("{name: net, resourceClaimName: fabric}"));
    EXPECT_EQ(At(spec, "/resourceClaims").size(), 1U);
  }
  const TrainJobPlan both = PlanOf(JobWith("{}", And("claims: \"net, gpu\"")), TrainerRuntime({.pod = kClaims}));
  EXPECT_EQ(At(ObjectsOf(both.objects)["PodGroup"], "/spec/resourceClaims").size(), 2U);
}

TEST(NativeGang, Refusals) {
  struct Row {
    std::string annotations, pod, said;
  };
  for (const Row& row : std::vector<Row>{
           {"{muster.dev/gang: yes please}", "{}", "muster.dev/gang: 'yes please' is neither native nor off"},
           {"{muster.dev/gang-topology: rack}", "{}",
            "metadata.annotations.muster.dev/gang-topology: 'rack' is for a gang of Kubernetes; set muster.dev/gang: "
            "native, "
            "too"},
           {"{muster.dev/gang-claims: gpu}", kClaims,
            "metadata.annotations.muster.dev/gang-claims: 'gpu' is for a gang"},
           {And("claims: tpu"), kClaims,
            "metadata.annotations.muster.dev/gang-claims: no pod of the group has 'tpu' in its resourceClaims"},
           {And("claims: \"a,b,c,d,e\""), kClaims, "names 5 claims, and a PodGroup has 4 at most"}}) {
    SCOPED_TRACE(row.annotations);
    EXPECT_THAT(Refusal(JobWith("{}", row.annotations), TrainerRuntime({.pod = row.pod})), HasSubstr(row.said));
  }
  Runtime plugin = TrainerRuntime();
  plugin.pod_group_policy = YamlOf("{coscheduling: {}}");
  EXPECT_THAT(
      Refusal(JobWith("{}", kNative), plugin),
      HasSubstr("native, and runtime 'runtime' has a podGroupPolicy for another scheduler; remove one of them"));
  EXPECT_EQ(Refusal(JobWith("{}", "{muster.dev/gang: \"off\"}"), plugin), "");
}

TEST(NativeGang, PodsOfAGroupHaveOneSchedulerAndOnePriority) {
  const auto two = [](const std::string& one, const std::string& other, const std::string& claim) {
    const auto job = [](const std::string& name, const std::string& pod) {
      return "{name: " + name + ", template: {spec: {template: {spec: {containers: [{name: c, image: i}], " + pod +
             "}}}}}";
    };
    const std::string annotations = claim.empty() ? kNative : And("claims: " + claim);
    return Refusal(JobWith("{}", annotations), RuntimeWith("{template: {spec: {replicatedJobs: [" + job("a", one) +
                                                           "," + job("b", other) + "]}}}"));
  };
  EXPECT_THAT(two("schedulerName: s", "schedulerName: t", ""),
              HasSubstr("job 'a' has schedulerName 's', and job 'b' has 't'; the pods of a group have the same"));
  EXPECT_THAT(two("priorityClassName: high", "hostNetwork: false", ""),
              HasSubstr("job 'a' has priorityClassName 'high', and job 'b' has ''"));
  EXPECT_THAT(two("resourceClaims: [{name: c, resourceClaimName: x}]",
                  "resourceClaims: [{name: c, resourceClaimName: y}]", "c"),
              HasSubstr("resourceClaims of job 'b' has another claim 'c' than the other pods"));
  EXPECT_EQ(two("resourceClaims: [{name: c, resourceClaimName: x}]", "hostNetwork: false", "c"), "");
}

// Kueue decides when the pods are created, and Kubernetes where they run. Both may not decide where.
TEST(NativeGang, WithKueue) {
  TrainJob job = JobWith("{}", And("topology: rack"));
  job.meta.labels[kQueueLabel] = "team";
  EXPECT_EQ(Refusal(job, TrainerRuntime()), "");
  Runtime placed = RuntimeWith(
      "{template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {metadata: {annotations: "
      "{kueue.x-k8s.io/podset-required-topology: rack}}, spec: {containers: [{name: c, image: i}]}}}}}]}}}");
  EXPECT_THAT(Refusal(job, placed),
              HasSubstr("metadata.annotations.muster.dev/gang-topology: job 'node' has the annotation "
                        "kueue.x-k8s.io/podset-required-topology, by which Kueue places the pods"));
  job.meta.labels.clear();
  EXPECT_EQ(Refusal(job, placed), "");
}

TEST(NativeGang, OfAPyTorchJob) {
  struct Row {
    std::string what, run, spec;
    int least;
    std::string mode, priority;
  };
  for (const Row& row : std::vector<Row>{
           {"all replicas", "{}", "{}", 3, "PodGroup", "low"},
           {"its own least number", "{schedulingPolicy: {minAvailable: 2, priorityClass: high}}", "{}", 2, "Pod",
            "high"},
           {"the Master and the least Workers", "{}", "{elasticPolicy: {minReplicas: 1, maxReplicas: 4}}", 2, "Pod",
            "low"},
       }) {
    SCOPED_TRACE(row.what);
    PyTorchOptions options = PyTorchTestOptions();
    options.gang_scheduler = "volcano";  // for jobs without the annotation
    const PlannedPyTorch planned(
        {.run = row.run, .spec = row.spec, .annotations = kNative, .pod = "{priorityClassName: low}"}, options);
    auto objects = ObjectsOf(planned.plan.objects);
    ASSERT_EQ(objects.size(), 2U);
    ASSERT_EQ(planned.plan.objects.size(), 2U) << "no PodGroup of Volcano";
    EXPECT_FALSE(planned.plan.waits_for_pod_group);
    EXPECT_EQ(At(objects["Workload"], "/spec/controllerRef"),
              YamlOf("{apiGroup: kubeflow.org, kind: PyTorchJob, name: a}"));
    const Json& group = objects["PodGroup"];
    EXPECT_EQ(At(group, "/metadata/name"), "a");
    EXPECT_EQ(At(group, "/metadata/ownerReferences/0/kind"), "PyTorchJob");
    EXPECT_EQ(At(group, "/spec/schedulingPolicy/gang/minCount"), row.least);
    EXPECT_EQ(At(group, "/spec/disruptionMode"), row.mode);
    EXPECT_EQ(At(group, "/spec/priorityClassName"), row.priority);
    for (const PlannedObject& object : planned.plan.objects) {
      EXPECT_EQ(object.if_there, PlannedObject::IfThere::kBelongs);
      EXPECT_FALSE(object.of_start);
    }
    for (const ReplicaType type : kReplicaTypes) {
      EXPECT_EQ(At(planned.Pod(type, 0), "/spec/schedulingGroup"), YamlOf("{podGroupName: a}"));
    }
  }
}

TEST(NativeGang, RefusalsOfAPyTorchJob) {
  struct Row {
    std::string run, annotations, said;
  };
  for (const Row& row : std::vector<Row>{
           {"{schedulingPolicy: {minAvailable: 4}}", kNative,
            "spec.runPolicy.schedulingPolicy.minAvailable: 4 is not between 1 and the number of replicas, 3"},
           {"{schedulingPolicy: {minAvailable: 0}}", kNative, "minAvailable: 0 is not between"},
           {"{}", "{muster.dev/gang: volcano}", "muster.dev/gang: 'volcano' is neither native nor off"},
           {"{}", "{muster.dev/gang-topology: rack}", "set muster.dev/gang: native, too"},
           {"{schedulingPolicy: {minAvailable: 4}}", "{}", ""}}) {
    const auto job = ReadPyTorchJob(PyTorchJobObject({.run = row.run, .annotations = row.annotations}));
    ASSERT_TRUE(job.ok()) << job.status();
    const auto plan = PlanPyTorchJob(*job, PyTorchTestOptions());
    EXPECT_EQ(plan.ok(), row.said.empty()) << row.annotations;
    EXPECT_THAT(std::string(Message(plan.status())), HasSubstr(row.said));
  }
}

TEST(NativeGang, NamesOfPodGroups) {
  const auto at = WallTime(std::chrono::milliseconds(1'800'000'000'900));
  EXPECT_EQ(PodGroupName("train", 0, std::nullopt), "train-0");
  EXPECT_EQ(PodGroupName("train", 3, at), "train-3-1800000000");
  const std::string longest(63, 'a');
  EXPECT_EQ(PodGroupName(longest, 1, at).size(), 63U);
  EXPECT_NE(PodGroupName(longest, 1, at), PodGroupName(longest, 2, at));
}

TEST(NativeGang, AnswersOfTheApiServer) {
  const auto workload = [](const std::string& fields) {
    return YamlOf("{kind: Workload, spec: {podGroupTemplates: [{schedulingPolicy: {gang: {minCount: 2}}, " + fields +
                  "}]}}");
  };
  const std::string topology = "schedulingConstraints: {topology: [{key: rack}]}",
                    claims = "resourceClaims: [{name: c}]";
  struct Row {
    Json asked;
    StatusOr<Json> answer;
    std::string said;
  };
  for (const Row& row : std::vector<Row>{
           {workload("disruptionMode: PodGroup"), workload("priority: 0"), ""},
           {workload(topology), workload(topology), ""},
           {workload(""), absl::NotFoundError("no such path"),
            "metadata.annotations.muster.dev/gang: native: the cluster does not serve Workload of "
            "scheduling.k8s.io/v1alpha2: "
            "Kubernetes 1.36 does with the feature gates GenericWorkload and GangScheduling"},
           {workload(""), absl::InvalidArgumentError("a label key"), "a label key"},
           {workload(topology), workload("resourceClaims: []"),
            "metadata.annotations.muster.dev/gang-topology: the cluster ignores schedulingConstraints of "
            "scheduling.k8s.io/v1alpha2: its feature gate TopologyAwareWorkloadScheduling is off; enable it"},
           {workload(claims), workload("name: pods"), "its feature gate DRAWorkloadResourceClaims is off"}}) {
    const Status said = CheckGangAnswer(row.asked, row.answer);
    EXPECT_EQ(said.ok(), row.said.empty()) << said;
    EXPECT_THAT(std::string(Message(said)), HasSubstr(row.said));
  }
  EXPECT_TRUE(HoldsGang(workload("priority: 0, " + topology), workload("disruptionMode: Pod, " + topology)));
  EXPECT_FALSE(HoldsGang(workload("priority: 0"), workload(topology)));
  const Json group =
      YamlOf("{kind: PodGroup, spec: {schedulingPolicy: {gang: {minCount: 2}}, podGroupTemplateRef: null}}");
  EXPECT_TRUE(HoldsGang(group, YamlOf("{spec: {schedulingPolicy: {gang: {minCount: 2}}}}")));
  EXPECT_FALSE(HoldsGang(group, YamlOf("{spec: {schedulingPolicy: {gang: {minCount: 3}}}}")));
}

}  // namespace
}  // namespace muster::controller
