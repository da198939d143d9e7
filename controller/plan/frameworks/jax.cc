// SPDX-License-Identifier: Apache-2.0
// JAX: one process on each node. The processes find each other through the first node. If there are several nodes,
// their agents meet, so that all processes begin and restart together.
#include "base/text.h"
#include "controller/plan/frameworks/framework.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {

Status AddJax(Draft* draft) {
  const ReplicatedJob* first = FirstTrainer(*draft);
  if (first == nullptr) return absl::OkStatus();
  const Json variables =
      Json::array({EnvValue("JAX_NUM_PROCESSES", draft->nodes.Text()), IndexVariable("JAX_PROCESS_ID"),
                   EnvValue("JAX_COORDINATOR_ADDRESS", fmt::format("{}:{}", FirstHost(*draft, *first), kTrainerPort))});
  for (ReplicatedJob& of : draft->jobs) {
    if (of.step != Step::kTrainer) continue;
    Json* container = TrainerContainer(of);
    AddMissingEnv(variables, container);
    UpsertPort(kTrainerPort, container);
    draft->agents[of.name] = {.flags = {"--wire=jax"}};
  }
  draft->agents_meet = draft->nodes.pods > 1;
  return absl::OkStatus();
}

}  // namespace muster::controller
