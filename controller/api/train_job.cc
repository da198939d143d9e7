// SPDX-License-Identifier: Apache-2.0
#include "controller/api/train_job.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/limits.h"
#include "controller/api/old_shape.h"
#include "controller/api/pod_template.h"

namespace muster::controller {
namespace {

constexpr size_t kMostPatches = 16;
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }

// ^[A-Za-z][A-Za-z0-9+.-]*://.+$
bool IsUri(std::string_view uri) {
  const size_t end = uri.find("://");
  if (end == std::string_view::npos || end == 0 || end + 3 == uri.size()) return false;
  const std::string scheme = Lower(uri.substr(0, end));
  return IsLower(scheme[0]) && std::all_of(scheme.begin(), scheme.end(), [](char c) {
           return IsLower(c) || (c >= '0' && c <= '9') || c == '+' || c == '.' || c == '-';
         });
}

void CheckKind(Fields& object, Complaints& complaints) {
  const std::string api = object.Text("apiVersion"), kind = object.Text("kind");
  if (!api.empty() && api != kTrainerApi) {
    complaints.Wrong("apiVersion", std::string_view(api), fmt::format("is not {}", kTrainerApi));
  }
  if (!kind.empty() && kind != "TrainJob") complaints.Wrong("kind", std::string_view(kind), "is not TrainJob");
}

void CheckName(const Meta& meta, Complaints& complaints) {
  if (IsLabel(meta.name)) return;
  complaints.Wrong("metadata.name", std::string_view(meta.name),
                   meta.name.size() > kLongestLabel
                       ? "must be no more than 63 characters"
                       : "must match RFC 1035 DNS label format: a-z, 0-9 and '-', a letter first");
}

Json ListOf(const Fields& fields, const char* name) {
  Json list = fields.Copy(name);
  return list.is_array() ? list : Json::array();
}

std::optional<Initializer> ReadInitializer(Fields fields) {
  if (!fields) return std::nullopt;
  Initializer initializer;
  initializer.storage_uri = fields.Text("storageUri");
  if (!initializer.storage_uri.empty() && !IsUri(initializer.storage_uri)) {
    fields.Wrong("storageUri", initializer.storage_uri, "may be empty, or it must be a valid URI (scheme://...)");
  }
  CheckEnv(fields, "env");
  initializer.env = ListOf(fields, "env");
  initializer.secret = fields.Object("secretRef").Text("name");
  fields.NoOthers();
  return initializer;
}

std::optional<Trainer> ReadTrainer(Fields fields) {
  if (!fields) return std::nullopt;
  Trainer trainer;
  trainer.image = fields.Text("image");
  trainer.command = fields.Texts("command");
  trainer.args = fields.Texts("args");
  CheckEnv(fields, "env");
  trainer.env = ListOf(fields, "env");
  trainer.num_nodes = fields.Int("numNodes", 1, kMostPods);
  trainer.num_proc_per_node = fields.Int("numProcPerNode", 1, kMostProcesses);
  CheckResources(fields.Object("resourcesPerNode"));
  trainer.resources_per_node = fields.Copy("resourcesPerNode");
  fields.NoOthers();
  return trainer;
}

RuntimePatch ReadPatch(Fields& fields) {
  RuntimePatch patch;
  patch.manager = fields.NeedText("manager");
  Fields whole = fields.Object("trainingRuntimeSpec").Object("template");
  patch.metadata = LabelsAndAnnotations(whole.Object("metadata"));
  Fields spec = whole.Object("spec");
  std::set<std::string> names;
  for (Fields& job : spec.Objects("replicatedJobs")) {
    const std::string name = job.NeedText("name");
    if (!name.empty() && !names.insert(name).second) {
      job.Wrong("name", name, "is there twice; put both into one");
    }
    CheckJobTemplate(job.Object("template"), Extent::kPart);
  }
  patch.replicated_jobs = spec.Copy("replicatedJobs");
  return patch;
}

std::vector<RuntimePatch> ReadPatches(Fields& spec) {
  std::vector<RuntimePatch> patches;
  std::vector<Fields> objects = spec.Objects("runtimePatches");
  // Upstream's limit, and the patch that NewestShape() may have added.
  if (objects.size() > kMostPatches + 1) {
    spec.Wrong("runtimePatches", fmt::format("{} patches are more than {}", objects.size(), kMostPatches));
    return patches;
  }
  std::set<std::string> managers;
  for (Fields& object : objects) {
    RuntimePatch patch = ReadPatch(object);
    if (!managers.insert(patch.manager).second) {
      object.Wrong("manager", patch.manager, "has another patch already; a manager has one patch: put both into it");
    }
    patches.push_back(std::move(patch));
  }
  return patches;
}

RuntimeRef ReadRuntimeRef(Fields& spec) {
  RuntimeRef ref;
  Fields fields = spec.Object("runtimeRef");
  if (!fields) spec.Wrong("runtimeRef", "it is missing; name the runtime of this job");
  ref.name = fields.NeedText("name");
  if (!ref.name.empty() && !IsDnsName(ref.name)) {
    fields.Wrong("name", ref.name,
                 "is not a name of a runtime: a-z, 0-9, '-' and '.', a letter or digit first and last");
  }
  const std::string group = fields.Text("apiGroup"), kind = fields.Text("kind");
  if (!group.empty()) ref.api_group = group;
  if (!kind.empty()) ref.kind = kind;
  fields.NoOthers();
  return ref;
}

}  // namespace

bool IsManagedByMuster(const Json& object) {
  const std::string managed_by = TextField(PartOf(object, "spec"), "managedBy");
  return managed_by.empty() || managed_by == kManagedByMuster;
}

StatusOr<TrainJob> ReadTrainJob(const Json& given, UnknownFields* unknown) {
  Json made;
  const Json* object = &given;
  if (HasOldShape(given)) {
    MUSTER_ASSIGN_OR_RETURN(NewShape newest, NewestShape(given));
    made = std::move(newest.object);
    object = &made;
  }
  TrainJob job;
  MUSTER_ASSIGN_OR_RETURN(job.meta, ReadMeta(*object));
  Complaints complaints(unknown);
  Fields root(object, "", &complaints);
  CheckKind(root, complaints);
  CheckName(job.meta, complaints);
  Fields spec = root.Object("spec");
  if (!spec) complaints.Wrong("spec", "it is missing");
  job.runtime = ReadRuntimeRef(spec);
  Fields initializer = spec.Object("initializer");
  job.dataset = ReadInitializer(initializer.Object("dataset"));
  job.model = ReadInitializer(initializer.Object("model"));
  initializer.NoOthers();
  job.trainer = ReadTrainer(spec.Object("trainer"));
  job.patches = ReadPatches(spec);
  job.suspend = spec.Flag("suspend", false);
  job.active_deadline_seconds = spec.Number("activeDeadlineSeconds", 1);
  job.ttl_seconds_after_finished = spec.Number("ttlSecondsAfterFinished", 0);
  const std::string managed_by = spec.Text("managedBy");
  if (!managed_by.empty()) job.managed_by = managed_by;
  spec.NoOthers(fmt::format("{}", fmt::join(kOldPatchFields, " ")));
  MUSTER_RETURN_IF_ERROR(complaints.status());
  if (const Json* status = FindField(*object, "status")) job.status = ReadTrainJobStatus(*status);
  return job;
}

}  // namespace muster::controller
