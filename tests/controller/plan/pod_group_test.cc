// SPDX-License-Identifier: Apache-2.0
// PodGroups of TrainJobs.
#include "controller/plan/pod_requests.h"
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

TEST(PodRequests, AsKubernetesCountsThem) {
  struct Row {
    std::string pod, requests;
  };
  for (const Row& row : std::vector<Row>{
           {"{}", "{}"},
           {"{containers: [{resources: {requests: {cpu: 500m}}}, {resources: {requests: {cpu: 700m, memory: 1Gi}}}]}",
            "{cpu: 1200m, memory: \"1073741824\"}"},
           {"{containers: [{resources: {limits: {nvidia.com/gpu: 8, cpu: 4}, requests: {cpu: 2}}}]}",
            "{cpu: \"2\", nvidia.com/gpu: \"8\"}"},
           {"{initContainers: [{resources: {requests: {cpu: 3}}}, {resources: {requests: {memory: 1k}}}], containers: "
            "[{resources: {requests: {cpu: 1}}}]}",
            "{cpu: \"3\", memory: \"1000\"}"},
           {"{initContainers: [{resources: {requests: {cpu: 1}}, restartPolicy: Always}, {resources: {requests: {cpu: "
            "3}}}], containers: [{resources: {requests: {cpu: 1}}}]}",
            "{cpu: \"4\"}"},
           {"{initContainers: [{resources: {requests: {cpu: 3}}}, {resources: {requests: {cpu: 1}}, restartPolicy: "
            "Always}], containers: [{resources: {requests: {cpu: 1}}}]}",
            "{cpu: \"3\"}"},
           {"{overhead: {cpu: 250m}, containers: [{resources: {requests: {cpu: 1}}}]}", "{cpu: 1250m}"},
           {"{resources: {requests: {cpu: 5}}, containers: [{resources: {requests: {cpu: 1, memory: 1}}}]}",
            "{cpu: \"5\", memory: \"1\"}"},
       }) {
    SCOPED_TRACE(row.pod);
    const auto requests = PodRequests(YamlOf(row.pod));
    ASSERT_TRUE(requests.ok()) << requests.status();
    Json texts = Json::object();
    for (const auto& [name, quantity] : *requests) texts[name] = quantity.Text();
    EXPECT_EQ(texts, YamlOf(row.requests));
  }
  EXPECT_FALSE(PodRequests(YamlOf("{overhead: {cpu: much}}")).ok());
}

Runtime WithPolicy(const std::string& policy, RuntimeParts parts = {}) {
  Runtime runtime = TrainerRuntime(parts);
  runtime.pod_group_policy = YamlOf(policy);
  return runtime;
}

constexpr char kAsks[] = "{resources: {requests: {cpu: 2}, limits: {nvidia.com/gpu: 1}}}";

TEST(PodGroup, IsPlannedForCoscheduling) {
  const TrainJobPlan plan = PlanOf(JobWith("{trainer: {numNodes: 3}}"),
                                   WithPolicy("{coscheduling: {scheduleTimeoutSeconds: 120}}", {.container = kAsks}));
  ASSERT_EQ(plan.objects.size(), 1U);
  EXPECT_EQ(plan.objects[0].if_there, PlannedObject::IfThere::kUpdate);
  EXPECT_FALSE(plan.objects[0].for_initializers);
  EXPECT_EQ(plan.objects[0].object["apiVersion"], "scheduling.x-k8s.io/v1alpha1");
  EXPECT_EQ(plan.objects[0].object["kind"], "PodGroup");
  EXPECT_EQ(At(plan.objects[0].object, "/metadata/name"), "train");
  EXPECT_EQ(At(plan.objects[0].object, "/metadata/ownerReferences/0/uid"), "uid-1");
  EXPECT_EQ(plan.objects[0].object["spec"],
            YamlOf("{minMember: 3, minResources: {cpu: \"6\", nvidia.com/gpu: \"3\"}, scheduleTimeoutSeconds: 120}"));
  EXPECT_EQ(At(plan.jobs[0].Object(), "/spec/template/metadata/labels/scheduling.x-k8s.io~1pod-group"), "train");
  EXPECT_TRUE(At(plan.jobs[0].Object(), "/spec/template/spec/schedulerName").is_null());
}

TEST(PodGroup, IsPlannedForVolcanoWithItsTopology) {
  struct Row {
    std::string policy, topology, affinity;
  };
  const std::string term =
      "{topologyKey: rack, labelSelector: {matchExpressions: [{key: jobset.sigs.k8s.io/jobset-name, operator: In, "
      "values: "
      "[train]}]}}";
  const std::string required = "requiredDuringSchedulingIgnoredDuringExecution: [" + term + "]";
  const std::string preferred =
      "preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: " + term + "}]";
  for (const Row& row : std::vector<Row>{
           {"{}", "", ""},
           {"{networkTopology: {mode: soft}}", "{mode: soft}", ""},
           {"{networkTopology: {mode: hard, highestTierAllowed: 2}}", "{mode: hard, highestTierAllowed: 2}", ""},
           {"{topologyKey: rack, networkPolicy: Strict}", "{mode: hard}", required},
           {"{topologyKey: rack, networkPolicy: Best-effort}", "{mode: soft}", preferred},
           {"{topologyKey: rack}", "", required},
           {"{networkTopology: {mode: hard, networkPolicy: Best-effort, topologyKey: rack}}", "{mode: soft}",
            preferred},
       }) {
    SCOPED_TRACE(row.policy);
    const TrainJobPlan plan = PlanOf(JobWith("{trainer: {numNodes: 2}}"),
                                     WithPolicy("{volcano: " + row.policy + "}", {.pod = "{priorityClassName: high}"}));
    ASSERT_EQ(plan.objects.size(), 1U);
    const Json& spec = plan.objects[0].object["spec"];
    EXPECT_EQ(plan.objects[0].object["apiVersion"], "scheduling.volcano.sh/v1beta1");
    EXPECT_EQ(At(spec, "/minMember"), 2);
    EXPECT_EQ(At(spec, "/priorityClassName"), "high");
    EXPECT_EQ(At(spec, "/networkTopology"), row.topology.empty() ? Json() : YamlOf(row.topology));
    const Json& job = plan.jobs[0].Object();
    EXPECT_EQ(At(job, "/spec/template/metadata/annotations/scheduling.k8s.io~1group-name"), "train");
    EXPECT_EQ(At(job, "/spec/template/spec/schedulerName"), "volcano");
    EXPECT_EQ(At(job, "/spec/template/spec/affinity"),
              row.affinity.empty() ? Json() : YamlOf("{podAffinity: {" + row.affinity + "}}"));
  }
}

TEST(PodGroup, TheQueueIsAnAnnotationOfTheTemplate) {
  Runtime runtime = WithPolicy("{volcano: {}}", {.pod = "{schedulerName: own}"});
  runtime.template_metadata = YamlOf("{annotations: {scheduling.volcano.sh/queue-name: research}}");
  const TrainJobPlan plan = PlanOf(JobWith(), runtime);
  EXPECT_EQ(At(plan.objects[0].object, "/spec/queue"), "research");
  EXPECT_EQ(At(plan.jobs[0].Object(), "/spec/template/spec/schedulerName"), "own");
  runtime.template_metadata = YamlOf("{annotations: {scheduling.volcano.sh/queue-name: \"\"}}");
  EXPECT_THAT(Refusal(JobWith(), runtime), HasSubstr("Volcano queue name must not be empty"));
}

// A group of pods that do not all exist at the same time would wait forever.
TEST(PodGroup, CountsPodsThatBeginTogether) {
  const std::string ancestor = "trainer.kubeflow.org/trainjob-ancestor-step: ";
  const auto step = [&](const std::string& name, int replicas, const std::string& after,
                        const std::string& ancestor_step, int pods) {
    const std::string label = ancestor_step.empty() ? "" : ancestor + ancestor_step;
    const std::string container = ancestor_step.ends_with("initializer") ? ancestor_step : "node";
    return "{name: " + name + ", replicas: " + std::to_string(replicas) + ", dependsOn: [" + after +
           "], template: {metadata: {labels: {" + label + "}}, spec: {parallelism: " + std::to_string(pods) +
           ", template: {spec: {containers: [{name: " + container + ", image: i}]}}}}}";
  };
  struct Row {
    std::string what, jobs, set;
    int members;
    std::vector<std::string> gang;
  };
  for (const Row& row : std::vector<Row>{
           {"an initializer is over before",
            step("data", 1, "", "dataset-initializer", 1) + "," + step("node", 1, "", "trainer", 3),
            "",
            3,
            {"node"}},
           {"a launcher waits for the nodes",
            step("node", 2, "", "", 4) + "," + step("launcher", 1, "{name: node, status: Ready}", "trainer", 1),
            "",
            8,
            {"node"}},
           {"also in order",
            step("node", 1, "", "", 4) + "," + step("launcher", 1, "", "trainer", 1),
            ", startupPolicy: {startupPolicyOrder: InOrder}",
            4,
            {"node"}},
           {"jobs that begin together", step("a", 1, "", "", 2) + "," + step("b", 3, "", "", 1), "", 5, {"a", "b"}},
           {"a preparation is over before the larger step",
            step("prepare", 1, "", "", 1) + "," + step("node", 1, "{name: prepare, status: Complete}", "trainer", 4),
            "",
            4,
            {"node"}},
       }) {
    SCOPED_TRACE(row.what);
    const TrainJobPlan plan =
        PlanOf(JobWith(), RuntimeWith("{podGroupPolicy: {coscheduling: {}}, template: {spec: {replicatedJobs: [" +
                                      row.jobs + "]" + row.set + "}}}"));
    ASSERT_EQ(plan.objects.size(), 1U);
    EXPECT_EQ(At(plan.objects[0].object, "/spec/minMember"), row.members);
    EXPECT_EQ(At(plan.objects[0].object, "/spec/scheduleTimeoutSeconds"), 60);
    for (const PlannedJob& job : plan.jobs) {
      const bool in_gang = std::find(row.gang.begin(), row.gang.end(), job.replicated_job) != row.gang.end();
      EXPECT_EQ(!At(job.Object(), "/spec/template/metadata/labels/scheduling.x-k8s.io~1pod-group").is_null(), in_gang)
          << job.name;
    }
  }
}

TEST(PodGroup, AnElasticStepBeginsWithItsLeast) {
  const TrainJobPlan plan = PlanOf(
      JobWith(), WithPolicy("{coscheduling: {}}", {.policy = "{torch: {elasticPolicy: {minNodes: 2, maxNodes: 4}}}"}));
  EXPECT_EQ(plan.jobs[0].pods, 4);
  EXPECT_EQ(At(plan.objects[0].object, "/spec/minMember"), 2);
}

}  // namespace
}  // namespace muster::controller
