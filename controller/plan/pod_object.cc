// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/pod_object.h"

#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/api/meta.h"
#include "controller/plan/names.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

constexpr char kIndexVariable[] = "JOB_COMPLETION_INDEX";
constexpr size_t kMostPrefix = 58;  // of a name that ends with 5 letters

void AddIndexVariable(const char* list, Json* pod_spec) {
  Json* containers = pod_spec->contains(list) ? &(*pod_spec)[list] : nullptr;
  if (containers == nullptr || !containers->is_array()) return;
  for (Json& container : *containers) {
    if (FindNamed(std::as_const(container), "env", kIndexVariable) != nullptr) continue;
    const std::string path = fmt::format("metadata.labels['{}']", kIndexLabel);
    UpsertEnv({{"name", kIndexVariable}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}}, &container);
  }
}

}  // namespace

std::string ReplacementPodName(std::string_view job, int index, std::string_view lost_uid) {
  const std::string number = fmt::format("-{}-", index);
  const std::string_view beginning = job.substr(0, kMostPrefix - number.size());
  return fmt::format("{}{}{}", beginning, number, Sha256Hex(lost_uid).substr(0, 5));
}

StatusOr<Json> PodOfJob(const Json& job, int index, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const Meta owner, ReadMeta(job));
  Json copy = job;
  MUSTER_RETURN_IF_ERROR(TidyJobTemplate(fmt::format("Job {}/{}", owner.ns, owner.name), &copy));
  Json& pod_template = PodTemplate(copy);
  const Json* own = FindField(pod_template["metadata"], "finalizers");
  Json finalizers = own != nullptr && own->is_array() ? *own : Json::array();
  finalizers.push_back(kTrackingFinalizer);
  Json metadata = {{"name", name},
                   {"namespace", owner.ns},
                   {"finalizers", std::move(finalizers)},
                   {"ownerReferences", Json::array({OwnerReferenceTo("batch/v1", "Job", owner)})}};
  for (const char* field : {"labels", "annotations"}) {
    metadata[field] = MapField(pod_template["metadata"], field);
    metadata[field][kIndexLabel] = fmt::format("{}", index);
  }
  Json& spec = PodSpec(copy);
  for (const char* list : {"initContainers", "containers"}) AddIndexVariable(list, &spec);
  spec["hostname"] = fmt::format("{}-{}", owner.name, index);
  return Json{{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
}

}  // namespace muster::controller
