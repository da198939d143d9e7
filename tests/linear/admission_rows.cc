// SPDX-License-Identifier: Apache-2.0
// JSON, and the objects that users and API servers send: reviews, pods, Jobs, TrainJobs, runtimes, PyTorchJobs.
#include "base/json_fields.h"
#include "base/text.h"
#include "controller/admission/mutate.h"
#include "controller/admission/validate_pytorch_job.h"
#include "controller/admission/validate_runtime.h"
#include "controller/admission/validate_train_job.h"
#include "controller/api/lenient.h"
#include "controller/api/strategic_merge.h"
#include "controller/kube/client/resource.h"
#include "controller/plan/convert/convert.h"
#include "controller/plan/plan.h"
#include "controller/reconcile/observed.h"
#include "tests/linear/linear.h"

namespace muster::controller {
namespace {

constexpr WallTime kNow = WallTime(std::chrono::seconds(1'700'000'000));
constexpr int kDeepest = 100;
constexpr size_t kAnyMemory = size_t{4} << 30;  // the test measures it

void AnyJson(const std::string& text) {
  (void)ReadJson(text, kDeepest, kAnyMemory);
  (void)ReadJsonTop(text, 2, UnreadOf(kPods, 1), kAnyMemory);
  (void)ReadJsonHead(text, kDeepest);
}

Json Read(const std::string& text) { return *ReadJson(text, kDeepest, kAnyMemory); }

Json Runtime() {
  return Read(
      R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainingRuntime","metadata":{"name":"r","namespace":"n"},
    "spec":{"mlPolicy":{"numNodes":1,"torch":{}},"template":{"spec":{"replicatedJobs":[{"name":"node","template":{
      "metadata":{"labels":{"trainer.kubeflow.org/trainjob-ancestor-step":"trainer"}},
      "spec":{"template":{"spec":{"containers":[{"name":"node","image":"i"}]}}}}}]}}}})");
}

AdmissionRequest Request(const char* operation, const char* resource, Json object) {
  AdmissionRequest request{.uid = "u", .operation = operation, .resource = resource, .ns = "n", .name = "j"};
  if (request.operation == "UPDATE") request.old_object = object;
  request.object = std::move(object);
  return request;
}

// As the spec of a TrainJob: read, completed, judged, planned, and changed.
void TrainJobSpec(const std::string& spec) {
  Json job = {{"apiVersion", "trainer.kubeflow.org/v1alpha1"},
              {"kind", "TrainJob"},
              {"metadata", {{"name", "j"}, {"namespace", "n"}, {"uid", "u"}}},
              {"spec", Read(spec)}};
  job["spec"]["runtimeRef"] = {{"name", "r"}, {"kind", "TrainingRuntime"}};
  const Json runtime = Runtime();
  const TrainJobFacts facts{.runtime = &runtime};
  for (const char* operation : {"CREATE", "UPDATE"}) {
    AdmissionRequest request = Request(operation, "trainjobs", job);
    Json& before = request.old_object["spec"];
    if (request.operation == "UPDATE") before["suspend"] = true;
    if (request.operation == "UPDATE" && before.contains("runtimePatches")) {
      before["runtimePatches"][0]["trainingRuntimeSpec"]["metadata"] = {{"labels", {{"a", "b"}}}};
    }
    (void)MutateTrainJob(request, &runtime, kNow);
    (void)ValidateTrainJob(request, facts, {});
  }
}

// As the spec of the runtime's only pod.
void RuntimePod(const std::string& pod) {
  Json runtime = Runtime();
  Json& spec = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
  spec.update(Read(pod));
  (void)ValidateRuntime(Request("CREATE", "trainingruntimes", runtime), {});
  AdmissionRequest of_job =
      Request("CREATE", "trainjobs", Read(R"({"metadata":{"name":"j","namespace":"n","uid":"u"},"spec":{"runtimeRef":
                                         {"name":"r","kind":"TrainingRuntime"},"trainer":{"numNodes":2}}})"));
  (void)ValidateTrainJob(of_job, {.runtime = &runtime}, {});
}

// As the list of the runtime's Jobs, without the brackets.
void RuntimeJobs(const std::string& jobs) {
  Json runtime = Runtime();
  runtime["spec"]["template"]["spec"]["replicatedJobs"] = Read("[" + jobs + R"({"name":"node"}])");
  (void)ValidateRuntime(Request("CREATE", "trainingruntimes", runtime), {});
}

// As the spec of a PyTorchJob's pods.
void PyTorchPod(const std::string& pod) {
  Json job =
      Read(R"({"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":"j","namespace":"n","uid":"u"},
    "spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":2,"template":{"spec":{}}}}}})");
  Json& spec = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"];
  spec = {{"containers", {{{"name", "pytorch"}, {"image", "i"}}}}};
  spec.update(Read(pod));
  (void)ValidatePyTorchJob(Request("CREATE", "pytorchjobs", job), {});
  (void)ValidatePyTorchJob(Request("UPDATE", "pytorchjobs", job), {});
  (void)ConvertPyTorchJob(job, {});
}

void APod(const std::string& text) { (void)ReadPod(Read(text)); }
void AJob(const std::string& text) { (void)ReadJob(Read(text)); }

void Merge(const std::string& spec) {
  const Json object = {{"spec", Read(spec)}};
  (void)StrategicMerge(object, object);
}

std::string Env(size_t number) { return fmt::format(R"({{"name":"V{}","value":"x"}},)", number); }
std::string Container(size_t number) { return fmt::format(R"({{"name":"c{}","image":"i"}},)", number); }
std::string Mounted(size_t number) { return fmt::format(R"({{"name":"v{0}","mountPath":"/v{0}"}},)", number); }
std::string Volume(size_t number) { return fmt::format(R"({{"name":"v{}","emptyDir":{{}}}},)", number); }
std::string Claim(size_t number) { return fmt::format(R"({{"name":"c{}"}},)", number); }
std::string Member(size_t number) { return fmt::format(R"("k{}":"v",)", number); }

// A list of what `of` makes, as the only value inside `before` and `after`.
auto List(std::string (*of)(size_t), std::string_view before, std::string_view last, std::string_view after) {
  return [=](size_t parts) {
    std::string text(before);
    for (size_t at = 0; at < parts; ++at) text += of(at);
    return text.append(last).append(after);
  };
}

constexpr char kLastEnv[] = R"({"name":"LAST"})", kLastVolume[] = R"({"name":"last","emptyDir":{}})";

const std::vector<LinearRow> kRows = {
    {"admission", "EmptyObjects", Repeats("{},", "[", "0]"), AnyJson},
    {"admission", "EmptyLists", Repeats("[],", "[", "0]"), AnyJson},
    {"admission", "Numbers", Repeats("0,", "[", "0]"), AnyJson},
    {"admission", "Texts", Repeats("\"\",", "[", "0]"), AnyJson},
    {"admission", "Members", List(Member, "{", R"("l":0)", "}"), AnyJson},
    {"admission", "SameMember", Repeats("\"a\":{},", "{", "\"a\":0}"), AnyJson},
    {"admission", "MembersOfObjects", Repeats("\"\":{\"a\":[{}]},", "{\"b\":[{", "\"c\":0}]}"), AnyJson},
    {"admission", "Depth", Repeats("["), AnyJson},
    {"admission", "DepthOfObjects", Repeats("{\"a\":"), AnyJson},
    {"admission", "OneText", Repeats("\\u0001", "\"", "\""), AnyJson},
    {"admission", "OneNumber", Repeats("1"), AnyJson},
    {"admission", "Env", List(Env, R"({"trainer":{"env":[)", kLastEnv, "]}}"), TrainJobSpec},
    {"admission", "Args", Repeats(R"("a",)", R"({"trainer":{"command":["c"],"args":[)", "\"a\"]}}"), TrainJobSpec},
    {"admission", "QuotedArgs", Repeats(R"("a b",)", R"({"trainer":{"command":["c"],"args":[)", "\"a\"]}}"),
     TrainJobSpec},
    {"admission", "OneArgument", Repeats("torchrun ", R"({"trainer":{"command":["bash","-c"],"args":[")", "\"]}}"),
     TrainJobSpec},
    {"admission", "Resources", List(Member, R"({"trainer":{"resourcesPerNode":{"limits":{)", R"("l":"1")", "}}}}"),
     TrainJobSpec},
    {"admission", "Claims", List(Claim, R"({"trainer":{"resourcesPerNode":{"claims":[)", R"({"name":"last"})", "]}}}"),
     TrainJobSpec},
    {"admission", "InitializerEnv", List(Env, R"({"initializer":{"dataset":{"env":[)", kLastEnv, "]}}}"), TrainJobSpec},
    {"admission", "Patches",
     Numbers([](size_t number) { return fmt::format(R"({{"manager":"m{}","trainingRuntimeSpec":{{}}}},)", number); },
             R"({"runtimePatches":[)", R"({"manager":"m","trainingRuntimeSpec":{}}]})"),
     TrainJobSpec},
    {"admission", "PatchedJobs",
     Numbers([](size_t number) { return fmt::format(R"({{"name":"j{}"}},)", number); },
             R"({"runtimePatches":[{"manager":"m","trainingRuntimeSpec":{"template":{"spec":{"replicatedJobs":[)",
             R"({"name":"node"}]}}}}]})"),
     TrainJobSpec},
    {"admission", "PatchedEnv",
     List(
         Env,
         R"({"runtimePatches":[{"manager":"m","trainingRuntimeSpec":{"template":{"spec":{"replicatedJobs":[{"name":"node",
             "template":{"spec":{"template":{"spec":{"containers":[{"name":"node","env":[)",
         kLastEnv, "]}]}}}}}]}}}}]}"),
     TrainJobSpec},
    {"admission", "PatchedLabels",
     List(
         Member,
         R"({"runtimePatches":[{"manager":"m","trainingRuntimeSpec":{"template":{"spec":{"replicatedJobs":[{"name":"node",
             "template":{"spec":{"template":{"metadata":{"labels":{)",
         R"("l":"v")", "}}}}}}]}}}}]}"),
     TrainJobSpec},
    {"admission", "PatchedTolerations",
     Repeats(
         R"({"key":"k","operator":"Exists"},)",
         R"({"runtimePatches":[{"manager":"m","trainingRuntimeSpec":{"template":{"spec":{"replicatedJobs":[{"name":"node",
             "template":{"spec":{"template":{"spec":{"tolerations":[)",
         R"({"key":"l","operator":"Exists"}]}}}}}]}}}}]})"),
     TrainJobSpec},
    {"admission", "OldOverrides",
     Repeats(R"({"targetJobs":[{"name":"node"}],"spec":{"serviceAccountName":"a"}},)", R"({"podTemplateOverrides":[)",
             R"({"targetJobs":[{"name":"node"}]}]})"),
     TrainJobSpec},
    {"admission", "OldTargets",
     Numbers([](size_t number) { return fmt::format(R"({{"name":"j{}"}},)", number); },
             R"({"podTemplateOverrides":[{"targetJobs":[)", R"({"name":"node"}]}]})"),
     TrainJobSpec},
    {"admission", "OldLabels", List(Member, R"({"labels":{)", R"("l":"v")", "}}"), TrainJobSpec},
    {"admission", "RuntimeEnv", List(Env, R"({"containers":[{"name":"node","image":"i","env":[)", kLastEnv, "]}]}"),
     RuntimePod},
    {"admission", "RuntimeContainers", List(Container, R"({"containers":[)", R"({"name":"node","image":"i"})", "]}"),
     RuntimePod},
    {"admission", "RuntimeInitContainers",
     List(Container, R"({"containers":[{"name":"node","image":"i"}],"initContainers":[)", R"({"name":"l","image":"i"})",
          "]}"),
     RuntimePod},
    {"admission", "RuntimeVolumes",
     List(Volume, R"({"containers":[{"name":"node","image":"i"}],"volumes":[)", kLastVolume, "]}"), RuntimePod},
    {"admission", "RuntimeMounts",
     List(Mounted, R"({"containers":[{"name":"node","image":"i","volumeMounts":[)", R"({"name":"l","mountPath":"/l"})",
          "]}]}"),
     RuntimePod},
    {"admission", "RuntimeJobs", Numbers([](size_t number) {
       return fmt::format(
           R"({{"name":"j{}","dependsOn":[{{"name":"node","status":"Ready"}}],"template":{{"spec":{{"template":{{"spec":{{
              "containers":[{{"name":"c"}}]}}}}}}}}}},)",
           number);
     }),
     RuntimeJobs},
    {"admission", "PyTorchEnv", List(Env, R"({"containers":[{"name":"pytorch","image":"i","env":[)", kLastEnv, "]}]}"),
     PyTorchPod},
    {"admission", "PyTorchContainers", List(Container, R"({"containers":[)", R"({"name":"pytorch","image":"i"})", "]}"),
     PyTorchPod},
    {"admission", "PyTorchInitContainers",
     List(Container, R"({"initContainers":[)", R"({"name":"l","image":"i"})", "]}"), PyTorchPod},
    {"admission", "PyTorchVolumes", List(Volume, R"({"volumes":[)", kLastVolume, "]}"), PyTorchPod},
    {"children", "Env",
     List(Env, R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","env":[)", kLastEnv, "]}]}}"), APod},
    {"children", "InitContainers",
     [](size_t parts) {
       std::string spec, status;
       for (size_t at = 0; at < parts; ++at) {
         spec += fmt::format(R"({{"name":"c{}"}},)", at);
         status += fmt::format(R"({{"name":"c{}","restartCount":1}},)", at);
       }
       return fmt::format(
           R"({{"metadata":{{"name":"p"}},"spec":{{"initContainers":[{}{{}}]}},"status":{{"initContainerStatuses":[{}{{}}]}}}})",
           spec, status);
     },
     APod},
    {"children", "Conditions",
     Repeats(R"({"type":"DisruptionTarget","status":"True"},)", R"({"metadata":{"name":"p"},"status":{"conditions":[)",
             "{}]}}"),
     APod},
    {"children", "Labels", List(Member, R"({"metadata":{"name":"p","labels":{)", R"("l":"v")", "}}}"), APod},
    {"children", "Finalizers", Repeats("\"a/b\",", R"({"metadata":{"name":"p","finalizers":[)", "\"c\"]}}"), APod},
    {"children", "Indexes", Repeats("1-2,", R"({"metadata":{"name":"j"},"status":{"completedIndexes":")", "\"}}"),
     AJob},
    {"train_job", "MergedEnv", List(Env, R"({"containers":[{"name":"c","env":[)", kLastEnv, "]}]}"), Merge},
    {"train_job", "MergedContainers", List(Container, R"({"containers":[)", R"({"name":"l"})", "]}"), Merge},
    {"train_job", "MergedVolumes", List(Volume, R"({"volumes":[)", kLastVolume, "]}"), Merge},
    {"train_job", "MergedTolerations", Repeats(R"({"key":"k","operator":"Exists"},)", R"({"tolerations":[)", "{}]}"),
     Merge},
    {"train_job", "MergedLists", Repeats("\"a\",", R"({"args":[)", "\"b\"]}"), Merge},
};

INSTANTIATE_TEST_SUITE_P(Admission, Linear, testing::ValuesIn(kRows), NameOfRow);

}  // namespace
}  // namespace muster::controller
