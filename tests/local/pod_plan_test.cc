// SPDX-License-Identifier: Apache-2.0
// A pod that the planner makes: of the runtime torch-distributed with two nodes.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "controller/plan/plan_files.h"
#include "controller/plan/pod_object.h"
#include "tests/local/pod_made.h"

namespace muster::local {

using namespace controller;

namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

constexpr char kJob[] = R"(apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: digits, namespace: team}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 2
    command: [torchrun, train.py]
    args: ["--lr=0.1"]
    resourcesPerNode: {limits: {cpu: 4, nvidia.com/gpu: 2}}
)";

std::string TextOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The pod of the second node.
Json PlannedPod() {
  const std::string runtime = TextOf("controller/manifests/runtimes/torch-distributed.yaml");
  const auto planned = PlanFiles({{"job.yaml", kJob}, {"runtime.yaml", runtime}}, {});
  EXPECT_TRUE(planned.ok()) << planned.status();
  if (!planned.ok() || planned->jobs.size() != 1 || planned->jobs[0].plan.jobs.size() != 1) return Json();
  auto pod = PodOfJob(planned->jobs[0].plan.jobs[0].Object(), 1, "digits-node-0-1-abcde");
  EXPECT_TRUE(pod.ok()) << pod.status();
  return pod.value_or(Json());
}

const Json* FindToken(std::string_view kind, std::string_view name) {
  static const Json* const kToken = new Json{{"data", {{"token", "c2VjcmV0"}}}};
  return kind == "Secret" && name == "digits-token" ? kToken : nullptr;
}

void ExpectTheNodesVariables(const ContainerProgram& node) {
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"PET_NNODES", "2"},
           {"PET_NODE_RANK", "1"},
           {"PET_MASTER_ADDR", "digits-node-0-0.digits"},
           {"PET_MASTER_PORT", "29500"},
           {"PET_NPROC_PER_NODE", "auto"},
           {"JOB_COMPLETION_INDEX", "1"},
           {"PATH", "/usr/bin"},
       }) {
    EXPECT_EQ(VariableOf(node, name), value) << name;
  }
}

TEST(PodPlan, ANodeOfTorchRunsUnderTheAgent) {
  const auto program = ProgramOf(PlannedPod(), PlaceHere(), FindToken);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->hostname, "digits-node-0-1");
  EXPECT_EQ(program->subdomain, "digits");

  ASSERT_EQ(program->init_containers.size(), 1);
  const ContainerProgram& installer = program->init_containers[0];
  EXPECT_THAT(installer.command, ElementsAre("/opt/bin/muster", "install", "/muster-agent"));
  EXPECT_THAT(MountTexts(installer), ElementsAre("/run/pod/volumes/muster-agent at /muster-agent"));
  EXPECT_FALSE(installer.sidecar);

  ASSERT_EQ(program->containers.size(), 1);
  const ContainerProgram& node = program->containers[0];
  EXPECT_EQ(node.name, "node");
  EXPECT_THAT(node.command, ElementsAre("/muster-agent/muster", "exec", "--", "torchrun", "train.py", "--lr=0.1"));
  EXPECT_THAT(MountTexts(node), ElementsAre("/run/pod/volumes/muster-agent at /muster-agent (ro)",
                                            "/run/pod/volumes/muster-token at /muster-token (ro)"));
  EXPECT_EQ(node.restart, ContainerProgram::Restart::kNever);
  EXPECT_EQ(node.limits.milli_cpus, 4000);
  ASSERT_TRUE(node.readiness);
  EXPECT_EQ(node.readiness->path, "/readyz");
  EXPECT_EQ(node.readiness->port, 29480);
  EXPECT_EQ(VariableOf(node, "MUSTER_TOKEN_FILE"), "/muster-token/token");
  ExpectTheNodesVariables(node);

  std::vector<std::string> files;
  for (const PodFile& file : program->files) files.push_back(fmt::format("{}={}", file.path, file.text));
  EXPECT_THAT(files, Contains("/run/pod/volumes/muster-token/token=secret"));
  EXPECT_THAT(program->ignored, ElementsAre("spec.containers[0].resources.limits.nvidia.com/gpu: 2 asked for, this "
                                            "machine has 0"));
}

TEST(PodPlan, WithoutMountsTheNodeFindsItsFilesAtThisMachinesPaths) {
  const auto program = ProgramOf(PlannedPod(), PlaceWithoutRoots(), FindToken);
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->init_containers.size(), 1);
  EXPECT_THAT(program->init_containers[0].command,
              ElementsAre("/opt/bin/muster", "install", "/run/pod/volumes/muster-agent"));
  ASSERT_EQ(program->containers.size(), 1);
  const ContainerProgram& node = program->containers[0];
  EXPECT_THAT(node.command,
              ElementsAre("/run/pod/volumes/muster-agent/muster", "exec", "--", "torchrun", "train.py", "--lr=0.1"));
  EXPECT_EQ(VariableOf(node, "MUSTER_TOKEN_FILE"), "/run/pod/volumes/muster-token/token");
  ExpectTheNodesVariables(node);
}

TEST(PodPlan, AMissingTokenIsNamed) {
  const auto program = ProgramOf(PlannedPod(), PlaceHere(),
                                 [](std::string_view, std::string_view) { return static_cast<const Json*>(nullptr); });
  EXPECT_EQ(
      Message(program.status()),
      "spec.volumes[1].secret.secretName: there is no Secret 'digits-token': give it by --secret digits-token=DIR, "
      "or as a file by -f");
}

// The pods of all plans that are kept as examples for the planner.
TEST(PodPlan, EveryPlannedPodHasAProgram) {
  const Json object = {{"data", {{"hostfile", ""}}},
                       {"stringData", {{"token", "t"}, {"ssh-privatekey", "k"}, {"ssh-publickey", "k"}}}};
  const FindObject find = [&](std::string_view, std::string_view) { return &object; };
  PodPlace place = PlaceHere();
  for (const char* image : {"exporter", "muster-initializer", "mpi", "torch", "train"})
    place.entrypoints[image] = {"/x"};
  int pods = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/controller/golden")) {
    if (entry.path().string().ends_with(".in.yaml")) continue;
    const auto documents = ReadYaml(TextOf(entry.path()));
    ASSERT_TRUE(documents.ok()) << entry.path();
    for (const YamlDocument& document : *documents) {
      const std::string kind = TextField(document.object, "kind");
      if (kind != "Job" && kind != "Pod") continue;
      const auto pod = kind == "Pod" ? StatusOr<Json>(document.object) : PodOfJob(document.object, 0, "pod-0");
      ASSERT_TRUE(pod.ok()) << entry.path() << pod.status();
      const auto program = ProgramOf(*pod, place, find);
      EXPECT_TRUE(program.ok()) << entry.path() << program.status();
      ++pods;
    }
  }
  EXPECT_GT(pods, 20);
}

constexpr char kRich[] = R"(
hostname: h
terminationGracePeriodSeconds: 5
volumes:
- {name: a, configMap: {name: settings, optional: true, items: [{key: A, path: a/b, mode: 256}]}}
- name: b
  projected:
    sources:
    - {secret: {name: keys}}
    - {downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.labels}}]}}
- {name: c, persistentVolumeClaim: {claimName: sets}}
- {name: d, hostPath: {path: /srv, type: DirectoryOrCreate}}
- {name: e, emptyDir: {medium: Memory, sizeLimit: 1Gi}}
containers:
- name: c
  command: [x]
  ports: [{name: web, containerPort: 80}]
  envFrom: [{prefix: P_, configMapRef: {name: settings}}]
  env: [{name: V, valueFrom: {resourceFieldRef: {containerName: c, resource: limits.cpu, divisor: 1m}}}]
  resources: {limits: {cpu: 2, nvidia.com/gpu: 1}, requests: {memory: 1Gi}}
  securityContext: {runAsUser: 5, capabilities: {add: [IPC_LOCK]}}
  startupProbe: {exec: {command: [test]}, periodSeconds: 3}
  readinessProbe: {httpGet: {path: /, port: web}}
  volumeMounts: [{name: c, mountPath: /c, subPathExpr: $(V)/x}, {name: e, mountPath: /e, readOnly: true}]
)";

// A value of a wrong kind anywhere in a pod is either refused or ignored.
TEST(PodPlan, ValuesOfOtherKindsDoNoHarm) {
  const Json others = {nullptr, 5, -1, 1.5, true, "..", "\x01", Json::array({5}), {{"a", 5}}};
  const FindObject find = [](std::string_view kind, std::string_view name) {
    const Json* token = FindToken(kind, name);
    return token == nullptr ? FindHere(kind, name) : token;
  };
  for (const Json& whole : {PlannedPod(), PodWith(kRich)}) {
    ASSERT_TRUE(ProgramOf(whole, PlaceWithoutRoots(), find).ok()) << whole;
    std::set<std::string> places;
    const Json flat = whole.flatten();
    for (const auto& [pointer, value] : flat.items()) {
      for (Json::json_pointer at(pointer); !at.empty(); at = at.parent_pointer()) places.insert(at.to_string());
    }
    for (const std::string& place : places) {
      for (const Json& other : others) {
        Json pod = whole;
        pod[Json::json_pointer(place)] = other;
        const auto program = ProgramOf(pod, PlaceWithoutRoots(), find);
        EXPECT_TRUE(program.ok() || absl::IsInvalidArgument(program.status()) || absl::IsNotFound(program.status()))
            << place << other;
      }
    }
  }
}

}  // namespace
}  // namespace muster::local
