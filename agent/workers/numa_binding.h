// SPDX-License-Identifier: Apache-2.0
// Which CPUs a worker is bound to (--numa-binding). Source: torch/numa/binding.py of torch 2.14.
//
//   node          all CPUs of its GPU's NUMA node
//   socket        all CPUs of every NUMA node in the same socket
//   exclusive     its share of the node's physical cores (with their hyperthreads): an even split among its workers
//   core-complex  the CPUs of one last-level cache of the node; the workers of a node take the caches in turn
// Only CPUs that this process may use count. A worker's GPU is the entry [local rank] of CUDA_VISIBLE_DEVICES or,
// without that variable, the GPU with the number of the local rank, in the order of PCI addresses. Without GPUs the
// workers are spread over the nodes in equal blocks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/host_fs.h"
#include "base/status.h"

namespace muster::agent {

// Sorted CPU numbers, at least one. InvalidArgument: unknown mode. FailedPrecondition: too few facts, or no usable CPU.
StatusOr<std::vector<int>> NumaCpus(std::string_view mode, int local_rank, int nproc,
                                    const std::vector<int>& usable_cpus,
                                    const std::optional<std::string>& visible_devices, const HostFs& fs);

}  // namespace muster::agent
