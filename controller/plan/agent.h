// Runs the trainer's command under `muster exec`: an init container copies the agent into an emptyDir, and the Job
// stops at a fatal exit code by itself. What the runtime says about these things stays as it says. Pure.
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
  bool replaces = false;  // it has no command: it takes the place of the container's
};

struct Injection {
  bool done = false;           // the command runs under the agent
  bool budget_in_job = false;  // the Job's backoffLimit is the budget
};

// Changes `of`, whose pods have the container `node`. Notices say what was left as it is, and why. InvalidArgument: the
// pod has a volume, init container or mount of the agent's name.
StatusOr<Injection> InjectAgent(const Runtime& runtime, const PlanOptions& options, const AgentUse& use,
                                int max_restarts, RestartPolicy policy, ReplicatedJob* of,
                                std::vector<Notice>* notices);

}  // namespace muster::controller
