// SPDX-License-Identifier: Apache-2.0
// Facts of this machine: usable CPUs, CPU quota, memory, accelerators; and the worker count of --nproc-per-node.
//
// Sources: torch.cuda's reading of CUDA_VISIBLE_DEVICES, the NVIDIA container toolkit's NVIDIA_VISIBLE_DEVICES, the
// kernel's cgroup v1 and v2 files. Devices are counted by their device files; no vendor's library is loaded.
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

// A count of devices, and one phrase that explains it ("2 in /dev/nvidia*, CUDA_VISIBLE_DEVICES=1 leaves 1").
struct DeviceCount {
  int count = 0;
  std::string looked_at;
};

struct HostFacts {
  int cpus = 1;                         // CPUs this process may run on (affinity); torchrun's "cpu"
  std::optional<double> cpu_quota;      // in CPUs; the smallest quota of this process's cgroup and its ancestors
  std::optional<int64_t> memory_limit;  // bytes; the smallest limit of this process's cgroup and its ancestors
  int64_t memory_total = 0;             // bytes of the machine
  DeviceCount nvidia;
  DeviceCount amd;
  DeviceCount xpu;             // Intel
  bool xpu_asked_for = false;  // ZE_AFFINITY_MASK is set, so the user wants Intel GPUs
  int gpus() const { return nvidia.count > 0 ? nvidia.count : amd.count; }
};

// CPUs of a container: the smaller of `cpus` and the quota rounded up. At least 1.
int ContainerCpus(const HostFacts& facts);

// CPUs this process may run on (sched_getaffinity), sorted.
std::vector<int> UsableCpus();

// `usable_cpus`: the number of UsableCpus(); a parameter so that tests need no machine.
HostFacts ReadHostFacts(const HostFs& fs, const Environment& environment, int usable_cpus);
HostFacts ReadHostFacts();

// Bytes that the processes of this container can still take: MemAvailable of the machine, or what is left below a limit
// of this process's cgroup or of an ancestor. Pages of files that the kernel can drop do not count as used. nullopt:
// the kernel tells none of these.
std::optional<int64_t> FreeMemory(const HostFs& fs = HostFs());
// Bytes of memory that no other process shares with `pid`. nullopt: it is gone, or the kernel does not tell.
std::optional<int64_t> PrivateMemory(int64_t pid, const HostFs& fs = HostFs());

// How many of `present` devices CUDA_VISIBLE_DEVICES=`text` leaves. A list of numbers ends at the first number that is
// negative or not present; a list of "GPU-..." ends at the first other text. A duplicate leaves none. One process sees
// one MIG slice. nullopt: not set, so all.
int VisibleCudaDevices(const std::optional<std::string>& text, int present);

// torchrun's --nproc-per-node: a number, "cpu" (usable CPUs), "gpu", "xpu" or "auto" (GPUs if any, else CPUs). "auto"
// counts Intel GPUs only if ZE_AFFINITY_MASK is set, because many machines have an Intel GPU that is not an
// accelerator. `origin`: the flag or variable that holds `text`, for messages.
struct WorkerCount {
  int count = 1;
  std::string warning;  // there are more workers than GPUs; empty: no warning
};
StatusOr<WorkerCount> ResolveNproc(std::string_view text, const HostFacts& facts,
                                   std::string_view origin = "--nproc-per-node");

}  // namespace muster
