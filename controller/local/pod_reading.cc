#include "controller/local/pod_reading.h"

#include "controller/api/lenient.h"

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

}  // namespace muster::controller
