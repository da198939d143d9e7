// SPDX-License-Identifier: Apache-2.0
// Muster's additions to the pods of a PyTorchJob: the agent, its budget, the init container that waits for the master.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/plan/agent.h"
#include "controller/plan/elastic.h"
#include "controller/plan/pod_fields.h"
#include "tests/controller/plan/pytorch_planned.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kMaster = ReplicaType::kMaster;
constexpr auto kWorker = ReplicaType::kWorker;

std::vector<std::string> InitNames(const Json& pod) {
  std::vector<std::string> names;
  for (const Json& container : At(pod, "/spec/initContainers")) names.push_back(TextField(container, "name"));
  return names;
}

std::vector<std::string> Kinds(const PyTorchPlan& plan) {
  std::vector<std::string> kinds;
  for (const PlannedObject& planned : plan.objects) kinds.push_back(TextField(planned.object, "kind"));
  return kinds;
}

TEST(PyTorchPods, WorkersWaitForTheMaster) {
  const PlannedPyTorch planned({.pod = "{initContainers: [{name: before, image: b}]}"});
  EXPECT_THAT(InitNames(planned.Pod(kMaster, 0)), ElementsAre("before"));
  const Json pod = planned.Pod(kWorker, 0);
  EXPECT_THAT(InitNames(pod), ElementsAre("before", "init-pytorch"));
  const Json wait = At(pod, "/spec/initContainers/1");
  EXPECT_EQ(wait["image"], "muster:1");
  EXPECT_EQ(wait["imagePullPolicy"], "IfNotPresent");
  EXPECT_EQ(wait["command"], YamlList("[muster, wait, --dns, --timeout, 200s, a-master-0]"));
  EXPECT_EQ(wait["resources"], YamlOf("{limits: {cpu: 100m, memory: 20Mi}, requests: {cpu: 50m, memory: 10Mi}}"));
  EXPECT_THAT(InitNames(PlannedPyTorch({.master = false}).Pod(kWorker, 0)), IsEmpty());
}

TEST(PyTorchPods, TheWaitsImageAndTriesAreOptions) {
  PyTorchOptions options = PyTorchTestOptions();
  options.wait_image = "mirror/muster:2";
  options.wait_tries = 7;
  const Json wait = At(PlannedPyTorch({}, options).Pod(kWorker, 0), "/spec/initContainers/0");
  EXPECT_EQ(wait["image"], "mirror/muster:2");
  EXPECT_EQ(At(wait, "/command/4"), "14s");
}

// The template file that training-operator ships.
constexpr char kTemplate[] =
    "- name: init-pytorch\n"
    "  image: {{.InitContainerImage}}\n"
    "  command: ['sh', '-c', 'err=1;for i in $(seq {{ .MaxTries }}); do if nslookup {{.MasterAddr}}; then err=0 && "
    "break; fi; done; exit $err']\n";

TEST(PyTorchPods, TheWaitsTemplateIsFilledIn) {
  PyTorchOptions options = PyTorchTestOptions();
  options.wait_image = "alpine:3.10";
  options.wait_template = kTemplate;
  const Json pod = PlannedPyTorch({.container = kTorchrun}, options).Pod(kWorker, 0);
  EXPECT_THAT(InitNames(pod), ElementsAre("muster-agent", "init-pytorch"));
  const Json wait = At(pod, "/spec/initContainers/1");
  EXPECT_EQ(wait["image"], "alpine:3.10");
  EXPECT_THAT(TextField(wait["command"], "x"), IsEmpty());
  EXPECT_THAT(At(wait, "/command/2").get<std::string>(),
              ::testing::AllOf(HasSubstr("seq 100)"), HasSubstr("nslookup a-master-0;")));
}

TEST(PyTorchPods, ATemplateThatIsNoListOfContainersIsRefused) {
  struct Row {
    const char *text, *says;
  };
  const Row rows[] = {
      {"- name: x\n  image: {{.Image}}\n", "{{.Image}} is not known; there are .MasterAddr"},
      {"- name: x\n  image: {{.MasterAddr\n", "{{.MasterAddr"},
      {"- image: x\n", "name"},
      {"name: x\n", "not a list of containers"},
      {"\n", "not a list of containers"},
      {"[]\n", "not a list of containers"},
      {"- [\n", ""},
      {"- 1\n", ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    PyTorchOptions options = PyTorchTestOptions();
    options.wait_template = row.text;
    const std::string why = PyTorchRefusal({}, options);
    EXPECT_THAT(why, HasSubstr("--pytorch-init-container-template-file"));
    EXPECT_THAT(why, HasSubstr(row.says));
    EXPECT_EQ(PyTorchRefusal({.workers = 0}, options), "") << "nobody waits";
  }
}

TEST(PyTorchPods, TheAgent) {
  struct Row {
    const char *what, *annotations, *container;
    bool with_agent, wanted;
    std::vector<std::string> notices;
  };
  const Row rows[] = {
      {"a command", "{}", kTorchrun, true, true, {}},
      {"on", "{muster.dev/agent: \"on\"}", kTorchrun, true, true, {}},
      {"off", "{muster.dev/agent: \"off\"}", kTorchrun, true, false, {}},
      {"pods without it run already", "{}", kTorchrun, false, false, {}},
      {"no command", "{}", "{}", true, false, {"AgentLeftOut", "AgentLeftOut"}},
      {"arguments alone", "{}", "{args: [train.py]}", true, false, {"AgentLeftOut", "AgentLeftOut"}},
      {"the agent already", "{}", "{command: [/opt/muster, run, train.py]}", true, true, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    PyTorchOptions options = PyTorchTestOptions();
    options.with_agent = row.with_agent;
    const PlannedPyTorch planned({.annotations = row.annotations, .container = row.container}, options);
    EXPECT_EQ(planned.plan.RestartsInPlace(), row.wanted);
    std::vector<std::string> reasons;
    for (const Notice& notice : planned.plan.notices) reasons.push_back(notice.reason);
    EXPECT_EQ(reasons, row.notices);
    EXPECT_EQ(Kinds(planned.plan).size(), row.wanted ? 1U : 0U) << "a token where agents meet";
  }
}

// With another command the agents do not meet, so none can restart the others' workers.
TEST(PyTorchPods, OnlyTorchrunRestartsInPlace) {
  struct Row {
    const char *command, *wanted;
    bool in_place;
  };
  const Row rows[] = {
      {"[torchrun, t.py]", "[exec, --, torchrun, t.py]", true},
      {"[python, -m, torch.distributed.run, t.py]", "[exec, --wire=torch, --, python, -m, torch.distributed.run, t.py]",
       true},
      {"[/opt/bin/torchrun, t.py]", "[exec, --wire=torch, --, /opt/bin/torchrun, t.py]", true},
      {"[bash, -c, torchrun t.py]", "[exec, --args-from-env, --, bash, -c, MUSTER_ARG_2]", true},
      {"[python, t.py]", "[exec, --, python, t.py]", false},
      {"[bash, run.sh]", "[exec, --, bash, run.sh]", false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.command);
    const PlannedPyTorch planned({.container = fmt::format("{{command: {}}}", row.command)});
    EXPECT_EQ(planned.plan.RestartsInPlace(), row.in_place);
    Json command = At(planned.Pod(kWorker, 1), "/spec/containers/0/command");
    command.erase(0);
    EXPECT_EQ(command, YamlList(row.wanted));
  }
}

TEST(PyTorchPods, TheAgentRunsTheCommand) {
  const PlannedPyTorch planned({.policy = "ExitCode", .container = kTorchrun});
  const Json pod = planned.Pod(kWorker, 1);
  EXPECT_THAT(InitNames(pod), ElementsAre("muster-agent", "init-pytorch"));
  const Json container = At(pod, "/spec/containers/0");
  EXPECT_EQ(container["command"], YamlList("[/muster-agent/muster, exec, --, torchrun, train.py]"));
  EXPECT_EQ(EnvOf(container, "MUSTER_RESTART_POLICY"), "exit-code");
  EXPECT_EQ(EnvOf(container, "PET_MAX_RESTARTS"), "-") << "the policy of v1 counts pods";
  EXPECT_EQ(At(container, "/readinessProbe"), Json()) << "a pod that runs is ready, as in v1";
  for (const char* policy : {"OnFailure", "Always", "Never"}) {
    const PlannedPyTorch other({.policy = policy, .container = kTorchrun});
    EXPECT_EQ(EnvOf(At(other.Pod(kMaster, 0), "/spec/containers/0"), "MUSTER_RESTART_POLICY"), "on-failure");
  }
}

TEST(PyTorchPods, StandbyWorkersAreAskedForByAnAnnotation) {
  struct Row {
    const char *what, *annotations, *container, *value;
  };
  const Row rows[] = {
      {"nobody asks", "{}", kTorchrun, "-"},
      {"auto", "{muster.dev/standby-workers: auto}", kTorchrun, "auto"},
      {"off", "{muster.dev/standby-workers: \"off\"}", kTorchrun, "off"},
      {"a variable of the container", "{muster.dev/standby-workers: auto}",
       "{command: [torchrun], env: [{name: MUSTER_STANDBY_WORKERS, value: mine}]}", "mine"},
      {"no agent", "{muster.dev/standby-workers: auto, muster.dev/agent: \"off\"}", kTorchrun, "-"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const PlannedPyTorch planned({.annotations = row.annotations, .container = row.container});
    for (const ReplicaType type : {kMaster, kWorker}) {
      EXPECT_EQ(EnvOf(At(planned.Pod(type, 0), "/spec/containers/0"), "MUSTER_STANDBY_WORKERS"), row.value);
    }
  }
}

TEST(PyTorchPods, ATokenWhereSeveralAgentsMeet) {
  const PyTorchParts alone{.workers = 0, .container = kTorchrun};
  const PyTorchParts elastic{.master = false, .workers = 1, .spec = "{elasticPolicy: {}}", .container = kTorchrun};
  const PyTorchParts own{.container = "{command: [torchrun], env: [{name: MUSTER_TOKEN_FILE, value: /mine}]}"};
  EXPECT_THAT(Kinds(PlannedPyTorch(alone).plan), IsEmpty());
  EXPECT_THAT(Kinds(PlannedPyTorch(elastic).plan), ElementsAre("Secret"));
  EXPECT_THAT(Kinds(PlannedPyTorch(own).plan), IsEmpty());
  const PlannedPyTorch planned({.container = kTorchrun});
  ASSERT_THAT(Kinds(planned.plan), ElementsAre("Secret"));
  EXPECT_EQ(planned.plan.objects[0].fill, PlannedObject::Fill::kToken);
  EXPECT_EQ(At(planned.plan.objects[0].object, "/metadata/ownerReferences/0/uid"), "uid-a");
  EXPECT_EQ(EnvOf(At(planned.Pod(kWorker, 0), "/spec/containers/0"), "MUSTER_TOKEN_FILE"), "/muster-token/token");
}

TEST(PyTorchPods, ElasticPodsHearHowManyTheyAreMeantToBe) {
  const PyTorchParts elastic{.master = false, .spec = "{elasticPolicy: {maxReplicas: 4}}", .container = kTorchrun};
  const Json pod = PlannedPyTorch(elastic).Pod(kWorker, 0);
  EXPECT_EQ(At(pod, "/metadata/annotations/muster.dev~1nodes"), "2");
  EXPECT_EQ(EnvOf(At(pod, "/spec/containers/0"), "MUSTER_NODES_FILE"), "/muster-nodes/nodes");
  EXPECT_TRUE(At(PlannedPyTorch({.container = kTorchrun}).Pod(kWorker, 0), "/metadata/annotations/muster.dev~1nodes")
                  .is_null());
}

TEST(PyTorchPods, AWholeJobsBudget) {
  const std::string whole = "{muster.dev/restart: job}";
  struct Row {
    const char* what;
    PyTorchParts parts;
    std::optional<int> budget;
  };
  const Row rows[] = {
      {"none", {.annotations = whole}, std::nullopt},
      {"backoffLimit", {.run = "{backoffLimit: 3}", .annotations = whole}, 3},
      {"maxRestarts of an elastic job",
       {.master = false, .spec = "{elasticPolicy: {maxRestarts: 5}}", .annotations = whole},
       5},
      {"backoffLimit first",
       {.master = false, .run = "{backoffLimit: 3}", .spec = "{elasticPolicy: {maxRestarts: 5}}", .annotations = whole},
       3},
      {"maxRestarts is the pods' own where pods restart",
       {.master = false, .spec = "{elasticPolicy: {maxRestarts: 5}}"},
       std::nullopt},
  };
  for (const Row& row : rows) EXPECT_EQ(PlannedPyTorch(row.parts).plan.budget, row.budget) << row.what;
}

TEST(PyTorchPods, AWholeJobsPodsKnowTheirAttemptAndWhatIsLeft) {
  const PlannedPyTorch whole(
      {.run = "{backoffLimit: 3}", .annotations = "{muster.dev/restart: job}", .container = kTorchrun});
  EXPECT_EQ(whole.plan.restart, RestartScope::kJob);
  const Json pod = whole.Pod(kWorker, 0, {.attempt = 2, .restarts_left = 1});
  EXPECT_EQ(At(pod, "/metadata/annotations"), YamlOf("{muster.dev/attempt: \"2\", muster.dev/restarts-left: \"1\"}"));
  EXPECT_EQ(EnvOf(At(pod, "/spec/containers/0"), "PET_MAX_RESTARTS"), "1");
  const PlannedPyTorch never({.policy = "Never", .annotations = "{muster.dev/restart: job}", .container = kTorchrun});
  EXPECT_EQ(EnvOf(At(never.Pod(kWorker, 0, {.restarts_left = 9}), "/spec/containers/0"), "PET_MAX_RESTARTS"), "0");
  const PlannedPyTorch plain({.run = "{backoffLimit: 3}", .annotations = "{muster.dev/restart: job}"});
  EXPECT_EQ(EnvOf(At(plain.Pod(kWorker, 0, {.restarts_left = 1}), "/spec/containers/0"), "PET_MAX_RESTARTS"), "-")
      << "without the agent a torchrun's own restarts stay its own";
}

TEST(PyTorchPods, AnnotationsAndTheDefaultScope) {
  PyTorchOptions options = PyTorchTestOptions();
  EXPECT_EQ(PlannedPyTorch({}, options).plan.restart, RestartScope::kPod);
  options.restart = RestartScope::kJob;
  EXPECT_EQ(PlannedPyTorch({}, options).plan.restart, RestartScope::kJob);
  EXPECT_EQ(PlannedPyTorch({.annotations = "{muster.dev/restart: pod}"}, options).plan.restart, RestartScope::kPod);
  EXPECT_THAT(PyTorchRefusal({.annotations = "{muster.dev/restart: round}"}),
              HasSubstr("metadata.annotations.muster.dev/restart: 'round' is neither pod nor job"));
  EXPECT_THAT(PyTorchRefusal({.annotations = "{muster.dev/agent: \"true\"}"}),
              HasSubstr("metadata.annotations.muster.dev/agent: 'true' is neither on nor off"));
  EXPECT_THAT(PyTorchRefusal({.annotations = "{muster.dev/standby-workers: always}"}),
              HasSubstr("metadata.annotations.muster.dev/standby-workers: 'always' is neither auto nor off"));
}

TEST(PyTorchPods, WhatTheAgentNeedsItselfIsRefusedWithTheRemedy) {
  EXPECT_THAT(PyTorchRefusal({.container = kTorchrun, .pod = "{volumes: [{name: muster-agent, emptyDir: {}}]}"}),
              ::testing::AllOf(HasSubstr("spec.pytorchReplicaSpecs.Master"), HasSubstr("muster.dev/agent: \"off\"")));
}

}  // namespace
}  // namespace muster::controller
