// SPDX-License-Identifier: Apache-2.0
// XGBoost: the tracker runs on the first node, and there is one worker for each GPU. If there are several nodes, their
// agents meet, so that all workers begin and restart together.
#include <algorithm>

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/plan/frameworks/framework.h"
#include "controller/plan/pod_fields.h"
#include "controller/plan/resources.h"

namespace muster::controller {

Status AddXgboost(Draft* draft) {
  ReplicatedJob* first = FirstTrainer(*draft);
  if (first == nullptr) return absl::OkStatus();
  const int64_t each = std::max<int64_t>(1, GpusOf(PartOf(*TrainerContainer(*first), "resources")));
  const Json variables =
      Json::array({EnvValue("DMLC_TRACKER_URI", FirstHost(*draft, *first)),
                   EnvValue("DMLC_TRACKER_PORT", fmt::format("{}", kTrainerPort)), IndexVariable("DMLC_TASK_ID"),
                   EnvValue("DMLC_NUM_WORKER", fmt::format("{}", draft->nodes.pods * each))});
  for (ReplicatedJob& of : draft->jobs) {
    if (of.step != Step::kTrainer) continue;
    Json* container = TrainerContainer(of);
    // The agent needs the number of pods, which does not follow from the number of workers.
    AddMissingEnv(Json::array({EnvValue("TRAINER_NNODES", draft->nodes.Text())}), container);
    UpsertEnvFirst(variables, container);
    UpsertPort(kTrainerPort, container);
    draft->agents[of.name] = {.flags = {"--wire=xgboost"}};
  }
  draft->agents_meet = draft->nodes.pods > 1;
  return absl::OkStatus();
}

}  // namespace muster::controller
