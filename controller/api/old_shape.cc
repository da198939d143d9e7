// SPDX-License-Identifier: Apache-2.0
#include "controller/api/old_shape.h"

#include <algorithm>
#include <limits>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/limits.h"
#include "controller/api/strategic_merge.h"
#include "controller/api/train_job.h"

namespace muster::controller {
namespace {

bool HasPatchFields(const Json& spec) {
  return std::any_of(std::begin(kOldPatchFields), std::end(kOldPatchFields),
                     [&](const char* name) { return FindField(spec, name) != nullptr; });
}

const Json* ProcPerNode(const Json& spec) {
  const Json* trainer = FindField(spec, "trainer");
  const Json* value = trainer == nullptr ? nullptr : FindField(*trainer, "numProcPerNode");
  return value != nullptr && value->is_string() ? value : nullptr;
}

// The object in field `name`; makes an empty one if the field is absent.
Json& Inner(Json& object, const char* name) {
  Json& inner = object[name];
  if (inner.is_null()) inner = Json::object();
  return inner;
}

void MoveProcPerNode(Json& object, Complaints& complaints, std::vector<std::string>& warnings) {
  constexpr char kPath[] = "spec.trainer.numProcPerNode";
  Json& trainer = object["spec"]["trainer"];
  const std::string text = trainer["numProcPerNode"];
  if (text == "auto" || text == "cpu" || text == "gpu") {
    Fields root(&object, "", &complaints);
    root.Object("metadata").Object("annotations");
    if (!complaints.ok()) return;
    Inner(Inner(object, "metadata"), "annotations")[kNumProcAnnotation] = text;
    trainer.erase("numProcPerNode");
    return;
  }
  const auto number = ParseInt(text);
  if (!number || *number < 1 || *number > kMostProcesses) {
    complaints.Wrong(kPath, std::string_view(text), kNoProcesses);
    return;
  }
  trainer["numProcPerNode"] = *number;
  warnings.push_back(
      fmt::format("{}: {} is taken as the number {}; write it without quotes", kPath, Quoted(text), text));
}

// Makes replicatedJobs of the patch: one entry for each job that an override names.
class Jobs {
 public:
  // `pod_template` is {metadata, spec}.
  void Add(Fields& override, const Json& pod_template) {
    std::vector<Fields> targets = override.Objects("targetJobs");
    if (targets.empty()) override.Wrong("targetJobs", "it is missing; name the replicated jobs: [{name: node}]");
    if (targets.size() > kMost) override.Wrong("targetJobs", TooMany(targets.size()));
    for (Fields& target : targets) {
      if (!override.complaints()->ok()) return;
      Json& merged = TemplateOf(target.NeedText("name"));
      auto result = StrategicMerge(std::move(merged), pod_template);
      if (!result.ok()) return override.complaints()->Wrong(override.path(), Message(result.status()));
      merged = *std::move(result);
    }
  }

  // The overrides in list `name`; complains if there are more than kMost.
  static std::vector<Fields> Overrides(Fields& spec, const char* name) {
    std::vector<Fields> overrides = spec.Objects(name);
    if (overrides.size() <= kMost) return overrides;
    spec.Wrong(name, TooMany(overrides.size()));
    return {};
  }

  Json Take() { return std::move(jobs_); }

 private:
  static constexpr size_t kMost = 100;

  static std::string TooMany(size_t count) { return fmt::format("{} items are more than {}", count, kMost); }

  Json& TemplateOf(const std::string& name) {
    auto job = std::find_if(jobs_.begin(), jobs_.end(), [&](const Json& other) { return other["name"] == name; });
    if (job == jobs_.end()) {
      jobs_.push_back({{"name", name}, {"template", {{"spec", {{"template", Json::object()}}}}}});
      job = std::prev(jobs_.end());
    }
    return (*job)["template"]["spec"]["template"];
  }

  Json jobs_ = Json::array();
};

// The pod fields of an override of v2.0: all but targetJobs.
Json PodSpecOf(const Fields& override) {
  Json spec = *override.Whole();
  spec.erase("targetJobs");
  return spec;
}

Json PodTemplateOf(Fields& override) {
  Json pod_template = Json::object();
  Json metadata = LabelsAndAnnotations(override.Object("metadata"));
  if (!metadata.is_null()) pod_template["metadata"] = std::move(metadata);
  if (const Fields spec = override.Object("spec")) pod_template["spec"] = *spec.Whole();
  return pod_template;
}

// The patch made from the old fields; null: they are all empty.
Json MakePatch(Fields& spec) {
  Jobs made;
  for (Fields& override : Jobs::Overrides(spec, "podSpecOverrides")) {
    if (override) made.Add(override, {{"spec", PodSpecOf(override)}});
  }
  for (Fields& override : Jobs::Overrides(spec, "podTemplateOverrides")) {
    if (override) made.Add(override, PodTemplateOf(override));
  }
  Json jobs = made.Take();
  Json whole = Json::object();
  Json metadata = LabelsAndAnnotations(spec);
  if (!metadata.is_null()) whole["metadata"] = std::move(metadata);
  if (!jobs.empty()) whole["spec"] = {{"replicatedJobs", std::move(jobs)}};
  if (whole.empty()) return Json();
  return {{"manager", kOldShapeManager}, {"trainingRuntimeSpec", {{"template", std::move(whole)}}}};
}

// Replaces the patch of kOldShapeManager in place; inserts a new one at the front. A null patch removes it.
void PutPatch(Json& spec, Json patch) {
  Json& patches = spec["runtimePatches"];
  if (patches.is_null()) patches = Json::array();
  const auto ours = [](const Json& other) { return TextField(other, "manager") == kOldShapeManager; };
  const auto found = std::find_if(patches.begin(), patches.end(), ours);
  if (found == patches.end()) {
    if (!patch.is_null()) patches.insert(patches.begin(), std::move(patch));
  } else if (patch.is_null()) {
    patches.erase(found);
  } else {
    // The webhook stamps the time; keep it.
    if (const Json* time = FindField(*found, "time")) patch["time"] = *time;
    *found = std::move(patch);
  }
  if (patches.empty()) spec.erase("runtimePatches");
}

void MovePatchFields(Json& object, Complaints& complaints, std::vector<std::string>& warnings) {
  Fields spec(&object["spec"], "spec", &complaints);
  spec.Objects("runtimePatches");
  Json patch = MakePatch(spec);
  if (!complaints.ok()) return;
  for (const char* name : kOldPatchFields) {
    const Json* value = spec.Find(name);
    if (value == nullptr || value->empty()) continue;
    warnings.push_back(fmt::format("spec.{} is of v2.1; the patch of manager {} in spec.runtimePatches says the same",
                                   name, kOldShapeManager));
  }
  PutPatch(object["spec"], std::move(patch));
}

}  // namespace

bool HasOldShape(const Json& object) {
  const Json* spec = FindField(object, "spec");
  return spec != nullptr && (ProcPerNode(*spec) != nullptr || HasPatchFields(*spec));
}

StatusOr<NewShape> NewestShape(const Json& object) {
  NewShape made{.object = object};
  const Json* spec = FindField(object, "spec");
  if (spec == nullptr) return made;
  Complaints complaints;
  if (ProcPerNode(*spec) != nullptr) MoveProcPerNode(made.object, complaints, made.warnings);
  if (HasPatchFields(*spec)) MovePatchFields(made.object, complaints, made.warnings);
  MUSTER_RETURN_IF_ERROR(complaints.status());
  return made;
}

}  // namespace muster::controller
