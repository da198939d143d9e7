// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/agent.h"

#include <algorithm>

#include "base/args_from_env.h"
#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/reasons.h"
#include "controller/plan/choice.h"
#include "controller/plan/pod_fields.h"
#include "controller/plan/restart_policy.h"
#include "controller/plan/torchrun_command.h"

namespace muster::controller {
namespace {

constexpr char kFolder[] = "/muster-agent";
constexpr int kUsualGrace = 30;    // Kubernetes' default terminationGracePeriodSeconds; the agent assumes it
constexpr int kRoomForTheEnd = 5;  // seconds by which the agent's grace is shorter than the kubelet's
constexpr int kProbePeriod = 5;

void Note(std::string_view reason, std::string message, std::vector<Notice>* notices) {
  notices->push_back({std::string(reason), std::move(message)});
}

// The trainer's CPU and memory, so that the pod's quality-of-service class, request and quota stay the same.
Json InstallerResources(const Json& container) {
  Json resources = Json::object();
  for (const char* kind : {"requests", "limits"}) {
    for (const char* name : {"cpu", "memory"}) {
      const Json& quantity = PartOf(container, "resources", kind, name);
      if (!quantity.is_null()) resources[kind][name] = quantity;
    }
  }
  return resources;
}

Status CheckRoomForAgent(const AgentPlace& place) {
  const Json &pod = *place.pod, &container = *place.container;
  std::string taken;
  for (const char* list : {"volumes", "initContainers", "containers"}) {
    if (FindNamed(pod, list, kAgentContainer) != nullptr) taken = fmt::format("{}[{}]", list, kAgentContainer);
  }
  for (const Json& mount : ListField(container, "volumeMounts")) {
    if (TextField(mount, "mountPath") == kFolder) taken = fmt::format("a mount at {}", kFolder);
  }
  for (const Json& variable : ListField(container, "env")) {
    if (const std::string name = TextField(variable, "name"); IsArgVariable(name)) taken = fmt::format("env {}", name);
  }
  if (taken.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: its pod has {}, which the agent needs itself; give it another name, or annotate {}: \"off\"",
                  place.name, taken, kAgentAnnotation));
}

void Install(const PlanOptions& options, Json* pod, Json* container) {
  Json installer = {{"name", kAgentContainer},
                    {"image", options.agent_image},
                    {"imagePullPolicy", "IfNotPresent"},  // also for the tag `latest`: not every pod pulls
                    {"command", Json::array({"muster", "install", kFolder})},
                    {"securityContext", HelperSecurity(*container)},
                    {"volumeMounts", Json::array({{{"name", kAgentContainer}, {"mountPath", kFolder}}})}};
  if (Json resources = InstallerResources(*container); !resources.empty()) {
    installer["resources"] = std::move(resources);
  }
  UpsertNamed(installer, "initContainers", pod, true);
  MountVolume(kAgentContainer, {{"emptyDir", Json::object()}}, kFolder, MountMode::kReadOnly, pod, container);
}

// Moves each word of command and args that a shell would change into a variable. False: there is none.
bool MoveArgsToEnv(Json* container) {
  Json variables = Json::array();
  size_t index = 0;
  for (const char* field : {"command", "args"}) {
    if (FindField(*container, field) == nullptr) continue;
    for (Json& word : (*container)[field]) {
      const auto& text = word.get_ref<const std::string&>();
      const std::string variable = ArgVariable(index++);
      if (IsPlainWord(text) && !IsArgVariable(text)) continue;
      variables.push_back(EnvValue(variable, EscapeReferences(text)));
      word = variable;
    }
  }
  UpsertEnvLast(variables, container);
  return !variables.empty();
}

void Wrap(bool replaces, const std::vector<std::string>& flags, Json* container) {
  Json command = Json::array({fmt::format("{}/muster", kFolder), "exec"});
  for (const std::string& flag : flags) command.push_back(flag);
  if (replaces) {
    container->erase("args");
  } else {
    if (MoveArgsToEnv(container)) command.push_back(kArgsFromEnvFlag);
    command.push_back("--");
    command.insert(command.end(), (*container)["command"].begin(), (*container)["command"].end());
  }
  (*container)["command"] = std::move(command);
}

void AddVariables(const Json& pod, const AgentUse& use, Json* container) {
  Json wanted = Json::array();
  if (!use.job.empty()) wanted.push_back(EnvValue("MUSTER_JOB", use.job));
  if (!use.replaces) {
    if (use.max_restarts) wanted.push_back(EnvValue(kMaxRestartsVariable, fmt::format("{}", *use.max_restarts)));
    wanted.push_back(EnvValue("MUSTER_RESTART_POLICY", RestartPolicyName(use.policy)));
    if (use.no_progress_limit > 0) {
      wanted.push_back(EnvValue("MUSTER_NO_PROGRESS_LIMIT", fmt::format("{}", use.no_progress_limit)));
    }
    if (!use.standby.empty()) wanted.push_back(EnvValue("MUSTER_STANDBY_WORKERS", use.standby));
  }
  const Json* grace = FindField(pod, "terminationGracePeriodSeconds");
  if (grace != nullptr && grace->is_number_integer() && *grace != kUsualGrace && *grace > 0) {
    const int64_t seconds = std::max<int64_t>(1, grace->get<int64_t>() - kRoomForTheEnd);
    wanted.push_back(EnvValue("MUSTER_SHUTDOWN_TIMEOUT", fmt::format("{}", seconds)));
  }
  const std::string message_path = TextField(*container, "terminationMessagePath");
  if (!message_path.empty() && message_path != "/dev/termination-log") {
    wanted.push_back(EnvValue("MUSTER_TERMINATION_LOG", message_path));
  }
  AddMissingEnv(wanted, container);
}

void AddProbe(const Json& pod, Json* container) {
  if (FindField(*container, "readinessProbe") != nullptr) return;
  const auto port = AgentPort(pod, *container);
  if (!port) return;
  (*container)["readinessProbe"] = {{"httpGet", {{"path", "/readyz"}, {"port", *port}}},
                                    {"periodSeconds", kProbePeriod}};
}

// True: the Job's backoffLimit is the budget.
bool SetFailurePolicy(const Runtime& runtime, int max_restarts, RestartPolicy policy, ReplicatedJob* of,
                      std::vector<Notice>* notices) {
  if (policy == RestartPolicy::kNever) return false;  // ApplyRestartPolicy sets all fields
  Json& spec = of->job_template["spec"];
  Json& pod = PodSpec(of->job_template);
  const std::string where = fmt::format("job '{}' of runtime '{}'", of->name, runtime.meta.name);
  const std::string restart_policy = TextField(pod, "restartPolicy");
  if (!restart_policy.empty() && restart_policy != "Never") {
    if (policy != RestartPolicy::kExitCode) return false;
    Note(reason::kRestartPolicyKept,
         fmt::format("{} has restartPolicy {}: the kubelet restarts its containers after every exit code; leave "
                     "restartPolicy out, and the exit codes 1-127 fail the job",
                     where, restart_policy),
         notices);
    return false;
  }
  pod["restartPolicy"] = "Never";
  if (FindField(spec, "podFailurePolicy") == nullptr) {
    spec["podFailurePolicy"] = PodFailurePolicyOf(policy, kTrainerContainer);
  } else {
    Note(reason::kPodFailurePolicyKept,
         fmt::format("{} has a podFailurePolicy of its own, which stays: it decides at which exit codes the Job fails",
                     where),
         notices);
  }
  if (FindField(spec, "backoffLimitPerIndex") != nullptr) return false;
  if (const Json* limit = FindField(spec, "backoffLimit")) {
    Note(reason::kBackoffLimitKept,
         fmt::format("{} has backoffLimit {}, which stays: Kubernetes replaces as many failed pods, even if fewer are "
                     "left of the job's {}",
                     where, WriteJson(*limit), Counted(max_restarts, "restart")),
         notices);
    return false;
  }
  spec["backoffLimit"] = max_restarts;
  return true;
}

}  // namespace

Json HelperSecurity(const Json& container) {
  Json security = {{"allowPrivilegeEscalation", false},
                   {"capabilities", {{"drop", Json::array({"ALL"})}}},
                   {"readOnlyRootFilesystem", true}};
  const Json& own = PartOf(container, "securityContext");
  for (const char* name : {"runAsUser", "runAsGroup", "runAsNonRoot", "seccompProfile", "seLinuxOptions"}) {
    if (const Json* found = FindField(own, name)) security[name] = *found;
  }
  return security;
}

StatusOr<bool> WantsAgent(const TrainJob& job, const Runtime& runtime) {
  MUSTER_ASSIGN_OR_RETURN(const std::string_view choice, ChoiceOf(job, runtime, kAgentAnnotation, "on", "off"));
  return choice != "off";
}

bool CommandIsKnown(const Json& container) { return !ListField(container, "command").empty(); }

bool IsAgent(const Json& container) {
  if (!CommandIsKnown(container)) return false;
  const Json& program = ListField(container, "command")[0];
  return program.is_string() && BaseName(program.get_ref<const std::string&>()) == "muster";
}

StatusOr<std::optional<int>> OwnRestarts(std::string_view job_name, const Json& container) {
  const Json* text = EnvText(container, kMaxRestartsVariable);
  if (text == nullptr) return std::optional<int>();
  const auto number = ParseInt(text->get<std::string>());
  if (!number || *number < 0 || *number > 1'000'000) {
    return absl::InvalidArgumentError(
        fmt::format("job '{}', container '{}': env {}: {} is not a whole number of 0 or more", job_name,
                    kTrainerContainer, kMaxRestartsVariable, Quoted(text->get<std::string>())));
  }
  return std::optional<int>(static_cast<int>(*number));
}

StatusOr<bool> PutAgent(const AgentPlace& place, const PlanOptions& options, const AgentUse& use,
                        std::vector<Notice>* notices) {
  if (place.container == nullptr || (!use.replaces && !CommandIsKnown(*place.container))) {
    Note(reason::kAgentLeftOut,
         fmt::format("{} runs without the agent: its command is not known, {}, or annotate {}: \"off\"", place.name,
                     place.no_command, kAgentAnnotation),
         notices);
    return false;
  }
  // A command that is the agent already stays as it is.
  if (use.replaces || !IsAgent(*place.container)) {
    MUSTER_RETURN_IF_ERROR(CheckRoomForAgent(place));
    Install(options, place.pod, place.container);
    const bool is_torchrun = use.flags.empty() && TorchrunOf(*place.container) == Torchrun::kDirect;
    Wrap(use.replaces, is_torchrun ? std::vector<std::string>{"--wire=torch"} : use.flags, place.container);
  }
  AddVariables(*place.pod, use, place.container);
  if (use.probe) AddProbe(*place.pod, place.container);
  return true;
}

std::optional<int> AgentPort(const Json& pod, const Json& container) {
  if (FlagField(pod, "hostNetwork", false)) return std::nullopt;
  if (FindNamed(container, "env", "MUSTER_HTTP_PORT") == nullptr) return kAgentHttpPort;
  const Json* text = EnvText(container, "MUSTER_HTTP_PORT");
  const auto port = text == nullptr ? std::nullopt : ParseInt(text->get<std::string>());
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  return static_cast<int>(*port);
}

StatusOr<Injection> InjectAgent(const Runtime& runtime, const PlanOptions& options, AgentUse use, int max_restarts,
                                RestartPolicy policy, ReplicatedJob* of, std::vector<Notice>* notices) {
  if (policy == RestartPolicy::kOwn) policy = RestartPolicy::kExitCode;
  use.max_restarts = max_restarts;
  use.policy = policy;
  // Without publishNotReadyAddresses, pods find each other only once they are ready; a probe would delay that.
  use.probe = runtime.publish_not_ready_addresses;
  Json& pod = PodSpec(of->job_template);
  const AgentPlace place{
      .name = fmt::format("runtime '{}': job '{}'", runtime.meta.name, of->name),
      .no_command =
          "since neither spec.trainer.command nor the runtime gives one and an image's ENTRYPOINT is in the "
          "image alone; give spec.trainer.command",
      .pod = &pod,
      .container = FindNamed(pod, "containers", kTrainerContainer)};
  MUSTER_ASSIGN_OR_RETURN(const bool done, PutAgent(place, options, use, notices));
  if (!done) return Injection{};
  return Injection{.done = true,
                   .port = AgentPort(pod, *place.container),
                   .budget_in_job = SetFailurePolicy(runtime, max_restarts, policy, of, notices)};
}

}  // namespace muster::controller
