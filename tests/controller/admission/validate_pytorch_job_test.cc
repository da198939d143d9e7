// SPDX-License-Identifier: Apache-2.0
#include "controller/admission/validate_pytorch_job.h"

#include <map>

#include "tests/controller/admission/requests.h"

namespace muster::controller {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kPods = "template: {spec: {containers: [{name: pytorch, image: x}]}}";
const std::string kMaster = "Master: {replicas: 1, " + kPods + "}";
const std::string kWorker = "Worker: {" + kPods + "}";
const std::string kBoth = kMaster + ", " + kWorker;
const std::string kElastic = "elasticPolicy: {minReplicas: 1, maxReplicas: 20, metrics: [{type: Resource}]}";

// A PyTorchJob. `replicas` is YAML inside pytorchReplicaSpecs, `spec` further fields of spec.
Json JobOf(const std::string& replicas, const std::string& spec = "", const std::string& name = "train") {
  return YamlOf(
      fmt::format("{{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {{name: '{}', namespace: ns}}, "
                  "spec: {{pytorchReplicaSpecs: {{{}}}{}{}}}}}",
                  name, replicas, spec.empty() ? "" : ", ", spec));
}

// Matches a text that begins with `message`; if `message` is empty, only the empty text.
::testing::Matcher<std::string> Begins(const std::string& message) {
  return message.empty() ? ::testing::Matcher<std::string>("") : StartsWith(message);
}

Verdict Created(const Json& job) { return ValidatePyTorchJob(RequestOf("CREATE", "pytorchjobs", job), {}); }
Verdict Updated(const Json& before, const Json& after) {
  return ValidatePyTorchJob(RequestOf("UPDATE", "pytorchjobs", after, before), {});
}
std::string Changed(const std::string& before, const std::string& after) {
  return Said(Updated(JobOf(kBoth, before), JobOf(kBoth, after)));
}

TEST(ValidatePyTorchJob, WhatIsAccepted) {
  struct Row {
    std::string replicas, spec = "";
  };
  for (const Row& row : std::vector<Row>{
           {kBoth},
           {kMaster},
           {kWorker},
           {"Worker: {replicas: 3, " + kPods + "}"},
           {"Worker: {template: {spec: {containers: [{name: log, image: z}, {name: pytorch, image: x}]}}}"},
           {kBoth, "nprocPerNode: '4'"},
           {kBoth, "runPolicy: {managedBy: kubeflow.org/training-operator}"},
           {kBoth, "runPolicy: {managedBy: kueue.x-k8s.io/multikueue}"},
           {kWorker, "elasticPolicy: {}"},
           {kBoth, "elasticPolicy: {rdzvBackend: c10d}"},
           {kWorker, "elasticPolicy: {rdzvConf: [], standalone: true}"},
           {"Worker: {replicas: 2, " + kPods + "}", "elasticPolicy: {minReplicas: 2, maxReplicas: 2}"},
       }) {
    const Verdict verdict = Created(JobOf(row.replicas, row.spec));
    EXPECT_EQ(Said(verdict), "") << row.replicas << row.spec;
    EXPECT_THAT(verdict.warnings, IsEmpty()) << row.spec;
    const std::string before = row.spec.find("managedBy") == std::string::npos ? "" : row.spec;  // immutable
    EXPECT_EQ(Said(Updated(JobOf("Worker: {}", before), JobOf(row.replicas, row.spec))), "")
        << row.replicas << row.spec;
  }
}

TEST(ValidatePyTorchJob, ANumberOutsideTheElasticPolicyIsSaid) {
  const std::string elastic = "elasticPolicy: {minReplicas: 2, maxReplicas: 3}";
  for (const auto& [count, warning] :
       std::map<int, std::string>{{1, "1 is below minReplicas of elasticPolicy, 2: training begins"},
                                  {2, ""},
                                  {3, ""},
                                  {5, "5 is above maxReplicas of elasticPolicy, 3: the pods"}}) {
    const Verdict verdict = Created(JobOf(fmt::format("Worker: {{replicas: {}, {}}}", count, kPods), elastic));
    EXPECT_EQ(Said(verdict), "");
    EXPECT_EQ(verdict.warnings.size(), warning.empty() ? 0U : 1U);
    if (!warning.empty()) {
      EXPECT_THAT(verdict.warnings, ElementsAre(HasSubstr("[Worker].replicas: " + warning)));
    }
  }
}

TEST(ValidatePyTorchJob, WhatIsRefused) {
  const std::string path = "spec.pytorchReplicaSpecs";
  const std::string containers = ".template.spec.containers";
  struct Row {
    std::string replicas, spec, message;
  };
  for (const Row& row : std::vector<Row>{
           // training-operator's rules, with its messages
           {kBoth, "pytorchReplicaSpecs: null",
            "403 " + path + ": Required value: must be required; give it Master, Worker, or both"},
           {"", "", "403 " + path + ": Required value: must be required; give it Master, Worker, or both"},
           {kMaster, "elasticPolicy: {}",
            "403 " + path + "[Worker]: Required value: must be configured if elastic policy is used"},
           {kBoth, "nprocPerNode: '1', elasticPolicy: {nProcPerNode: 1}",
            "403 spec.elasticPolicy.nProcPerNode: Forbidden: must not be used with spec.nprocPerNode; keep "
            "spec.nprocPerNode alone"},
           {kBoth, "runPolicy: {managedBy: other-job-controller}",
            "403 spec.runPolicy.managedBy: Unsupported value: \"other-job-controller\": supported values: "
            "\"kubeflow.org/training-operator\", \"kueue.x-k8s.io/multikueue\""},
           {kBoth, "runPolicy: {managedBy: ''}", "403 spec.runPolicy.managedBy: Unsupported value: \"\""},
           {"worker: {" + kPods + "}", "",
            "403 " + path + "[worker]: Unsupported value: \"worker\": supported values: \"Master\", \"Worker\""},
           {kBoth + ", Chief: {" + kPods + "}", "", "403 " + path + "[Chief]: Unsupported value: \"Chief\""},
           {"Worker: {template: {spec: {containers: []}}}", "",
            "403 " + path + "[Worker]" + containers +
                ": Required value: must be specified; a pod needs a container; 403 " + path + "[Worker]" + containers +
                ": Required value: must have at least one container with name pytorch"},
           {"Worker: null", "", "403 " + path + "[Worker]" + containers + ": Required value: must be specified"},
           {"Worker: {}", "", "403 " + path + "[Worker]" + containers + ": Required value: must be specified"},
           {"Worker: {template: {spec: {containers: [{name: pytorch}]}}}", "",
            "403 " + path + "[Worker]" + containers + "[0].image: Required value: must be required"},
           {"Worker: {template: {spec: {containers: [{name: pytorch, image: x}, {name: log, image: ''}]}}}", "",
            "403 " + path + "[Worker]" + containers + "[1].image: Required value: must be required"},
           {"Worker: {template: {spec: {containers: [{name: main, image: x}]}}}", "",
            "403 " + path + "[Worker]" + containers +
                ": Required value: must have at least one container with name pytorch"},
           {"Master: {" + kPods + "}", "", "403 " + path + "[Master].replicas: Forbidden: must be 1; it is missing"},
           {"Master: {replicas: 2, " + kPods + "}", "",
            "403 " + path + "[Master].replicas: Forbidden: must be 1; it is 2"},
           {"Master: {replicas: 0, " + kPods + "}", "",
            "403 " + path + "[Master].replicas: Forbidden: must be 1; it is 0"},
           {"Worker: {replicas: 0, " + kPods + "}", "",
            "403 " + path +
                "[Worker].replicas: Forbidden: must be at least 1; it is 0; to stop the pods, suspend the job "
                "(spec.runPolicy.suspend: true)"},
           {"Worker: {replicas: -1, " + kPods + "}", "",
            "403 " + path + "[Worker].replicas: Forbidden: must be at least 1; it is -1"},
           // the form (422)
           {kBoth, "elasticPolicy: {minReplicas: 3, maxReplicas: 2}",
            "422 spec.elasticPolicy.minReplicas: 3 is more than maxReplicas, 2"},
           {kBoth, "nprocPerNode: \"0\"", "422 spec.nprocPerNode: '0' is not a whole number from 1 to 65536"},
           {kBoth, "runPolicy: {cleanPodPolicy: Some}", "422 spec.runPolicy.cleanPodPolicy: 'Some' is not one of"},
           {kBoth, "pytorchReplicaSpecs: [Worker]", "422 spec.pytorchReplicaSpecs: a list is not an object"},
           {"Worker: {replicas: two, " + kPods + "}", "",
            "422 " + path + ".Worker.replicas: 'two' is not a whole number"},
       }) {
    const Json job = [&] {
      Json made = JobOf(row.replicas);
      made["spec"].merge_patch(YamlOf("{" + (row.spec.empty() ? "a: b" : row.spec) + "}"));
      if (row.replicas == "Worker: null") made["spec"]["pytorchReplicaSpecs"]["Worker"] = nullptr;
      return made;
    }();
    EXPECT_THAT(Said(Created(job)), StartsWith(row.message)) << row.replicas << row.spec;
    if (row.spec.find("managedBy") != std::string::npos) continue;  // immutable
    EXPECT_THAT(Said(Updated(JobOf(kBoth), job)), StartsWith(row.message)) << row.replicas << row.spec;
  }
}

TEST(ValidatePyTorchJob, AllThatIsWrongIsSaid) {
  const std::string said =
      Said(Created(JobOf("Master: {" + kPods + "}, Chief: {}", "runPolicy: {managedBy: x}", "0-test")));
  EXPECT_THAT(said, AllOf(HasSubstr("metadata.name: "), HasSubstr("spec.runPolicy.managedBy: "),
                          HasSubstr("[Master].replicas: "), HasSubstr("[Chief]: ")));
  std::string many;
  for (int i = 0; i < 100; ++i) many += fmt::format("k{}: {{}}, ", i);
  EXPECT_LE(Created(JobOf(many + kWorker)).refusals.size(), 20);
}

TEST(ValidatePyTorchJob, KeysAreOutsideText) {
  Json job = JobOf(kWorker);
  job["spec"]["pytorchReplicaSpecs"]["a\n\"b\x01"] = YamlOf("{" + kPods + "}");
  const std::string said = Said(Created(job));
  EXPECT_THAT(said, Not(HasSubstr("\n")));
  EXPECT_THAT(said, HasSubstr("Unsupported value: \"a\\x0a"));
}

TEST(ValidatePyTorchJob, NamesMustFitALabelAndTheServices) {
  struct Row {
    std::string what, name, replicas, spec, message;
  };
  const std::string label =
      "403 metadata.name: Invalid value: \"0-test\": should match: a DNS-1035 label must consist of lower case "
      "alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character "
      "(e.g. "
      "'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
  const auto of = [](size_t size) { return std::string(size, 'a'); };
  const std::string ten = "Worker: {replicas: 10, " + kPods + "}", eleven = "Worker: {replicas: 11, " + kPods + "}";
  const auto long_name = [&](const std::string& name, const std::string& last, int over) {
    return fmt::format(
        "403 metadata.name: Invalid value: \"{0}\": Service \"{0}-{1}\" has a name of {2} characters, and 63 are "
        "possible; give the job a name that is {3} characters shorter",
        name, last, name.size() + 1 + last.size(), over);
  };
  for (const Row& row : std::vector<Row>{
           {"a digit first", "0-test", kBoth, "", label},
           {"a dot", "a.b", kBoth, "", "403 metadata.name: Invalid value: \"a.b\": should match: a DNS-1035 label"},
           {"none", "", kBoth, "", "403 metadata.name: Invalid value: \"\": should match: a DNS-1035 label"},
           {"64", of(64), kBoth, "",
            "403 metadata.name: Invalid value: \"" + of(64) + "\": should match: must be no more than 63 characters"},
           {"a Master fits", of(54), kMaster, "", ""},
           {"a Master does not", of(55), kMaster, "", long_name(of(55), "master-0", 1)},
           {"ten Workers fit", of(54), ten, "", ""},
           {"eleven Workers do not", of(54), eleven, "", long_name(of(54), "worker-10", 1)},
           {"63", of(63), kBoth, "", long_name(of(63), "master-0", 9)},
           {"an autoscaler may add Workers", of(54), kWorker, kElastic, long_name(of(54), "worker-19", 1)},
           {"nothing adds Workers", of(54), kWorker, "elasticPolicy: {maxReplicas: 20}", ""},
           {"not Muster's", of(63), kBoth, "runPolicy: {managedBy: kueue.x-k8s.io/multikueue}", ""},
       }) {
    const std::string said = Said(Created(JobOf(row.replicas, row.spec, row.name)));
    EXPECT_THAT(said, Begins(row.message)) << row.what;
  }
  // An existing job with a name that is too long may change, unless its longest name grows.
  EXPECT_EQ(Said(Updated(JobOf(eleven, "", of(54)), JobOf(eleven, "nprocPerNode: gpu", of(54)))), "");
  EXPECT_EQ(Said(Updated(JobOf(eleven, "", of(54)), JobOf(ten, "", of(54)))), "");
  EXPECT_EQ(Said(Updated(JobOf(ten, "", of(54)), JobOf(eleven, "", of(54)))), long_name(of(54), "worker-10", 1));
}

TEST(ValidatePyTorchJob, WarnsOfADeprecatedField) {
  for (const char* more : {"", ", nprocPerNode: '2'"}) {
    EXPECT_THAT(Created(JobOf(kBoth, std::string("elasticPolicy: {nProcPerNode: 1}") + more)).warnings,
                ElementsAre("spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead"));
  }
}

// ---- UPDATE

TEST(ValidatePyTorchJob, ManagedByIsImmutable) {
  const std::string own = "runPolicy: {managedBy: kubeflow.org/training-operator}";
  const std::string kueue = "runPolicy: {managedBy: kueue.x-k8s.io/multikueue}", nobody = "runPolicy: {managedBy: ''}";
  struct Row {
    std::string before, after, value;  // value: in the refusal; empty: the update is allowed
  };
  for (const Row& row : std::vector<Row>{
           {own, kueue, "\"kueue.x-k8s.io/multikueue\""},
           {kueue, own, "\"kubeflow.org/training-operator\""},
           {"a: b", kueue, "\"kueue.x-k8s.io/multikueue\""},
           {kueue, "a: b", "null"},
           {"a: b", nobody, "\"\""},
           {nobody, own, "\"kubeflow.org/training-operator\""},
           {own, "a: b", ""},
           {"a: b", own, ""},
           {kueue, kueue, ""},
       }) {
    const std::string message = fmt::format(
        "403 spec.runPolicy.managedBy: Invalid value: {}: field is immutable; make another PyTorchJob for another "
        "manager",
        row.value);
    EXPECT_EQ(Changed(row.before, row.after), row.value.empty() ? "" : message) << row.before << " " << row.after;
  }
}

TEST(ValidatePyTorchJob, WhatCannotBePlanned) {
  Json job = JobOf("Worker: {" + kPods + "}");
  job["metadata"]["annotations"] = {{"muster.dev/restart", "sometimes"}};
  EXPECT_EQ(Said(Created(job)), "403 metadata.annotations.muster.dev/restart: 'sometimes' is neither pod nor job");
  job["metadata"]["annotations"] = {{"muster.dev/standby-workers", "2"}};
  EXPECT_EQ(Said(Created(job)), "403 metadata.annotations.muster.dev/standby-workers: '2' is neither auto nor off");
  job["metadata"]["annotations"] = {{"muster.dev/gang", "volcano"}};
  EXPECT_EQ(Said(Created(job)), "403 metadata.annotations.muster.dev/gang: 'volcano' is neither native nor off");
  job["metadata"]["annotations"] = {{"muster.dev/gang", "native"}};
  EXPECT_EQ(Said(Created(job)), "");
  EXPECT_EQ(TextField(Created(job).asks, "kind"), "Workload");
}

// A job that breaks rules may exist already, since its definition may be older than the webhook.
TEST(ValidatePyTorchJob, WhatMayAlwaysChange) {
  const Json broken = JobOf("Worker: {replicas: 0, " + kPods + "}", "nprocPerNode: \"0\"", "0-test");
  struct Row {
    std::string what, patch;
  };
  for (const Row& row : std::vector<Row>{
           {"its metadata", "metadata: {labels: {a: b}, finalizers: []}"},
           {"its status", "status: {conditions: []}"},
           {"it is suspended", "spec: {runPolicy: {suspend: true}}"},
           {"written otherwise", "spec: {runPolicy: {}, pytorchReplicaSpecs: {Worker: {template: {metadata: {}}}}}"},
           {"it is being deleted",
            "{metadata: {deletionTimestamp: '2026-01-02T03:04:05Z'}, spec: {nprocPerNode: other}}"},
           {"it is being deleted, for another manager",
            "{metadata: {deletionTimestamp: '2026-01-02T03:04:05Z'}, spec: {runPolicy: {managedBy: x}}}"},
       }) {
    Json after = broken;
    after.merge_patch(YamlOf(row.patch));
    EXPECT_EQ(Said(Updated(broken, after)), "") << row.what;
  }
  Json after = broken;
  after["spec"]["runPolicy"]["suspend"] = true;
  EXPECT_EQ(Said(Updated(after, broken)), "");  // resume
  after["spec"]["nprocPerNode"] = "gpu";
  EXPECT_THAT(Said(Updated(broken, after)), HasSubstr("403 metadata.name: "));
}

TEST(ValidatePyTorchJob, AnotherManagersJobMayChange) {
  const std::string kueue = "runPolicy: {managedBy: kueue.x-k8s.io/multikueue}";
  EXPECT_EQ(Said(Updated(JobOf(kBoth, kueue), JobOf("Worker: {}", kueue))), "");
  EXPECT_THAT(Said(Created(JobOf("Worker: {}", kueue))), HasSubstr("must be specified"));
}

TEST(ValidatePyTorchJob, AnElasticPolicyWithoutFieldsCounts) {
  EXPECT_THAT(Said(Updated(JobOf(kMaster), JobOf(kMaster, "elasticPolicy: {}"))),
              HasSubstr("must be configured if elastic policy is used"));
}

TEST(ValidatePyTorchJob, AllowsADeletionOfAnyJob) {
  EXPECT_EQ(Said(ValidatePyTorchJob(RequestOf("DELETE", "pytorchjobs", Json(), JobOf("Worker: {}")), {})), "");
}

TEST(ValidatePyTorchJob, JudgesTheNewNumberOfAScale) {
  const std::string name(54, 'a');
  const Json job = JobOf("Worker: {replicas: 2, " + kPods + "}", "", name);
  struct Row {
    std::string spec, message;
  };
  for (const Row& row : std::vector<Row>{
           {"{replicas: 10}", ""},
           {"{replicas: 11}", "403 metadata.name: Invalid value: \"" + name + "\": Service"},
           {"{replicas: 0}", "403 spec.pytorchReplicaSpecs[Worker].replicas: Forbidden: must be at least 1"},
           {"{}", "403 spec.pytorchReplicaSpecs[Worker].replicas: Forbidden: must be at least 1"},
       }) {
    AdmissionRequest request =
        RequestOf("UPDATE", "pytorchjobs", {{"metadata", {{"name", name}}}, {"spec", YamlOf(row.spec)}});
    request.subresource = "scale";
    const AdmissionRequest update = PyTorchUpdateByScale(request, job);
    EXPECT_EQ(update.subresource, "");
    EXPECT_EQ(update.old_object, job);
    EXPECT_THAT(Said(ValidatePyTorchJob(update, {})), Begins(row.message)) << row.spec;
  }
}

}  // namespace
}  // namespace muster::controller
