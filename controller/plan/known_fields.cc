#include "controller/plan/known_fields.h"

#include <algorithm>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/lenient.h"
#include "controller/plan/nearest_names.h"

namespace muster::controller {
namespace {

using Names = std::vector<std::string>;

void Look(const std::string& path, const Json& object, const Names& known, std::vector<std::string>* unknown) {
  if (!object.is_object()) return;
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const Names nearest = NearestNames(name, known);
    unknown->push_back(fmt::format("{}: is no field of a TrainJob: it is ignored{}", PathOf(path, name),
                                   nearest.empty() ? "" : fmt::format("; the nearest is {}", Quoted(nearest.front()))));
  }
}

}  // namespace

std::vector<std::string> UnknownTrainJobFields(const Json& job) {
  std::vector<std::string> unknown;
  const Json& spec = PartOf(job, "spec");
  Look("spec", spec,
       {"runtimeRef", "initializer", "trainer", "runtimePatches", "suspend", "managedBy", "activeDeadlineSeconds",
        "ttlSecondsAfterFinished", "labels", "annotations", "podTemplateOverrides", "podSpecOverrides"},
       &unknown);
  Look("spec.runtimeRef", PartOf(spec, "runtimeRef"), {"apiGroup", "kind", "name"}, &unknown);
  Look("spec.trainer", PartOf(spec, "trainer"),
       {"image", "command", "args", "env", "numNodes", "resourcesPerNode", "numProcPerNode"}, &unknown);
  Look("spec.initializer", PartOf(spec, "initializer"), {"dataset", "model"}, &unknown);
  for (const char* one : {"dataset", "model"}) {
    Look(fmt::format("spec.initializer.{}", one), PartOf(spec, "initializer", one), {"storageUri", "env", "secretRef"},
         &unknown);
  }
  return unknown;
}

}  // namespace muster::controller
