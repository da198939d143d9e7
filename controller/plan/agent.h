// SPDX-License-Identifier: Apache-2.0
// Runs a container's command under `muster exec`. An init container copies the agent into an emptyDir. For a Job of a
// runtime, this also makes the Job fail at a fatal exit code. Fields and variables that the user has set stay. Pure.
//
// A torchrun that is started without a look-up in PATH runs under `muster exec --wire=torch`: torchrun_command.h.
//
// Words that a shell would change go into variables (base/args_from_env.h), so that the command survives webhooks that
// make a line for a shell of it.
//
// The agent reads its budget from PET_MAX_RESTARTS (for a torchrun inside the command), the policy from
// MUSTER_RESTART_POLICY, the grace from MUSTER_SHUTDOWN_TIMEOUT. Its HTTP port is open by default (docs/watching.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"
#include "controller/plan/plan.h"

namespace muster::controller {

inline constexpr char kAgentContainer[] = "muster-agent";  // name of the init container and of its volume
inline constexpr char kMaxRestartsVariable[] = "PET_MAX_RESTARTS";

// False: kAgentAnnotation of the TrainJob, else of the runtime, is "off". InvalidArgument: neither "on" nor "off".
StatusOr<bool> WantsAgent(const TrainJob& job, const Runtime& runtime);

// Whether `container` has a command. Without one, only the image knows the command.
bool CommandIsKnown(const Json& container);

// Whether the command of `container` is muster already.
bool IsAgent(const Json& container);

// The number in PET_MAX_RESTARTS of `container`; none: the variable is absent, or has a valueFrom. InvalidArgument: its
// value is not a whole number from 0 to 1,000,000.
StatusOr<std::optional<int>> OwnRestarts(std::string_view job_name, const Json& container);

// How `muster exec` is called.
struct AgentUse {
  std::vector<std::string> flags;
  bool replaces = false;            // `muster exec` gets no command, and replaces the container's command and args
  std::optional<int> max_restarts;  // PET_MAX_RESTARTS, unless the container has it
  RestartPolicy policy = RestartPolicy::kExitCode;
  int no_progress_limit = 0;  // MUSTER_NO_PROGRESS_LIMIT, unless the container has it; 0: none
  std::string job;            // MUSTER_JOB, unless the container has it; empty: none
  std::string standby;        // MUSTER_STANDBY_WORKERS, unless the container has it; empty: none
  bool probe = true;          // add a readinessProbe of the agent, unless the container has one
};

// The container that gets the agent.
struct AgentPlace {
  std::string name;           // for messages: "runtime 'a': job 'node'", "spec.pytorchReplicaSpecs.Worker"
  std::string no_command;     // for the notice of an unknown command: "since ...; give ..."
  Json* pod = nullptr;        // PodSpec
  Json* container = nullptr;  // of `pod`; null: the pod has no such container
};

// True: the command runs under the agent, or was the agent already. False: a notice says why not. InvalidArgument: the
// pod has a volume or container of the agent's name, a mount at its folder, or a variable MUSTER_ARG_N.
StatusOr<bool> PutAgent(const AgentPlace& place, const PlanOptions& options, const AgentUse& use,
                        std::vector<Notice>* notices);

// securityContext of an init container of Muster's own: no privileges, and the user of `container`. If neither that nor
// the pod names one, it is the image's, which is not root in the agent's image. OpenShift then chooses another one.
Json HelperSecurity(const Json& container);

// The agent's HTTP port, for the kubelet's probe and for the controller. nullopt: MUSTER_HTTP_PORT is not a plain
// number (the port is off, bound to one address, or from a valueFrom), or the pod has its node's network, where another
// agent may hold the port.
std::optional<int> AgentPort(const Json& pod, const Json& container);

struct Injection {
  bool done = false;           // the command runs under the agent
  std::optional<int> port;     // the agent's HTTP port, if it is known and each pod has a network of its own
  bool budget_in_job = false;  // the Job's backoffLimit is the budget
};

// PutAgent for the container `node` of `of`. Then sets restartPolicy, podFailurePolicy and backoffLimit, unless the
// runtime has set them or `policy` is kNever (ApplyRestartPolicy). Of `use`, flags, replaces, no_progress_limit,
// job and standby count.
StatusOr<Injection> InjectAgent(const Runtime& runtime, const PlanOptions& options, AgentUse use, int max_restarts,
                                RestartPolicy policy, ReplicatedJob* of, std::vector<Notice>* notices);

}  // namespace muster::controller
