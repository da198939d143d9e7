// SPDX-License-Identifier: Apache-2.0
// Names, labels, owners and metadata of Jobs and the Service.
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

constexpr char kGroups[] = R"(
template:
  metadata: {labels: {a: runtime, kueue.x-k8s.io/queue-name: q, both: shared}, annotations: {note: runtime}}
  spec:
    coordinator: {replicatedJob: two, jobIndex: 1, podIndex: 0}
    replicatedJobs:
    - name: one
      groupName: first
      replicas: 2
      template: {spec: {template: {spec: {containers: [{name: c, image: i}]}}}}
    - name: two
      groupName: second
      replicas: 3
      template:
        metadata: {labels: {both: job}, annotations: {own: job}}
        spec: {completionMode: NonIndexed, template: {metadata: {labels: {both: pod}}, spec: {containers: [{name: c, image: i}]}}}
    - name: three
      groupName: first
      template: {spec: {template: {spec: {containers: [{name: c, image: i}], restartPolicy: Never}}}}
)";

TEST(JobObject, HasTheLabelsOfJobSet) {
  const TrainJobPlan plan = PlanOf(JobWith(), RuntimeWith(kGroups), {.version = "1.2"});
  ASSERT_EQ(plan.jobs.size(), 6);
  const Json& job = plan.jobs[5].Object();  // the Job three-0
  const Json keys = YamlOf(R"(
jobset.sigs.k8s.io/jobset-name: train
jobset.sigs.k8s.io/jobset-uid: uid-1
jobset.sigs.k8s.io/replicatedjob-name: three
jobset.sigs.k8s.io/restart-attempt: "0"
jobset.sigs.k8s.io/replicatedjob-replicas: "1"
jobset.sigs.k8s.io/global-replicas: "6"
jobset.sigs.k8s.io/job-index: "0"
jobset.sigs.k8s.io/job-global-index: "5"
jobset.sigs.k8s.io/job-key: 8c406e53b385d1a4111ac9881cd497260bbf78bd
jobset.sigs.k8s.io/group-name: first
jobset.sigs.k8s.io/group-replicas: "3"
jobset.sigs.k8s.io/job-group-index: "2"
jobset.sigs.k8s.io/coordinator: train-two-1-0.train
)");
  for (const std::string& pointer : {std::string("/metadata"), std::string("/spec/template/metadata")}) {
    Json labels = keys, annotations = keys;
    labels.update({{"a", "runtime"}, {"both", "shared"}});
    annotations["note"] = "runtime";
    if (pointer == "/metadata") annotations["muster.dev/version"] = "1.2";
    EXPECT_EQ(At(job, pointer + "/labels"), labels);
    EXPECT_EQ(At(job, pointer + "/annotations"), annotations);
  }
  EXPECT_EQ(At(plan.jobs[4].Object(), "/metadata/labels/jobset.sigs.k8s.io~1job-global-index"), "4");
  EXPECT_EQ(At(plan.jobs[4].Object(), "/metadata/labels/jobset.sigs.k8s.io~1job-group-index"), "2");
}

TEST(JobObject, OwnMetadataWins) {
  const Json job = PlanOf(JobWith(), RuntimeWith(kGroups)).jobs[2].Object();
  EXPECT_EQ(At(job, "/metadata/labels/both"), "job");
  EXPECT_EQ(At(job, "/metadata/annotations/own"), "job");
  EXPECT_EQ(At(job, "/spec/template/metadata/labels/both"), "pod");
  EXPECT_TRUE(At(job, "/spec/template/metadata/annotations/own").is_null());
  EXPECT_EQ(At(job, "/spec/completionMode"), "NonIndexed");
}

TEST(JobObject, BelongsToTheTrainJob) {
  const TrainJobPlan plan = PlanOf(JobWith(), RuntimeWith(kGroups));
  const Json owners = YamlOf(
      "{o: [{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, name: train, uid: uid-1, controller: true, "
      "blockOwnerDeletion: true}]}")["o"];
  for (const Json& object : {plan.service, plan.jobs[0].Object()}) {
    EXPECT_EQ(At(object, "/metadata/ownerReferences"), owners);
    EXPECT_EQ(At(object, "/metadata/namespace"), "ns");
  }
  TrainJob job = JobWith();
  job.meta.uid.clear();
  job.meta.ns.clear();
  const Json bare = PlanOf(job, RuntimeWith(kGroups)).jobs[0].Object();
  EXPECT_TRUE(At(bare, "/metadata/ownerReferences").is_null());
  EXPECT_TRUE(At(bare, "/metadata/namespace").is_null());
  EXPECT_TRUE(At(bare, "/metadata/labels/jobset.sigs.k8s.io~1jobset-uid").is_null());
}

TEST(JobObject, ThePodHasSubdomainAndRestartPolicy) {
  const TrainJobPlan plan = PlanOf(JobWith(), RuntimeWith(kGroups));
  EXPECT_EQ(At(plan.jobs[0].Object(), "/apiVersion"), "batch/v1");
  EXPECT_EQ(At(plan.jobs[0].Object(), "/kind"), "Job");
  EXPECT_EQ(At(plan.jobs[0].Object(), "/spec/completionMode"), "Indexed");
  EXPECT_EQ(At(plan.jobs[0].Object(), "/spec/template/spec/subdomain"), "train");
  EXPECT_EQ(At(plan.jobs[0].Object(), "/spec/template/spec/restartPolicy"), "OnFailure");
  EXPECT_EQ(At(plan.jobs[5].Object(), "/spec/template/spec/restartPolicy"), "Never");
  const TrainJobPlan with_policy = PlanOf(JobWith("{}", "{muster.dev/agent: \"off\"}"),
                                          TrainerRuntime({.job = "{podFailurePolicy: {rules: [{action: Ignore}]}}"}));
  EXPECT_EQ(At(with_policy.jobs[0].Object(), "/spec/template/spec/restartPolicy"), "Never");
}

TEST(JobObject, TheServiceFindsThePods) {
  EXPECT_EQ(
      PlanOf(JobWith(), RuntimeWith(kGroups)).service["spec"],
      YamlOf("{clusterIP: None, selector: {jobset.sigs.k8s.io/jobset-name: train}, publishNotReadyAddresses: true}"));
  const TrainJobPlan hidden =
      PlanOf(JobWith(), TrainerRuntime({.set = "{network: {publishNotReadyAddresses: false}}"}));
  EXPECT_EQ(At(hidden.service, "/spec/publishNotReadyAddresses"), false);
}

TEST(JobObject, WithoutHostNamesThereIsNoService) {
  const TrainJobPlan plan =
      PlanOf(JobWith(), TrainerRuntime({.policy = "{numNodes: 2}", .set = "{network: {enableDNSHostnames: false}}"}));
  EXPECT_TRUE(plan.service.is_null());
  EXPECT_TRUE(At(plan.jobs[0].Object(), "/spec/template/spec/subdomain").is_null());
}

TEST(JobObject, OneJobOnEachTopologyDomain) {
  constexpr char kKey[] = "alpha.jobset.sigs.k8s.io/exclusive-topology";
  Runtime runtime = RuntimeWith(kGroups);
  runtime.template_metadata["annotations"][kKey] = "rack";
  const TrainJobPlan plan = PlanOf(JobWith(), runtime);
  for (const PlannedJob& job : plan.jobs) {
    const Json key = At(job.Object(), "/metadata/labels/jobset.sigs.k8s.io~1job-key");
    const Json pod = At(job.Object(), "/spec/template/spec");
    const std::string terms = "/requiredDuringSchedulingIgnoredDuringExecution/0";
    const Json same = At(pod, "/affinity/podAffinity" + terms), others = At(pod, "/affinity/podAntiAffinity" + terms);
    for (const Json* term : {&same, &others}) {
      EXPECT_EQ((*term)["topologyKey"], "rack");
      EXPECT_EQ((*term)["namespaceSelector"], Json::object());
    }
    EXPECT_EQ(At(same, "/labelSelector/matchExpressions/0/values/0"), key);
    EXPECT_EQ(At(others, "/labelSelector/matchExpressions/0/operator"), "Exists");
    EXPECT_EQ(At(others, "/labelSelector/matchExpressions/1/operator"), "NotIn");
    EXPECT_EQ(At(others, "/labelSelector/matchExpressions/1/values/0"), key);
  }
  EXPECT_TRUE(At(PlanOf(JobWith(), RuntimeWith(kGroups)).jobs[0].Object(), "/spec/template/spec/affinity").is_null());

  runtime.template_metadata["annotations"]["alpha.jobset.sigs.k8s.io/node-selector"] = "true";
  const PlannedJob by_nodes = PlanOf(JobWith(), runtime).jobs[0];
  const Json pod = At(by_nodes.Object(), "/spec/template/spec");
  EXPECT_EQ(At(pod, "/nodeSelector/alpha.jobset.sigs.k8s.io~1namespaced-job"), "ns_" + by_nodes.name);
  EXPECT_EQ(At(pod, "/tolerations/0/key"), "alpha.jobset.sigs.k8s.io/no-schedule");
  EXPECT_TRUE(At(pod, "/affinity").is_null());
}

TEST(JobObject, TheTrainJobAloneSuspendsIt) {
  EXPECT_TRUE(
      At(PlanOf(JobWith(), TrainerRuntime({.job = "{suspend: true}"})).jobs[0].Object(), "/spec/suspend").is_null());
}

TEST(JobObject, ATimeToLiveBeginsAtTheEndOfTheTrainJob) {
  struct Row {
    std::string set, job;
    Json seconds;
  };
  for (const Row& row : std::vector<Row>{{"{}", "{}", Json()},
                                         {"{ttlSecondsAfterFinished: 60}", "{}", "60"},
                                         {"{}", "{ttlSecondsAfterFinished: 5}", "5"},
                                         {"{ttlSecondsAfterFinished: 3}", "{ttlSecondsAfterFinished: 5}", "3"}}) {
    const Json job = PlanOf(JobWith(), TrainerRuntime({.job = row.job, .set = row.set})).jobs[0].Object();
    EXPECT_EQ(At(job, "/metadata/annotations/muster.dev~1ttl-seconds-after-finished"), row.seconds)
        << row.set << row.job;
    EXPECT_TRUE(At(job, "/spec/ttlSecondsAfterFinished").is_null());
  }
}

TEST(JobObject, LongNamesFit) {
  TrainJob job = JobWith();
  job.meta.name = std::string(63, 'a');
  const TrainJobPlan plan = PlanOf(job, TrainerRuntime());
  EXPECT_LE(plan.jobs[0].name.size(), 55);
  EXPECT_EQ(At(plan.jobs[0].Object(), "/metadata/name"), plan.jobs[0].name);
  EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), "PET_MASTER_ADDR"), plan.jobs[0].name + "-0." + job.meta.name);
  job.meta.name = "Upper";
  EXPECT_THAT(Refusal(job, TrainerRuntime()), ::testing::HasSubstr("metadata.name: 'Upper' is not a DNS label"));
}

TEST(JobObject, TheSameInputsGiveTheSameBytes) {
  const TrainJobPlan one = PlanOf(JobWith(), RuntimeWith(kGroups)), other = PlanOf(JobWith(), RuntimeWith(kGroups));
  for (size_t i = 0; i < one.jobs.size(); ++i) EXPECT_EQ(one.jobs[i].Object().dump(), other.jobs[i].Object().dump());
}

}  // namespace
}  // namespace muster::controller
