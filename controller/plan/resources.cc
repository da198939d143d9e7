// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/resources.h"

#include <algorithm>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/limits.h"
#include "controller/api/quantity.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

// The amount of a resource, in whole units: its request, else its limit.
int64_t UnitsOf(const Json& resources, const char* name) {
  for (const char* kind : {"requests", "limits"}) {
    const auto read = ReadQuantity(PartOf(resources, kind, name));
    if (read.ok() && read->Units() > 0) return read->Units();
  }
  return 0;
}

bool Names(std::string_view resource, std::string_view word) { return Lower(resource).find(word) != std::string::npos; }

// A share of a GPU: nvidia.com/gpumem, nvidia.com/gpucores (HAMi), volcano.sh/vgpu-memory,
// aliyun.com/gpu-core.percentage, gpu.intel.com/millicores. Its amount is not a number of devices.
bool IsShareOfGpu(std::string_view resource) {
  if (!Names(resource, "gpu")) return false;
  for (const char* word : {"mem", "core", "percent", "ratio", "monitoring"}) {
    if (Names(resource, word)) return true;
  }
  return false;
}

bool IsGpu(std::string_view resource) {
  return (Names(resource, "gpu") && !IsShareOfGpu(resource)) || resource.starts_with("nvidia.com/mig-");
}

// A device that is not a GPU. One worker drives one device.
bool IsOtherDevice(std::string_view resource) {
  const std::string name = Lower(resource);
  return name == "google.com/tpu" || name.starts_with("huawei.com/ascend") || name.starts_with("habana.ai/gaudi") ||
         name == "aws.amazon.com/neuroncore";
}

template <class Wanted>
int64_t Sum(const Json& resources, Wanted wanted) {
  std::vector<std::string> names;
  for (const char* kind : {"requests", "limits"}) {
    for (const auto& [name, quantity] : MapField(resources, kind).items()) {
      if (wanted(name) && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  int64_t sum = 0;
  for (const std::string& name : names) sum += std::min<int64_t>(UnitsOf(resources, name.c_str()), 1'000'000);
  return sum;
}

}  // namespace

Json MergedResources(Json runtime, const Json& own) {
  if (!runtime.is_object()) runtime = Json::object();
  if (!own.is_object()) return runtime;
  for (const char* kind : {"requests", "limits"}) {
    const Json& quantities = PartOf(own, kind);
    if (!quantities.is_object()) continue;
    Json& merged = runtime[kind];
    if (!merged.is_object()) merged = Json::object();
    merged.update(quantities);
  }
  UpsertAllNamed(ListField(own, "claims"), "claims", &runtime);
  return runtime;
}

int64_t GpusOf(const Json& resources) {
  const int64_t gpus = Sum(resources, IsGpu);
  return gpus == 0 && Sum(resources, IsShareOfGpu) > 0 ? 1 : gpus;
}

SaidProcesses ProcessesSaid(const TrainJob& job, const Runtime& runtime) {
  SaidProcesses said{.by_job = true};
  if (job.trainer && job.trainer->num_proc_per_node) {
    said.text = fmt::format("{}", *job.trainer->num_proc_per_node);
  } else if (const std::string_view word = job.meta.Annotation(kNumProcAnnotation); !word.empty()) {
    said.text = word;
  } else {
    const auto number = IntField(runtime.ml_policy.policy, "numProcPerNode");
    said = {.text = number ? fmt::format("{}", *number) : TextField(runtime.ml_policy.policy, "numProcPerNode")};
  }
  const auto number = ParseInt(said.text);
  if (number && *number >= 1 && *number <= kMostProcesses) said.number = static_cast<int>(*number);
  return said;
}

StatusOr<std::string> ProcessesPerNode(const TrainJob& job, const Runtime& runtime, const Json& resources) {
  const SaidProcesses said = ProcessesSaid(job, runtime);
  if (said.number || said.text == "auto" || said.text == "cpu" || said.text == "gpu") return said.text;
  if (!said.text.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("metadata.annotations.{}: {} {}", kNumProcAnnotation, Quoted(said.text), kNoProcesses));
  }
  if (GpusOf(resources) > 0 || !PartOf(resources, "claims").empty()) return "auto";
  if (const int64_t devices = Sum(resources, IsOtherDevice); devices > 0) return fmt::format("{}", devices);
  return fmt::format("{}", std::max<int64_t>(1, UnitsOf(resources, "cpu")));
}

}  // namespace muster::controller
