// Runs a container's command under `muster exec`: an init container copies the agent into an emptyDir. In a Job of a
// runtime it also stops the Job at a fatal exit code. What the user says about these things stays as he says. Pure.
//
// A torchrun that is found without PATH is taken over by `muster exec --wire=torch`: torchrun_command.h.
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

inline constexpr char kAgentContainer[] = "muster-agent";  // the init container, and its volume
inline constexpr char kMaxRestartsVariable[] = "PET_MAX_RESTARTS";

// Whether kAgentAnnotation of the TrainJob, else the runtime, leaves the agent in. InvalidArgument: it is neither
// "on" nor "off".
StatusOr<bool> WantsAgent(const TrainJob& job, const Runtime& runtime);

// Whether `container` has a command: without one it is in the image alone.
bool CommandIsKnown(const Json& container);

// Whether its command is the agent already.
bool IsAgent(const Json& container);

// The number in PET_MAX_RESTARTS of `container`; none: it is not there, or comes from elsewhere. InvalidArgument: it is
// no number.
StatusOr<std::optional<int>> OwnRestarts(std::string_view job_name, const Json& container);

// How `muster exec` is called.
struct AgentUse {
  std::vector<std::string> flags;
  bool replaces = false;            // it has no command: it takes the place of the container's
  std::optional<int> max_restarts;  // PET_MAX_RESTARTS, where the container has none
  RestartPolicy policy = RestartPolicy::kExitCode;
  bool probe = true;  // the kubelet asks it whether the pod is ready, where the container has no probe
};

// The container that gets it.
struct AgentPlace {
  std::string name;           // for messages: "runtime 'a': job 'node'", "spec.pytorchReplicaSpecs.Worker"
  std::string no_command;     // for one whose command is not known: "since ...; give ..."
  Json* pod = nullptr;        // PodSpec
  Json* container = nullptr;  // of the pod; null: it has none
};

// True: the command runs under the agent, or was the agent already. Notices say why not. InvalidArgument: the pod has a
// volume, init container or mount of the agent's name.
StatusOr<bool> PutAgent(const AgentPlace& place, const PlanOptions& options, const AgentUse& use,
                        std::vector<Notice>* notices);

// securityContext of an init container of Muster's own in `pod`. It needs no right at all. It runs as `container` does;
// where that is only said not to be root, as some other user, since the agent's image names none.
Json HelperSecurity(const Json& pod, const Json& container);

struct Injection {
  bool done = false;           // the command runs under the agent
  bool budget_in_job = false;  // the Job's backoffLimit is the budget
};

// PutAgent into `of`, whose pods have the container `node`; `use` says the rest of it.
StatusOr<Injection> InjectAgent(const Runtime& runtime, const PlanOptions& options, AgentUse use, int max_restarts,
                                RestartPolicy policy, ReplicatedJob* of, std::vector<Notice>* notices);

}  // namespace muster::controller
