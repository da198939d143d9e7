// What this machine has: usable CPUs, their quota, memory, accelerators; and what --nproc-per-node means on it.
//
// Sources: torch.cuda's reading of CUDA_VISIBLE_DEVICES, the NVIDIA container toolkit's NVIDIA_VISIBLE_DEVICES, the
// kernel's cgroup v1 and v2 files. No library of a vendor is loaded: device files are counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/environment.h"
#include "base/host_fs.h"
#include "base/host_names.h"
#include "base/status.h"

namespace muster {

// A count of devices and, in one phrase, what was looked at ("2 in /dev/nvidia*, CUDA_VISIBLE_DEVICES=1 leaves 1").
struct DeviceCount {
  int count = 0;
  std::string looked_at;
};

struct HostFacts {
  int cpus = 1;                         // CPUs this process may run on (affinity); torchrun's "cpu"
  std::optional<double> cpu_quota;      // CPUs' worth of time a cgroup allows; the smallest on the way up
  std::optional<int64_t> memory_limit;  // bytes; the smallest cgroup limit on the way up
  int64_t memory_total = 0;             // bytes of the machine
  DeviceCount nvidia;
  DeviceCount amd;
  DeviceCount xpu;             // Intel
  bool xpu_asked_for = false;  // ZE_AFFINITY_MASK is set: somebody means Intel GPUs
  int gpus() const { return nvidia.count > 0 ? nvidia.count : amd.count; }
};

// What a container has: `cpus`, or its quota in whole CPUs where that is less. At least 1.
int ContainerCpus(const HostFacts& facts);

// CPUs this process may run on (sched_getaffinity), sorted.
std::vector<int> UsableCpus();

// `usable_cpus`: as above; given so that tests need no machine.
HostFacts ReadHostFacts(const HostFs& fs, const Environment& environment, int usable_cpus);
HostFacts ReadHostFacts();

// How many devices of `present` the text of CUDA_VISIBLE_DEVICES leaves: a list of numbers ends at the first that is
// negative or not present, a list of "GPU-..." at the first other text, a number given twice leaves none, of MIG slices
// one process sees one. nullopt text: all.
int VisibleCudaDevices(const std::optional<std::string>& text, int present);

// torchrun's --nproc-per-node: a number, "cpu" (usable CPUs), "gpu", "xpu", "auto" (GPUs if any, else CPUs; Intel GPUs
// only where ZE_AFFINITY_MASK says that they are meant, because many machines have one that is no accelerator).
// `origin`: the flag or variable that said it, for messages.
struct WorkerCount {
  int count = 1;
  std::string warning;  // empty: none. More workers than GPUs
};
StatusOr<WorkerCount> ResolveNproc(std::string_view text, const HostFacts& facts,
                                   std::string_view origin = "--nproc-per-node");

}  // namespace muster
