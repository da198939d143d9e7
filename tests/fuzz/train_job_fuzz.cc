// SPDX-License-Identifier: Apache-2.0
// libFuzzer: an object of the API. The first byte chooses: a runtime, a status, a strategic merge of two objects, a
// PyTorchJob with its status; else a TrainJob of either shape.
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/old_shape.h"
#include "controller/api/pytorch_job.h"
#include "controller/api/runtime.h"
#include "controller/api/strategic_merge.h"
#include "controller/api/train_job.h"
#include "controller/plan/convert/convert.h"
#include "controller/reconcile/after.h"
#include "tests/fuzz/input.h"

namespace muster::controller {
namespace {

constexpr int kDeepest = 100;
constexpr size_t kMostMessage = 4096;

void Said(const Status& status) {
  MustBeTold(status, kMostMessage);
  Must(Message(status).find_first_of("\r\n") == std::string_view::npos);
}

void AJob(const Json& object) {
  const auto made = NewestShape(object);
  Said(made.status());
  if (made.ok()) {
    const auto again = NewestShape(made->object);
    Must(again.ok() && again->object == made->object);
  }
  const auto job = ReadTrainJob(object);
  Said(job.status());
  if (!job.ok()) return;
  Must(made.ok() && !job->meta.name.empty() && !job->runtime.name.empty());
  Must(!job->trainer || job->trainer->num_nodes.value_or(1) >= 1);
  Must(!job->trainer || job->trainer->num_proc_per_node.value_or(1) >= 1);
  Said(ReadAfter(*job).status());
  const TrainJob* itself = &*job;
  HoldOf(*job, [itself](const std::string& name) { return name == itself->meta.name ? itself : nullptr; });
}

void AStatus(const Json& object) {
  const Json written = WriteTrainJobStatus(ReadTrainJobStatus(object));
  Must(WriteTrainJobStatus(ReadTrainJobStatus(written)) == written);
}

void APyTorchJob(const Json& object) {
  const Json status = WritePyTorchJobStatus(ReadPyTorchJobStatus(PartOf(object, "status")));
  Must(WritePyTorchJobStatus(ReadPyTorchJobStatus(status)) == status);
  IsPyTorchJobManagedByMuster(object);
  UnknownFields unknown;
  const auto job = ReadPyTorchJob(object, &unknown);
  Said(job.status());
  if (!job.ok()) return;
  Must(!job->meta.name.empty() && job->AllReplicas() >= 0 && job->replicas.size() <= kReplicaTypes.size());
  for (const ReplicaSpec& replica : job->replicas) {
    Must(job->Find(replica.type) == &replica && replica.restart != RestartPolicy::kOwn);
    Must(replica.pod_template["metadata"].is_object());
    Must(replica.pod_template["spec"]["containers"][0]["name"].is_string());
  }
  Must(!job->processes_per_node.empty() || (job->elastic && job->elastic->processes_per_node));
  Must(!job->elastic || (job->elastic->least >= 1 && job->elastic->least <= job->elastic->most));
  for (const auto& [path, nearest] : unknown) Must(path.starts_with("spec."));
  const auto converted = ConvertPyTorchJob(object, {});
  Said(converted.status());
  if (converted.ok()) Must(ReadTrainJob(converted->train_job).ok() && ReadRuntime(converted->runtime).ok());
}

void ARuntime(const Json& object) {
  const auto runtime = ReadRuntime(object);
  Said(runtime.status());
  if (!runtime.ok()) return;
  Must(!runtime->jobs.empty());
  for (const ReplicatedJob& job : runtime->jobs) {
    Must(job.job_template["spec"]["template"]["spec"]["containers"][0]["name"].is_string());
  }
}

// The input is an object with the fields `original` and `patch`.
void Merge(const Json& object) {
  const Json* patch = FindField(object, "patch");
  const Json* original = FindField(object, "original");
  if (patch == nullptr) return;
  const auto merged = StrategicMerge(original == nullptr ? Json() : *original, *patch);
  Said(merged.status());
}

}  // namespace
}  // namespace muster::controller

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::controller;
  const auto [choice, text] = Choose(data, size);
  const auto object = muster::ReadJson(text, kDeepest);
  if (!object.ok()) return 0;
  switch (choice) {
    case 'r':
      ARuntime(*object);
      break;
    case 's':
      AStatus(*object);
      break;
    case 'p':
      APyTorchJob(*object);
      break;
    case 'm':
      Merge(*object);
      break;
    default:
      AJob(*object);
  }
  return 0;
}
