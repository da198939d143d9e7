// SPDX-License-Identifier: Apache-2.0
#include "local/pod/reading.h"

#include "controller/api/lenient.h"
#include "controller/plan/pod_fields.h"

namespace muster::local {

using namespace controller;

std::optional<int> ExitCodeOf(const Json& pod) {
  const std::set<std::string> sidecars = SidecarsOf(pod);
  std::optional<int> code;
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    const bool init = std::string_view(list) == "initContainerStatuses";
    for (const Json& container : ListField(PartOf(pod, "status"), list)) {
      const Json* end = FindField(PartOf(container, "state"), "terminated");
      if (end == nullptr || (init && sidecars.contains(TextField(container, "name")))) continue;
      const int one = CountField(*end, "exitCode");
      if (one != 0) return one;
      if (!init) code = 0;
    }
  }
  return code;
}

bool IsReady(const Json& pod) {
  for (const Json& condition : ListField(PartOf(pod, "status"), "conditions")) {
    if (TextField(condition, "type") == "Ready") return TextField(condition, "status") == "True";
  }
  return false;
}

}  // namespace muster::local
