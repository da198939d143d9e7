// SPDX-License-Identifier: Apache-2.0
#include "controller/admission/mutate.h"

#include "base/iso_time.h"
#include "base/text.h"
#include "controller/admission/meaning.h"
#include "controller/api/lenient.h"
#include "controller/api/list_index.h"
#include "controller/api/old_shape.h"
#include "controller/plan/node_count.h"

namespace muster::controller {
namespace {

// The API server may ask twice about one request, each time for 10 s at most, so a younger stamp is of the same
// request. In seconds, because nanoseconds overflow for some years that a user may write.
constexpr std::chrono::seconds kOneRequest(30);

// Null: absent.
const Json& NumNodes(const Json& train_job) { return PartOf(train_job, "spec", "trainer", "numNodes"); }

// The patch of `manager`; null: there is none.
const Json* FindPatch(const Json& train_job, const std::string& manager) {
  for (const Json& patch : ListField(PartOf(train_job, "spec"), "runtimePatches")) {
    if (TextField(patch, "manager") == manager) return &patch;
  }
  return nullptr;
}

// Restores the old fields in `object` where MutateTrainJob says so. True: it restored some.
bool KeepOldFields(const AdmissionRequest& request, Json* object) {
  const Json* before = FindField(request.old_object, "spec");
  const auto spec = object->find("spec");
  if (before == nullptr || spec == object->end() || !spec->is_object()) return false;
  const Json *old_patch = FindPatch(request.old_object, kOldShapeManager),
             *patch = FindPatch(*object, kOldShapeManager);
  const bool same = old_patch != nullptr && patch != nullptr &&
                    SameMeaning(FindField(*old_patch, "trainingRuntimeSpec"), FindField(*patch, "trainingRuntimeSpec"));
  if (!same && (old_patch != nullptr || patch != nullptr)) return false;
  Json kept = Json::object();
  for (const char* name : kOldPatchFields) {
    if (FindField(*spec, name) != nullptr) return false;
    if (const Json* value = FindField(*before, name)) kept[name] = *value;
  }
  spec->update(kept);
  return !kept.empty();
}

bool IsFresh(const Json& patch, WallTime now) {
  const auto time = ParseWallTime(TextField(patch, "time"));
  return time.ok() && *time <= now && now - *time < kOneRequest;
}

void StampPatches(const Json& old_object, WallTime now, Json* spec) {
  const auto patches = spec->find("runtimePatches");
  if (patches == spec->end() || !patches->is_array()) return;
  const ListIndex old_patches(ListField(PartOf(old_object, "spec"), "runtimePatches"), "manager");
  for (Json& patch : *patches) {
    if (!patch.is_object()) continue;
    const Json* time = FindField(patch, "time");
    const Json* before = old_patches.Find(TextField(patch, "manager"));
    if (before == nullptr) {
      if (time == nullptr) patch["time"] = IsoTime(now);
    } else if (SameMeaning(FindField(patch, "trainingRuntimeSpec"), FindField(*before, "trainingRuntimeSpec"))) {
      const Json* its = FindField(*before, "time");
      its == nullptr ? static_cast<void>(patch.erase("time")) : static_cast<void>(patch["time"] = *its);
    } else if (time == nullptr || *time == before->value("time", Json()) || !IsFresh(patch, now)) {
      patch["time"] = IsoTime(now);
    }
  }
}

// numNodes of an elastic job. Null: it is not elastic, or the runtime is invalid, which the validating webhook reports.
Json ElasticNodes(const Json& runtime, const Json& old_object) {
  const auto read = ReadRuntime(runtime);
  if (!read.ok()) return Json();
  const auto count = ReadNodeCount(TrainJob(), *read);
  if (!count.ok() || !count->elastic) return Json();
  const Json& before = NumNodes(old_object);
  return before.is_null() ? Json(count->pods) : before;
}

}  // namespace

bool MutationNeedsRuntime(const AdmissionRequest& request) {
  if (!NumNodes(request.object).is_null()) return false;
  return request.operation == "CREATE" || !NumNodes(request.old_object).is_null();
}

Verdict MutateTrainJob(const AdmissionRequest& request, const Json* runtime, WallTime now) {
  Verdict verdict;
  if (IsBeingDeleted(request.object)) return verdict;
  Json given = request.object;
  const bool kept = KeepOldFields(request, &given);
  auto made = NewestShape(given);
  if (!made.ok()) {
    verdict.Refuse(kInvalid, std::string(Message(made.status())));
    return verdict;
  }
  verdict.warnings = std::move(made->warnings);
  if (kept) {
    verdict.warnings.push_back(
        fmt::format("spec: {} of v2.1 stay, since a client that does not know them leaves them out; to remove one, set "
                    "it to [] or {{}}",
                    Join({std::begin(kOldPatchFields), std::end(kOldPatchFields)}, ", ")));
  }
  const auto spec = made->object.find("spec");
  if (spec == made->object.end() || !spec->is_object()) return verdict;
  StampPatches(request.old_object, now, &*spec);
  if (runtime != nullptr && MutationNeedsRuntime(request)) {
    const auto trainer = spec->find("trainer");
    Json nodes = trainer == spec->end() || trainer->is_null() || trainer->is_object()
                     ? ElasticNodes(*runtime, request.old_object)
                     : Json();
    if (!nodes.is_null()) (*spec)["trainer"]["numNodes"] = std::move(nodes);
  }
  verdict.patch = Json::diff(request.object, made->object);
  return verdict;
}

}  // namespace muster::controller
