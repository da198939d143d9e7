// SPDX-License-Identifier: Apache-2.0
#include "controller/admission/validate_train_job.h"

#include "tests/controller/admission/requests.h"

namespace muster::controller {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A runtime with a dataset initializer, a trainer step of two nodes, and a further job.
constexpr char kRuntime[] =
    R"({apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: runtime},
  spec: {mlPolicy: {numNodes: 2, torch: {}}, template: {spec: {replicatedJobs: [
    {name: data, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}, spec: {template: {spec: {
      containers: [{name: dataset-initializer, image: x, volumeMounts: [{name: initializer, mountPath: /workspace}]}],
      volumes: [{name: initializer, emptyDir: {}}]}}}}},
    {name: node, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {
      containers: [{name: node, image: x, env: [{name: OWN, value: a}]}]}}}}},
    {name: other, template: {spec: {template: {spec: {containers: [{name: node, image: x, env: [{name: OWN, value: a}]}]}}}}}]}}}})";

Json RuntimeWith(std::string_view patch = "{}") {
  Json runtime = YamlOf(kRuntime);
  runtime.merge_patch(YamlOf(patch));
  return runtime;
}
const Json kFixed = RuntimeWith();
const Json kElastic =
    RuntimeWith("{spec: {mlPolicy: {numNodes: null, torch: {elasticPolicy: {minNodes: 1, maxNodes: 4}}}}}");

std::string PodPatch(const std::string& pod, const std::string& job = "node",
                     const std::string& manager = "a.example/b") {
  return fmt::format(
      "{{manager: {}, trainingRuntimeSpec: {{template: {{spec: {{replicatedJobs: [{{name: {}, template: {{spec: "
      "{{template: {{spec: {}}}}}}}}}]}}}}}}}}",
      manager, job, pod);
}
std::string Patched(const std::string& patch, const std::string& more = "") {
  return fmt::format("{{runtimePatches: [{}]{}}}", patch, more);
}

Verdict Created(const Json& job, const Json* runtime = &kFixed) {
  const AdmissionRequest request = RequestOf("CREATE", "trainjobs", job);
  EXPECT_TRUE(ValidationNeedsFacts(request));
  return ValidateTrainJob(request, {.runtime = runtime}, {});
}

TEST(ValidateTrainJob, WhatIsCreated) {
  for (const std::string& spec : std::vector<std::string>{
           "{}",
           "{suspend: true, trainer: {numNodes: 4, image: z, env: [{name: A, value: b}]}}",
           "{initializer: {dataset: {storageUri: 'hf://a/b'}}}",
           "{managedBy: kueue.x-k8s.io/multikueue, runtimeRef: {name: nobody-knows}}",
           Patched(PodPatch("{nodeSelector: {a: b}}", "node", "kueue.x-k8s.io/manager")),
           Patched(PodPatch("{containers: [{name: node, env: [{name: NEW, value: b}]}]}")),
           Patched(PodPatch("{containers: [{name: node, env: [{name: OWN, value: b}]}]}", "other")),
           "{podTemplateOverrides: [{targetJobs: [{name: node}], spec: {nodeSelector: {a: b}}}]}",
       }) {
    EXPECT_EQ(Said(Created(TrainJobOf(spec))), "") << spec;
  }
}

TEST(ValidateTrainJob, WhatIsNotCreated) {
  struct Row {
    std::string spec, message;
  };
  const std::string jobs = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[";
  for (const Row& row : std::vector<Row>{
           {"{runtimeRef: {kind: Pod}}", "403 spec.runtimeRef: unsupported runtime: Pod.trainer.kubeflow.org"},
           {"{runtimeRef: {apiGroup: x.y}}", "unsupported runtime: ClusterTrainingRuntime.x.y"},
           {"{trainer: {numNodes: -1}}", "422 spec.trainer.numNodes"},
           {"{trainer: {env: [{name: PET_NNODES, value: '1'}]}}",
            "403 spec.trainer.env: must not have reserved envs, invalid envs configured: [PET_NNODES]"},
           {"{initializer: {model: {storageUri: 'hf://a/b'}}}",
            "403 spec.initializer.model: must have model-initializer job when trainJob is configured with input "
            "modelConfig"},
           {Patched(PodPatch("{}", "nodes")), "403 " + jobs + "0].name: the runtime has no job 'nodes'"},
           {Patched(PodPatch("{containers: [{name: nod}]}")), "has no container 'nod'; there are: node"},
           {Patched(PodPatch("{initContainers: [{name: a}]}")), "has no init container 'a'; there are: none"},
           {Patched(PodPatch("{containers: [{name: node, volumeMounts: [{name: v, mountPath: /v}]}]}")),
            "has no volume 'v'"},
           {Patched(PodPatch("{containers: [{name: node, env: [{name: PET_NNODES, value: b}]}]}")),
            "must not have reserved envs"},
           {Patched(PodPatch("{containers: [{name: node, env: [{name: OWN, value: b}, {name: NEW}]}]}")),
            "403 " + jobs +
                "node].template.spec.template.spec.containers[node].env: must not have envs for the "
                "dataset-initializer, model-initializer, node containers that the runtime sets: OWN; give them in "
                "spec.trainer.env"},
           {Patched(PodPatch("{}", "node", "kueue")),
            "403 spec.runtimePatches[0].manager: 'kueue' must be a domain-prefixed path (such as \"acme.io/foo\")"},
           {Patched(PodPatch("{}", "node", "Kueue.x/a")), "must be a domain-prefixed path"},
           {Patched(PodPatch("{}", "node", "kueue.x/")), "must be a domain-prefixed path"},
           {Patched(PodPatch("{}") + ", " + PodPatch("{}")),
            "422 spec.runtimePatches[1].manager: 'a.example/b' has "
            "another patch already"},
       }) {
    EXPECT_THAT(Said(Created(TrainJobOf(row.spec))), HasSubstr(row.message)) << row.spec;
  }
  EXPECT_THAT(Said(Created(TrainJobOf("{trainer: {numNodes: 5}}"), &kElastic)),
              HasSubstr("403 spec.trainer.numNodes: 5 is not between minNodes 1 and maxNodes 4"));
  EXPECT_THAT(Said(Created(TrainJobOf("{}", "{metadata: {name: a.b}}"))), HasSubstr("422 metadata.name: 'a.b'"));
  EXPECT_EQ(Said(Created(TrainJobOf("{}", "{metadata: {annotations: {muster.dev/standby-workers: always}}}"))),
            "403 metadata.annotations.muster.dev/standby-workers: 'always' is neither auto nor off");
  EXPECT_EQ(Said(Created(TrainJobOf("{}", "{metadata: {annotations: {muster.dev/gang: volcano}}}"))),
            "403 metadata.annotations.muster.dev/gang: 'volcano' is neither native nor off");
}

TEST(ValidateTrainJob, TheRuntimeMustBeThere) {
  EXPECT_THAT(
      Said(Created(TrainJobOf("{}"), nullptr)),
      HasSubstr("403 spec.runtimeRef: Invalid value: 'runtime': specified clusterTrainingRuntime must be created "
                "before the TrainJob is created"));
  EXPECT_THAT(Said(Created(TrainJobOf("{runtimeRef: {kind: TrainingRuntime}}"), nullptr)),
              HasSubstr("specified trainingRuntime must be created before the TrainJob is created; `kubectl get "
                        "trainingruntimes -n ns` lists those"));
  const Json broken = RuntimeWith("{spec: {template: {spec: {replicatedJobs: null}}}}");
  EXPECT_THAT(Said(Created(TrainJobOf("{}"), &broken)), HasSubstr("403 ClusterTrainingRuntime runtime: spec.template"));
}

TEST(ValidateTrainJob, WhereTheInitializerPutsIt) {
  Json bare = RuntimeWith();
  Json& pod = bare["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
  Json& container = pod["containers"][0];
  container.erase("volumeMounts");
  EXPECT_THAT(Said(Created(TrainJobOf("{initializer: {dataset: {storageUri: 's3://a'}}}"), &bare)),
              HasSubstr("403 spec.initializer.dataset: must have volumeMount with name - initializer in container "
                        "dataset-initializer of the dataset-initializer job"));
  container.merge_patch(YamlOf("{volumeMounts: [{name: shared, mountPath: /workspace/dataset}]}"));
  pod["volumes"].push_back({{"name", "shared"}});
  EXPECT_EQ(Said(Created(TrainJobOf("{initializer: {dataset: {storageUri: 's3://a'}}}"), &bare)), "");
  EXPECT_EQ(Said(Created(TrainJobOf("{}"), &bare)), "");
  container["name"] = "main";
  EXPECT_THAT(Said(Created(TrainJobOf("{initializer: {dataset: {storageUri: 's3://a'}}}"), &bare)),
              HasSubstr("must have container with name - dataset-initializer in the dataset-initializer job"));
}

TEST(ValidateTrainJob, WarnsOfADeprecatedRuntime) {
  const Json deprecated = RuntimeWith("{metadata: {labels: {trainer.kubeflow.org/support: deprecated}}}");
  EXPECT_THAT(
      Created(TrainJobOf("{trainer: {command: [c]}}"), &deprecated).warnings,
      ElementsAre(HasSubstr("Referenced ClusterTrainingRuntime \"runtime\" is deprecated and will be removed in a "
                            "future release of Kubeflow Trainer. See runtime deprecation policy: https://")));
  EXPECT_THAT(Created(TrainJobOf("{trainer: {command: [c]}}")).warnings, IsEmpty());
  EXPECT_THAT(Created(TrainJobOf("{}")).warnings, ElementsAre(HasSubstr("runs without the agent")));  // a plan's notice
}

// ---- UPDATE

constexpr char kActive[] =
    "{status: {jobsStatus: [{name: node, ready: 0, succeeded: 0, failed: 0, active: 1, suspended: 0}]}}";
constexpr char kEnded[] = "{status: {conditions: [{type: Complete, status: 'True', reason: r, message: m}]}}";

Verdict Updated(const Json& before, const Json& after, const Json* runtime = &kFixed, const Json* snapshot = nullptr) {
  return ValidateTrainJob(RequestOf("UPDATE", "trainjobs", after, before), {.runtime = runtime, .snapshot = snapshot},
                          {});
}
std::string Changed(const std::string& before, const std::string& after, const Json* runtime = &kFixed) {
  return Said(Updated(TrainJobOf(before), TrainJobOf(after), runtime));
}

TEST(ValidateTrainJob, WhatMeansTheSameMayBeWrittenOtherwise) {
  struct Row {
    std::string before, after;
  };
  for (const Row& row : std::vector<Row>{
           {"{trainer: {image: x, args: [], env: null}}", "{trainer: {image: x}}"},
           {"{}", "{trainer: {}, initializer: {dataset: {}}, runtimePatches: []}"},
           {"{trainer: {resourcesPerNode: {limits: {cpu: 1000m}}}}",
            "{trainer: {resourcesPerNode: {limits: {cpu: '1'}}}}"},
           {"{trainer: {numProcPerNode: auto}}", "{trainer: {numProcPerNode: auto}}"},
           {"{}", "{runtimeRef: {kind: ClusterTrainingRuntime, apiGroup: trainer.kubeflow.org}}"},
           {"{}", "{managedBy: trainer.kubeflow.org/trainjob-controller}"},
           {Patched("{manager: a.b/c, time: '2020-01-01T00:00:00Z'}"), Patched("{manager: a.b/c}")},
       }) {
    EXPECT_EQ(Changed(row.before, row.after), "") << row.after;
    EXPECT_EQ(Changed(row.after, row.before), "") << row.before;
  }
  // A typed client drops the text in numProcPerNode and keeps the annotation that was made from it.
  const Json moved =
      TrainJobOf("{trainer: {image: x}}", "{metadata: {annotations: {muster.dev/num-proc-per-node: auto}}}");
  EXPECT_EQ(Said(Updated(TrainJobOf("{trainer: {image: x, numProcPerNode: auto}}"), moved)), "");
}

TEST(ValidateTrainJob, WhatIsImmutable) {
  struct Row {
    std::string before, after, path;
  };
  for (const char* suspended : {"", ", suspend: true"}) {
    for (const Row& row : std::vector<Row>{
             {"runtimeRef: {name: a}", "runtimeRef: {name: b}", "spec.runtimeRef"},
             {"runtimeRef: {name: a}", "runtimeRef: {name: a, kind: TrainingRuntime}", "spec.runtimeRef"},
             {"trainer: {image: x}", "trainer: {image: z}", "spec.trainer.image"},
             {"trainer: {image: x}", "a: b", "spec.trainer.image"},
             {"a: b", "trainer: {command: [c]}", "spec.trainer.command"},
             {"trainer: {env: [{name: A, value: a}]}", "trainer: {env: [{name: A, value: b}]}", "spec.trainer.env"},
             {"trainer: {resourcesPerNode: {limits: {cpu: 1}}}", "trainer: {resourcesPerNode: {limits: {cpu: 2}}}",
              "spec.trainer.resourcesPerNode"},
             {"trainer: {numProcPerNode: auto}", "trainer: {numProcPerNode: cpu}", "spec.trainer.numProcPerNode"},
             {"trainer: {numProcPerNode: 2}", "trainer: {numProcPerNode: 4}", "spec.trainer.numProcPerNode"},
             {"initializer: {dataset: {storageUri: 's3://a'}}", "initializer: {dataset: {storageUri: 's3://b'}}",
              "spec.initializer.dataset"},
             {"initializer: {model: {storageUri: 's3://a'}}", "a: b", "spec.initializer.model"},
             {"a: b", "managedBy: kueue.x-k8s.io/multikueue", "spec.managedBy"},
             {"a: b", "activeDeadlineSeconds: 5", "spec.activeDeadlineSeconds"},
             {"activeDeadlineSeconds: 6", "activeDeadlineSeconds: 5", "spec.activeDeadlineSeconds"},
         }) {
      EXPECT_THAT(
          Changed(fmt::format("{{{}{}}}", row.before, suspended), fmt::format("{{{}{}}}", row.after, suspended)),
          HasSubstr(fmt::format("422 {}: field is immutable", row.path)));
    }
  }
  EXPECT_THAT(Changed("{trainer: {image: x, args: [a]}}", "{trainer: {image: z, args: [b]}}"),
              AllOf(HasSubstr("spec.trainer.args"), HasSubstr("spec.trainer.image")));
}

TEST(ValidateTrainJob, WhatMayAlwaysChange) {
  EXPECT_EQ(Changed("{}", "{suspend: true}"), "");
  EXPECT_EQ(Changed("{suspend: true}", "{suspend: false}"), "");
  EXPECT_EQ(Changed("{ttlSecondsAfterFinished: 5}", "{ttlSecondsAfterFinished: 6}"), "");
  // A missing or invalid runtime does not prevent suspending a job.
  const Json broken = RuntimeWith("{spec: {template: {spec: {replicatedJobs: null}}}}");
  for (const Json* runtime : {static_cast<const Json*>(nullptr), &broken}) {
    EXPECT_EQ(Changed("{}", "{suspend: true}", runtime), "");
    EXPECT_EQ(Changed("{suspend: true}", "{}", runtime), "");
  }
  EXPECT_EQ(Changed("{suspend: true}", Patched(PodPatch("{nodeSelector: {a: b}}")), nullptr), "");
}

TEST(ValidateTrainJob, NumberOfNodes) {
  struct Row {
    std::string what, before, after, message;
    const Json* runtime = &kFixed;
    std::string labels = "{}";
  };
  const std::string queued = "{metadata: {labels: {kueue.x-k8s.io/queue-name: q}}}";
  const std::string gang = "{metadata: {annotations: {muster.dev/gang: native}}}";
  const std::string queue = "403 spec.trainer.numNodes: queue 'q' of Kueue";
  const std::string two = "trainer: {numNodes: 2}", three = "trainer: {numNodes: 3}", stop = ", suspend: true";
  for (const Row& row : std::vector<Row>{
           {"runs", two, three, "422 spec.trainer.numNodes: field is immutable while the job runs"},
           {"runs, none before", "a: b", three, "422 spec.trainer.numNodes: field is immutable while the job runs"},
           {"is suspended", two + stop, three + stop, ""},
           {"is being suspended", two, three + stop, ""},
           {"is being resumed", two + stop, three, ""},
           {"elastic", two, three, "", &kElastic},
           {"elastic, too many", two, "trainer: {numNodes: 5}", "403 spec.trainer.numNodes: 5 is not between",
            &kElastic},
           {"elastic, too few", two, "trainer: {numNodes: 0}", "422 spec.trainer.numNodes: 0 is less than 1",
            &kElastic},
           {"elastic, suspended, too many", two + stop, "trainer: {numNodes: 5}" + stop, "is not between", &kElastic},
           {"elastic, a gang", two, three,
            "403 spec.trainer.numNodes: Kubernetes refuses to change the number of pods of a gang that runs", &kElastic,
            gang},
           {"elastic, a gang, suspended", two + stop, three + stop, "", &kElastic, gang},
           {"elastic, no gang", two, three, "", &kElastic, "{metadata: {annotations: {muster.dev/gang: 'off'}}}"},
           {"the runtime has gone", two, three, "", nullptr},
           {"elastic, queued", two, three, queue, &kElastic, queued},
           {"queued", two, three, queue, &kFixed, queued},
           {"queued, is being resumed", two + stop, three, queue, &kFixed, queued},
           {"queued, suspended", two + stop, three + stop, "", &kFixed, queued},
           {"queued, is being suspended", two, three + stop, "", &kFixed, queued},
       }) {
    const std::string said = Said(Updated(TrainJobOf("{" + row.before + "}", row.labels),
                                          TrainJobOf("{" + row.after + "}", row.labels), row.runtime));
    if (row.message.empty()) {
      EXPECT_EQ(said, "") << row.what;
    } else {
      EXPECT_THAT(said, HasSubstr(row.message)) << row.what;
    }
  }
}

TEST(ValidateTrainJob, AsksTheClusterForAGang) {
  EXPECT_TRUE(Created(TrainJobOf("{}")).asks.is_null());
  const Verdict verdict = Created(TrainJobOf("{}", "{metadata: {annotations: {muster.dev/gang: native}}}"));
  EXPECT_EQ(Said(verdict), "");
  EXPECT_EQ(TextField(verdict.asks, "kind"), "Workload");
}

TEST(ValidateTrainJob, TheSnapshotCounts) {
  const Json before = TrainJobOf("{trainer: {numNodes: 2}}"), after = TrainJobOf("{trainer: {numNodes: 3}}");
  const auto job = ReadTrainJob(before);
  ASSERT_TRUE(job.ok()) << job.status();
  const Json elastic = MakeSnapshot(*job, kElastic).value(), fixed = MakeSnapshot(*job, kFixed).value();
  EXPECT_EQ(Said(Updated(before, after, &kFixed, &elastic)), "");
  EXPECT_EQ(Said(Updated(before, after, nullptr, &elastic)), "");
  EXPECT_THAT(Said(Updated(before, after, &kElastic, &fixed)), HasSubstr("field is immutable"));
  // A ConfigMap of that name with another owner is not a snapshot.
  Json foreign = fixed;
  foreign["metadata"]["ownerReferences"][0]["uid"] = "another";
  EXPECT_EQ(Said(Updated(before, after, &kElastic, &foreign)), "");
}

TEST(ValidateTrainJob, WhenPatchesMayChange) {
  const std::string one = PodPatch("{nodeSelector: {a: b}}"), other = PodPatch("{nodeSelector: {a: c}}");
  const std::string only =
      "403 spec.runtimePatches: RuntimePatches can only be modified when the TrainJob is suspended "
      "before or after the update";
  EXPECT_THAT(Changed(Patched(one), Patched(other)), HasSubstr(only));
  EXPECT_THAT(Changed("{}", Patched(other)), HasSubstr(only));
  EXPECT_THAT(Changed(Patched(one), "{}"), HasSubstr(only));
  EXPECT_EQ(Changed(Patched(one, ", suspend: true"), Patched(other, ", suspend: true")), "");
  EXPECT_EQ(Changed(Patched(one, ", suspend: true"), Patched(other)), "");
  EXPECT_EQ(Changed(Patched(one), Patched(other, ", suspend: true")), "");
  EXPECT_EQ(Changed(Patched(one, ", suspend: true"), "{suspend: true}"), "");
  EXPECT_THAT(
      Said(Updated(TrainJobOf(Patched(one, ", suspend: true"), kActive),
                   TrainJobOf(Patched(other, ", suspend: true"), kActive))),
      HasSubstr("403 spec.runtimePatches: RuntimePatches cannot be modified when the JobSet's ReplicatedJob node "
                "is still active"));
  EXPECT_THAT(Changed("{suspend: true}", Patched(PodPatch("{}", "nodes"), ", suspend: true")),
              HasSubstr("has no job 'nodes'"));
  EXPECT_THAT(Changed("{suspend: true}", Patched(PodPatch("{}", "node", "kueue"), ", suspend: true")),
              HasSubstr("must be a domain-prefixed path"));
}

TEST(ValidateTrainJob, WhatOfAPatchIsImmutable) {
  const auto change = [](const std::string& before, const std::string& after, const std::string& manager = "a.b/c") {
    return Changed(Patched(PodPatch(before, "node", manager), ", suspend: true"),
                   Patched(PodPatch(after, "node", manager), ", suspend: true"));
  };
  EXPECT_THAT(
      change("{serviceAccountName: a}", "{serviceAccountName: b}"),
      HasSubstr("422 spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[node].template.spec."
                "template.spec.serviceAccountName: field is immutable"));
  EXPECT_THAT(change("{volumes: [{name: a, emptyDir: {}}]}", "{volumes: [{name: b, emptyDir: {}}]}"),
              HasSubstr("volumes: field is immutable"));
  EXPECT_THAT(change("{containers: [{name: node, env: [{name: A, value: a}]}]}",
                     "{containers: [{name: node, env: [{name: A, value: b}]}]}"),
              HasSubstr("containers: field is immutable"));
  // Also of a job that runs: in Kubeflow Trainer the definition refuses this before a webhook is asked.
  EXPECT_THAT(Changed(Patched(PodPatch("{terminationGracePeriodSeconds: 300}")),
                      Patched(PodPatch("{terminationGracePeriodSeconds: 600}"))),
              HasSubstr("422 spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[node].template."
                        "spec.template.spec.terminationGracePeriodSeconds: field is immutable"));
  EXPECT_EQ(change("{}", "{serviceAccountName: b}"), "");
  EXPECT_EQ(change("{serviceAccountName: a}", "{}"), "");
  EXPECT_EQ(change("{serviceAccountName: a}", "{serviceAccountName: b}", "muster.dev/v21"), "");
  for (const char* field : {"nodeSelector: {x: ", "affinity: {nodeAffinity: ", "schedulingGates: [{name: "}) {
    const char* end = std::string_view(field).ends_with("name: ") ? "}]" : "}";
    EXPECT_EQ(change(fmt::format("{{{}a{}}}", field, end), fmt::format("{{{}b{}}}", field, end)), "") << field;
  }
}

TEST(ValidateTrainJob, AJobThatHasEnded) {
  const std::string patched = Patched(PodPatch("{nodeSelector: {a: b}}"));
  EXPECT_EQ(Said(Updated(TrainJobOf("{}", kEnded), TrainJobOf(patched, kEnded), nullptr)), "");
  EXPECT_EQ(Said(Updated(TrainJobOf("{}", kEnded), TrainJobOf("{ttlSecondsAfterFinished: 1}", kEnded))), "");
  EXPECT_THAT(Said(Updated(TrainJobOf("{}", kEnded), TrainJobOf("{trainer: {image: z}}", kEnded))),
              HasSubstr("field is immutable"));
}

TEST(ValidateTrainJob, WhatLeavesTheSpecPasses) {
  const Json wrong = TrainJobOf("{trainer: {numNodes: -5}, runtimePatches: [{manager: x}]}");
  Json labelled = wrong;
  labelled["metadata"]["finalizers"] = Json::array();
  labelled["metadata"]["labels"]["a"] = "b";
  EXPECT_EQ(Said(Updated(wrong, labelled, nullptr)), "");
  EXPECT_FALSE(ValidationNeedsFacts(RequestOf("UPDATE", "trainjobs", labelled, wrong)));
  labelled["spec"]["trainer"]["image"] = "other";
  EXPECT_THAT(Said(Updated(wrong, labelled, nullptr)), Not(IsEmpty()));
  labelled["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z";
  EXPECT_EQ(Said(Updated(wrong, labelled, nullptr)), "");
  EXPECT_EQ(Said(ValidateTrainJob(RequestOf("DELETE", "trainjobs", Json(), wrong), {}, {})), "");
}

TEST(ValidateTrainJob, JudgesTheNewNumberOfAScale) {
  const Json job = TrainJobOf("{trainer: {numNodes: 2, image: x}}");
  const auto scaled = [&](const Json& replicas, const Json* runtime) {
    AdmissionRequest request =
        RequestOf("UPDATE", "trainjobs", Json{{"metadata", {{"name", "train"}}}, {"spec", {{"replicas", replicas}}}},
                  Json{{"spec", {{"replicas", 2}}}});
    request.subresource = "scale";
    const AdmissionRequest update = UpdateByScale(request, job);
    EXPECT_EQ(update.name, "train");
    return Said(ValidateTrainJob(update, {.runtime = runtime}, {}));
  };
  EXPECT_EQ(scaled(3, &kElastic), "");
  EXPECT_EQ(scaled(2, &kFixed), "");
  EXPECT_THAT(scaled(5, &kElastic), HasSubstr("403 spec.trainer.numNodes: 5 is not between"));
  EXPECT_THAT(scaled(Json(), &kElastic), HasSubstr("422 spec.trainer.numNodes: 0 is less than 1"));
  EXPECT_THAT(scaled(2'000'000'000, &kElastic), HasSubstr("422 spec.trainer.numNodes: 2000000000 is more than 100000"));
  EXPECT_THAT(scaled(3, &kFixed), HasSubstr("422 spec.trainer.numNodes: field is immutable"));
  EXPECT_THAT(scaled("x", &kElastic), HasSubstr("422 spec.trainer.numNodes"));
}

}  // namespace
}  // namespace muster::controller
