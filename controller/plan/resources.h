// SPDX-License-Identifier: Apache-2.0
// The resources of a container, from the TrainJob and its runtime, and the number of workers for them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"

namespace muster::controller {

// ResourceRequirements: merges requests and limits of `own` into those of `runtime` by key, claims by name; `own` wins.
Json MergedResources(Json runtime, const Json& own);

// The number of GPUs and slices of GPUs; 1 if only a share of a GPU (memory, cores) is asked for.
int64_t GpusOf(const Json& resources);

// What the files say about the processes of a node. The first that applies: spec.trainer.numProcPerNode;
// kNumProcAnnotation; numProcPerNode of the runtime's policy. Only the annotation's text is unchecked.
struct SaidProcesses {
  std::string text;           // empty: they say nothing
  std::optional<int> number;  // null: `text` is not a whole number from 1 to kMostProcesses
  bool by_job = false;        // not by the runtime
};
SaidProcesses ProcessesSaid(const TrainJob& job, const Runtime& runtime);

// PET_NPROC_PER_NODE of a container with these (merged) resources: a number, or a word that the agent resolves in the
// pod. The first that applies: ProcessesSaid(); "auto" if the container requests GPUs, slices of GPUs or claims; the
// number of other devices; the CPUs, rounded up, at least 1. InvalidArgument: the annotation is neither a number nor a
// known word.
StatusOr<std::string> ProcessesPerNode(const TrainJob& job, const Runtime& runtime, const Json& resources);

}  // namespace muster::controller
