#include "controller/local/pod_reading.h"

#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/api/pytorch_job.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {

int ExitCodeOf(const Json& pod) {
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& container : ListField(PartOf(pod, "status"), list)) {
      const int code = CountField(PartOf(container, "state", "terminated"), "exitCode");
      if (code != 0) return code;
    }
  }
  return 0;
}

bool IsReady(const Json& pod) {
  for (const Json& condition : ListField(PartOf(pod, "status"), "conditions")) {
    if (TextField(condition, "type") == "Ready") return TextField(condition, "status") == "True";
  }
  return false;
}

int NodeRankOf(const Json& pod) {
  const Json& labels = MapField(PartOf(pod, "metadata"), "labels");
  const std::string type = TextField(labels, kReplicaTypeLabel);
  const auto index = ParseInt(TextField(labels, type.empty() ? kIndexLabel : kReplicaIndexLabel));
  if (!index) return -1;
  if (type.empty())
    return FindNamed(PartOf(pod, "spec"), "containers", kTrainerContainer) != nullptr ? static_cast<int>(*index) : -1;
  const Json* container = FindNamed(PartOf(pod, "spec"), "containers", kPyTorchContainer);
  const Json* rank = container == nullptr ? nullptr : FindNamed(*container, "env", "PET_NODE_RANK");
  const auto number = rank == nullptr ? index : ParseInt(TextField(*rank, "value"));
  return number ? static_cast<int>(*number) : -1;
}

}  // namespace muster::controller
