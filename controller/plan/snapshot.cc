// SPDX-License-Identifier: Apache-2.0
// ConfigMap <job>-runtime-snapshot keeps the runtime by which a job is planned, whatever happens to the runtime later.
// It is immutable: nothing else holds the runtime that the job began with, so an edit of it could not be undone.
#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/api/yaml.h"
#include "controller/plan/plan.h"
#include "controller/plan/sizes.h"

namespace muster::controller {
namespace {

constexpr char kKey[] = "runtime";
constexpr char kDelete[] = "delete the ConfigMap and it is recreated";

// "trainer.kubeflow.org" of "trainer.kubeflow.org/v1alpha1".
std::string_view GroupOf(std::string_view api_version) {
  const size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

}  // namespace

std::string SnapshotName(const TrainJob& job) { return fmt::format("{}-runtime-snapshot", job.meta.name); }

StatusOr<Json> MakeSnapshot(const TrainJob& job, const Json& runtime) {
  Json kept = runtime;
  // Items of lists lack apiVersion and kind.
  if (TextField(kept, "apiVersion").empty()) kept["apiVersion"] = kTrainerApi;
  if (TextField(kept, "kind").empty()) kept["kind"] = job.runtime.kind;
  if (const auto metadata = kept.find("metadata"); metadata != kept.end() && metadata->is_object()) {
    metadata->erase("managedFields");
  }
  std::string text = WriteYaml(kept);
  if (static_cast<int64_t>(sizeof(kKey) - 1 + text.size()) > kMostDataBytes) {
    return absl::InvalidArgumentError(
        fmt::format("{} {}: it has {} bytes as YAML, and a job that uses it keeps a copy in a ConfigMap, which holds "
                    "{}; keep long texts and files in a ConfigMap of their own, a volume or the image",
                    job.runtime.kind, job.runtime.name, text.size(), kMostDataBytes));
  }
  Json metadata = OwnedMetadata(kTrainerApi, "TrainJob", job.meta, SnapshotName(job));
  metadata["labels"][kJobSetNameLabel] = job.meta.name;  // by which the controller follows it
  return Json{{"apiVersion", "v1"},
              {"kind", "ConfigMap"},
              {"metadata", std::move(metadata)},
              {"immutable", true},
              {"data", {{kKey, std::move(text)}}}};
}

StatusOr<Json> ReadSnapshot(const TrainJob& job, const Json& config_map) {
  const std::string where = fmt::format("ConfigMap '{}'", SnapshotName(job));
  const auto wrong = [&](std::string_view what) {
    return absl::FailedPreconditionError(fmt::format("{}: {}; {}", where, what, kDelete));
  };
  auto meta = ReadMeta(config_map);
  if (!meta.ok()) return wrong(Message(meta.status()));
  if (!meta->IsControlledBy(job.meta)) {
    const OwnerReference* owner = meta->Controller();
    return wrong(fmt::format("snapshot configmap exists but is owned by another object ({})",
                             owner == nullptr ? "by none" : fmt::format("{} '{}'", owner->kind, owner->name)));
  }
  const std::string text = TextField(PartOf(config_map, "data"), kKey);
  if (text.empty()) return wrong("data.runtime is missing");
  auto documents = ReadYaml(text);
  if (!documents.ok()) return wrong(fmt::format("data.runtime: {}", Message(documents.status())));
  if (documents->size() != 1) return wrong("data.runtime is not one object");
  Json runtime = std::move(documents->front().object);
  const RuntimeRef found{.api_group = std::string(GroupOf(TextField(runtime, "apiVersion"))),
                         .kind = TextField(runtime, "kind"),
                         .name = NameOf(runtime)};
  if (found != job.runtime) {
    return wrong(fmt::format("it holds {} {} of {}, and the job's runtimeRef is {} {} of {}", found.kind,
                             Quoted(found.name), found.api_group, job.runtime.kind, Quoted(job.runtime.name),
                             job.runtime.api_group));
  }
  return runtime;
}

}  // namespace muster::controller
