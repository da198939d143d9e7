// JAX: one process a node, found through the first one. The agents of a job of several nodes meet, so that all begin
// together and are restarted together.
#include "base/text.h"
#include "controller/plan/framework.h"
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
