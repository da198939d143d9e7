// SPDX-License-Identifier: Apache-2.0
// The agent in the trainer's pods, and pods without it.
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

constexpr char kCommand[] = "{command: [torchrun, train.py], args: [--epochs=4]}";

std::vector<std::string> Reasons(const TrainJobPlan& plan) {
  std::vector<std::string> reasons;
  for (const Notice& notice : plan.notices) reasons.push_back(notice.reason);
  return reasons;
}

TEST(Agent, RunsTheCommand) {
  const TrainJobPlan plan =
      PlanOf(JobWith(), TrainerRuntime({.container = kCommand}), {.agent_image = "registry/muster:3"});
  const PlannedJob& job = plan.jobs[0];
  EXPECT_TRUE(job.agent);
  EXPECT_TRUE(job.budget_in_job);
  EXPECT_EQ(plan.max_restarts, kDefaultMaxRestarts);
  EXPECT_TRUE(plan.agents_only);
  EXPECT_TRUE(plan.notices.empty());
  const Json container = ContainerOf(job);
  EXPECT_EQ(At(container, "/command"), YamlOf("{c: [/muster-agent/muster, exec, --, torchrun, train.py]}")["c"]);
  EXPECT_EQ(At(container, "/args"), YamlOf("{a: [--epochs=4]}")["a"]);
  EXPECT_EQ(EnvOf(container, "PET_MAX_RESTARTS"), "6");
  EXPECT_EQ(EnvOf(container, "MUSTER_RESTART_POLICY"), "exit-code");
  EXPECT_EQ(EnvOf(container, "MUSTER_SHUTDOWN_TIMEOUT"), "-");
  EXPECT_EQ(At(container, "/readinessProbe"), YamlOf("{httpGet: {path: /readyz, port: 29480}, periodSeconds: 5}"));
  EXPECT_EQ(At(container, "/volumeMounts/0"), YamlOf("{name: muster-agent, mountPath: /muster-agent, readOnly: true}"));
  const Json pod = At(job.Object(), "/spec/template/spec");
  EXPECT_EQ(At(pod, "/volumes"), YamlOf("{v: [{name: muster-agent, emptyDir: {}}]}")["v"]);
  EXPECT_EQ(At(pod, "/initContainers/0"), YamlOf(R"(
name: muster-agent
image: registry/muster:3
imagePullPolicy: IfNotPresent
command: [muster, install, /muster-agent]
securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, readOnlyRootFilesystem: true}
volumeMounts: [{name: muster-agent, mountPath: /muster-agent}]
)"));
  EXPECT_EQ(At(pod, "/restartPolicy"), "Never");
}

TEST(Agent, WordsThatAShellWouldChangeGoIntoVariables) {
  const TrainJobPlan plan = PlanOf(JobWith(R"({trainer: {command: [bash, -c, "cd $HOME && echo $(A) $$"],
      args: ["", --x, MUSTER_ARG_9]}})"),
                                   TrainerRuntime());
  const Json container = ContainerOf(plan.jobs[0]);
  EXPECT_EQ(At(container, "/command"),
            YamlOf("{c: [/muster-agent/muster, exec, --args-from-env, --, bash, -c, MUSTER_ARG_2]}")["c"]);
  EXPECT_EQ(At(container, "/args"), YamlOf("{a: [MUSTER_ARG_3, --x, MUSTER_ARG_5]}")["a"]);
  EXPECT_EQ(EnvOf(container, "MUSTER_ARG_2"), "cd $HOME && echo $$(A) $$$");
  EXPECT_EQ(EnvOf(container, "MUSTER_ARG_3"), "");
  EXPECT_EQ(EnvOf(container, "MUSTER_ARG_4"), "-");
  EXPECT_EQ(EnvOf(container, "MUSTER_ARG_5"), "MUSTER_ARG_9");
}

TEST(Agent, TheJobFailsAtAFatalCode) {
  const TrainJobPlan plan = PlanOf(JobWith(), TrainerRuntime({.container = kCommand}));
  const Json rules = At(plan.jobs[0].Object(), "/spec/podFailurePolicy/rules");
  ASSERT_EQ(rules.size(), 2);
  const Json codes = At(rules, "/0/onExitCodes/values");
  ASSERT_EQ(codes.size(), 127);
  EXPECT_EQ(codes[0], 1);
  EXPECT_EQ(codes[126], 127);
  EXPECT_EQ(At(rules, "/0/action"), "FailJob");
  EXPECT_EQ(At(rules, "/0/onExitCodes/operator"), "In");
  EXPECT_EQ(At(rules, "/0/onExitCodes/containerName"), "node");
  EXPECT_EQ(rules[1], YamlOf("{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: \"True\"}]}"));
  EXPECT_EQ(At(plan.jobs[0].Object(), "/spec/backoffLimit"), 6);
}

TEST(Agent, IsLeftOutWhereAskedOrWithoutACommand) {
  struct Row {
    std::string name, annotations, runtime_annotations, container;
    std::vector<std::string> reasons;
  };
  for (const Row& row : std::vector<Row>{
           {"off on the job", "{muster.dev/agent: \"off\"}", "{}", kCommand, {}},
           {"off on the runtime", "{}", "{muster.dev/agent: \"off\"}", kCommand, {}},
           {"no command", "{}", "{}", "{}", {"AgentLeftOut"}},
           {"an empty command", "{}", "{}", "{command: []}", {"AgentLeftOut"}},
           {"arguments alone", "{}", "{}", "{args: [train.py]}", {"AgentLeftOut"}},
       }) {
    SCOPED_TRACE(row.name);
    const TrainJobPlan plan =
        PlanOf(JobWith("{}", row.annotations),
               TrainerRuntime({.container = row.container, .annotations = row.runtime_annotations}));
    const PlannedJob& job = plan.jobs[0];
    EXPECT_FALSE(job.agent);
    EXPECT_FALSE(job.budget_in_job);
    EXPECT_EQ(plan.max_restarts, 0);
    EXPECT_EQ(Reasons(plan), row.reasons);
    EXPECT_EQ(At(job.Object(), "/spec/template/spec/restartPolicy"), "OnFailure");
    for (const char* absent : {"/spec/backoffLimit", "/spec/podFailurePolicy", "/spec/template/spec/initContainers",
                               "/spec/template/spec/volumes", "/spec/template/spec/containers/0/readinessProbe"}) {
      EXPECT_TRUE(At(job.Object(), absent).is_null()) << absent;
    }
    EXPECT_EQ(EnvOf(ContainerOf(job), "PET_MAX_RESTARTS"), "-");
    EXPECT_EQ(At(ContainerOf(job), "/command"), At(YamlOf(row.container), "/command"));
  }
  EXPECT_TRUE(PlanOf(JobWith("{}", "{muster.dev/agent: \"on\"}"),
                     TrainerRuntime({.container = kCommand, .annotations = "{muster.dev/agent: \"off\"}"}))
                  .jobs[0]
                  .agent);
  EXPECT_THAT(Refusal(JobWith("{}", "{muster.dev/agent: maybe}"), TrainerRuntime()),
              HasSubstr("metadata.annotations.muster.dev/agent: 'maybe' is neither on nor off"));
}

TEST(Agent, TheRuntimesOwnWordsStay) {
  struct Row {
    std::string name;
    RuntimeParts parts;
    std::vector<std::string> reasons;
    std::string restart_policy;
    Json backoff;
    size_t rules;
    bool budget_in_job;
  };
  for (const Row& row : std::vector<Row>{
           {"OnFailure", {.pod = "{restartPolicy: OnFailure}"}, {"RestartPolicyKept"}, "OnFailure", Json(), 0, false},
           {"Never", {.pod = "{restartPolicy: Never}"}, {}, "Never", 6, 2, true},
           {"backoffLimit", {.job = "{backoffLimit: 2}"}, {"BackoffLimitKept"}, "Never", 2, 2, false},
           {"per index", {.job = "{backoffLimitPerIndex: 2}"}, {}, "Never", Json(), 2, false},
           {"podFailurePolicy",
            {.job = "{podFailurePolicy: {rules: [{action: Ignore}]}}"},
            {"PodFailurePolicyKept"},
            "Never",
            6,
            1,
            true},
       }) {
    SCOPED_TRACE(row.name);
    RuntimeParts parts = row.parts;
    parts.container = kCommand;
    const TrainJobPlan plan = PlanOf(JobWith(), TrainerRuntime(parts));
    const Json& object = plan.jobs[0].Object();
    EXPECT_TRUE(plan.jobs[0].agent);
    EXPECT_EQ(plan.jobs[0].budget_in_job, row.budget_in_job);
    EXPECT_EQ(Reasons(plan), row.reasons);
    EXPECT_EQ(At(object, "/spec/template/spec/restartPolicy"), row.restart_policy);
    EXPECT_EQ(At(object, "/spec/backoffLimit"), row.backoff);
    EXPECT_EQ(At(object, "/spec/podFailurePolicy/rules").size(), row.rules);
  }
}

TEST(Agent, TheBudgetIsTheOneThatIsSetClosest) {
  struct Row {
    std::string name;
    RuntimeParts parts;
    int budget;
    std::string variable;
  };
  for (const Row& row : std::vector<Row>{
           {"nobody says", {}, 6, "6"},
           {"failurePolicy", {.set = "{failurePolicy: {maxRestarts: 3}}"}, 3, "3"},
           {"failurePolicy without a number", {.set = "{failurePolicy: {}}"}, 0, "0"},
           {"elasticPolicy",
            {.policy = "{torch: {elasticPolicy: {maxRestarts: 9}}}", .set = "{failurePolicy: {maxRestarts: 3}}"},
            9,
            "9"},
           {"the container",
            {.policy = "{torch: {elasticPolicy: {maxRestarts: 9}}}",
            .container = "{command: [x], env: [{name: PET_MAX_RESTARTS, value: \"1\"}]}"},
            1,
            "1"},
           {"off, elasticPolicy",
            {.policy = "{torch: {elasticPolicy: {maxRestarts: 9}}}", .annotations = "{muster.dev/agent: \"off\"}"},
            9,
            "9"},
           {"off, failurePolicy",
            {.set = "{failurePolicy: {maxRestarts: 3}}", .annotations = "{muster.dev/agent: \"off\"}"},
            3,
            "-"},
       }) {
    SCOPED_TRACE(row.name);
    RuntimeParts parts = row.parts;
    if (parts.container == "{}") parts.container = kCommand;
    const TrainJobPlan plan = PlanOf(JobWith(), TrainerRuntime(parts));
    EXPECT_EQ(plan.max_restarts, row.budget);
    EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), "PET_MAX_RESTARTS"), row.variable);
  }
  EXPECT_THAT(Refusal(JobWith("{trainer: {env: [{name: PET_MAX_RESTARTS, value: few}]}}"), TrainerRuntime()),
              HasSubstr("env PET_MAX_RESTARTS: 'few' is not a whole number"));
}

TEST(Agent, AnAttemptHasWhatIsLeft) {
  const TrainJobPlan plan = PlanOf(JobWith(), TrainerRuntime({.container = kCommand}));
  const Json object = JobOfAttempt(plan.jobs[0], {.number = 2, .restarts_left = 4, .suspend = true});
  EXPECT_EQ(EnvOf(At(object, "/spec/template/spec/containers/0"), "PET_MAX_RESTARTS"), "4");
  EXPECT_EQ(At(object, "/spec/backoffLimit"), 4);
  EXPECT_EQ(At(object, "/spec/suspend"), true);
  for (const char* field : {"labels", "annotations"}) {
    EXPECT_EQ(object["metadata"][field]["jobset.sigs.k8s.io/restart-attempt"], "2");
    EXPECT_EQ(object["spec"]["template"]["metadata"][field]["jobset.sigs.k8s.io/restart-attempt"], "2");
  }
  EXPECT_EQ(JobOfAttempt(plan.jobs[0], {.restarts_left = plan.max_restarts}), plan.jobs[0].Object());
  EXPECT_EQ(At(JobOfAttempt(plan.jobs[0], {}), "/spec/suspend"), Json());
}

TEST(Agent, AVariableFromElsewhereStays) {
  const TrainJobPlan plan = PlanOf(JobWith(), TrainerRuntime({.container = R"({command: [x],
      env: [{name: PET_MAX_RESTARTS, valueFrom: {configMapKeyRef: {name: c, key: k}}}]})"}));
  EXPECT_EQ(plan.max_restarts, 6);
  const Json object = JobOfAttempt(plan.jobs[0], {.restarts_left = 4});
  EXPECT_THAT(EnvOf(At(object, "/spec/template/spec/containers/0"), "PET_MAX_RESTARTS"), HasSubstr("configMapKeyRef"));
}

TEST(Agent, FitsTheProbeAndSecurityContextOfThePod) {
  struct Row {
    std::string name;
    RuntimeParts parts;
    std::string pointer;  // JSON pointer in the PodSpec
    Json wanted;
  };
  const std::string probe = "/containers/0/readinessProbe", port = probe + "/httpGet/port";
  const std::string security = "/initContainers/0/securityContext";
  for (const Row& row : std::vector<Row>{
           {"a probe of its own",
            {.container = "{command: [x], readinessProbe: {exec: {command: [y]}}}"},
            probe,
            YamlOf("{exec: {command: [y]}}")},
           {"hidden until ready", {.set = "{network: {publishNotReadyAddresses: false}}"}, probe, Json()},
           {"the node's network", {.pod = "{hostNetwork: true}"}, probe, Json()},
           {"the port closed",
            {.container = "{command: [x], env: [{name: MUSTER_HTTP_PORT, value: \"off\"}]}"},
            probe,
            Json()},
           {"another port",
            {.container = "{command: [x], env: [{name: MUSTER_HTTP_PORT, value: \"8000\"}]}"},
            port,
            8000},
           {"on one address",
            {.container = "{command: [x], env: [{name: MUSTER_HTTP_PORT, value: \"127.0.0.1:80\"}]}"},
            probe,
            Json()},
           {"the user",
            {.container = "{command: [x], securityContext: {runAsUser: 1000}}"},
            security + "/runAsUser",
            1000},
           {"not root", {.pod = "{securityContext: {runAsNonRoot: true}}"}, security + "/runAsUser", Json()},
           {"not root, a user",
            {.pod = "{securityContext: {runAsNonRoot: true, runAsUser: 7}}"},
            security + "/runAsUser",
            Json()},
           {"the resources",
            {.container =
                 "{command: [x], resources: {requests: {cpu: 2}, limits: {cpu: 2, memory: 1Gi, nvidia.com/gpu: 1}}}"},
            "/initContainers/0/resources",
            YamlOf("{requests: {cpu: 2}, limits: {cpu: 2, memory: 1Gi}}")},
           {"first of all", {.pod = "{initContainers: [{name: a, image: i}]}"}, "/initContainers/1/name", "a"},
       }) {
    SCOPED_TRACE(row.name);
    RuntimeParts parts = row.parts;
    if (parts.container == "{}") parts.container = kCommand;
    const TrainJobPlan plan = PlanOf(JobWith(), TrainerRuntime(parts));
    EXPECT_EQ(At(At(plan.jobs[0].Object(), "/spec/template/spec"), row.pointer), row.wanted);
  }
}

TEST(Agent, KnowsGraceAndMessage) {
  struct Row {
    std::string pod, container, name, value;
  };
  for (const Row& row : std::vector<Row>{
           {"{terminationGracePeriodSeconds: 600}", "{command: [x]}", "MUSTER_SHUTDOWN_TIMEOUT", "595"},
           {"{terminationGracePeriodSeconds: 3}", "{command: [x]}", "MUSTER_SHUTDOWN_TIMEOUT", "1"},
           {"{terminationGracePeriodSeconds: 30}", "{command: [x]}", "MUSTER_SHUTDOWN_TIMEOUT", "-"},
           {"{terminationGracePeriodSeconds: 600}",
            "{command: [x], env: [{name: MUSTER_SHUTDOWN_TIMEOUT, value: \"9\"}]}", "MUSTER_SHUTDOWN_TIMEOUT", "9"},
           {"{}", "{command: [x], terminationMessagePath: /tmp/end}", "MUSTER_TERMINATION_LOG", "/tmp/end"},
           {"{}", "{command: [x], terminationMessagePath: /dev/termination-log}", "MUSTER_TERMINATION_LOG", "-"},
           {"{}", "{command: [x], env: [{name: MUSTER_RESTART_POLICY, value: never}]}", "MUSTER_RESTART_POLICY",
            "never"},
       }) {
    SCOPED_TRACE(row.pod + row.container);
    const TrainJobPlan plan = PlanOf(JobWith(), TrainerRuntime({.pod = row.pod, .container = row.container}));
    EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), row.name), row.value);
  }
}

TEST(Agent, ItsStandbyWorkersAreAskedForByAnAnnotation) {
  const std::string own = "muster.dev/standby-workers", automatic = "{" + own + ": auto}", off = "{" + own + ": 'off'}";
  const std::string by_user = "{command: [torchrun], env: [{name: MUSTER_STANDBY_WORKERS, value: mine}]}";
  const std::string by_name = "{trainer: {env: [{name: MUSTER_STANDBY_WORKERS, value: mine}]}}";
  struct Row {
    std::string name, of_job, of_runtime, spec, policy, container, value;
  };
  for (const Row& row : std::vector<Row>{
           {"nobody asks", "{}", "{}", "{}", "{torch: {}}", kCommand, "-"},
           {"the job", automatic, "{}", "{}", "{torch: {}}", kCommand, "auto"},
           {"the runtime", "{}", automatic, "{}", "{torch: {}}", kCommand, "auto"},
           {"the job wins", off, automatic, "{}", "{torch: {}}", kCommand, "off"},
           {"the job wins over off", automatic, off, "{}", "{torch: {}}", kCommand, "auto"},
           {"the runtime's container has the variable", automatic, "{}", "{}", "{torch: {}}", by_user, "mine"},
           {"the job has the variable", "{}", automatic, by_name, "{torch: {}}", kCommand, "mine"},
           {"a script may start torchrun", automatic, "{}", "{}", "{numNodes: 1}", "{command: [./a.sh]}", "auto"},
           {"no torchrun", automatic, "{}", "{}", "{jax: {}}", "{command: [python3, a.py]}", "-"},
           {"no command", automatic, "{}", "{}", "{torch: {}}", "{}", "-"},
           {"no agent", automatic, "{muster.dev/agent: 'off'}", "{}", "{torch: {}}", kCommand, "-"},
       }) {
    SCOPED_TRACE(row.name);
    const TrainJobPlan plan =
        PlanOf(JobWith(row.spec, row.of_job),
               TrainerRuntime({.policy = row.policy, .container = row.container, .annotations = row.of_runtime}));
    EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), "MUSTER_STANDBY_WORKERS"), row.value);
  }
  const std::string wrong = "{" + own + ": always}",
                    why = "metadata.annotations." + own + ": 'always' is neither auto nor off";
  EXPECT_EQ(Refusal(JobWith("{}", wrong), TrainerRuntime()), why);
  EXPECT_EQ(Refusal(JobWith(), TrainerRuntime({.annotations = wrong})), "runtime 'runtime': " + why);
}

TEST(Agent, ACommandThatIsTheAgentStays) {
  const TrainJobPlan plan = PlanOf(JobWith(), TrainerRuntime({.container = "{command: [/opt/muster, exec, --, x]}"}));
  EXPECT_TRUE(plan.jobs[0].agent);
  EXPECT_EQ(At(ContainerOf(plan.jobs[0]), "/command/0"), "/opt/muster");
  EXPECT_TRUE(At(plan.jobs[0].Object(), "/spec/template/spec/initContainers").is_null());
  EXPECT_EQ(At(plan.jobs[0].Object(), "/spec/backoffLimit"), 6);
}

TEST(Agent, RefusesPodsThatUseItsNames) {
  for (const auto& [pod, container] : std::vector<std::pair<std::string, std::string>>{
           {"{volumes: [{name: muster-agent, emptyDir: {}}]}", "{command: [x]}"},
           {"{initContainers: [{name: muster-agent, image: i}]}", "{command: [x]}"},
           {"{containers: [{name: muster-agent, image: i}]}", "{command: [x]}"},
           {"{volumes: [{name: v, emptyDir: {}}]}",
            "{command: [x], volumeMounts: [{name: v, mountPath: /muster-agent}]}"},
           {"{}", "{command: [x], env: [{name: MUSTER_ARG_7, value: x}]}"}}) {
    EXPECT_THAT(Refusal(JobWith(), TrainerRuntime({.pod = pod, .container = container})),
                HasSubstr("which the agent needs itself; give it another name, or annotate muster.dev/agent: \"off\""))
        << pod;
  }
}

TEST(Agent, RunsAPlainCommandWithTheDefaultBudget) {
  const TrainJobPlan plan =
      PlanOf(JobWith("{trainer: {command: [solve]}}"), TrainerRuntime({.policy = "{numNodes: 1}"}));
  EXPECT_TRUE(plan.jobs[0].agent);
  EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), "PET_MAX_RESTARTS"), "6");
  EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), "PET_NNODES"), "-");
}

}  // namespace
}  // namespace muster::controller
