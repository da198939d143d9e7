// SPDX-License-Identifier: Apache-2.0
// Sets resources.limits of cpu and memory by cgroup v2, if this process may make cgroups below or beside its own:
//
//   <base>/muster-local.<job>/<pod>/<container>     cpu.max, memory.max (without swap), memory.oom.group
//
// The base is the nearest cgroup, from this process' own one upwards, that this user may write and whose children can
// have both controllers, which a cgroup with processes of its own prevents. If this process is alone in its cgroup (a
// scope of systemd), it moves into a child cgroup, and back at the end. A cgroup with others is passed over. As with
// the kubelet, a container that needs more memory than its limit is killed as a whole.
// Source: Kubernetes 1.36, pkg/kubelet/kuberuntime/kuberuntime_container_linux.go; Linux, cgroup-v2.rst.
//
// Loop thread only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "local/pod/program.h"

namespace muster::local {

// The text for cpu.max. At least 1 ms of CPU in 100 ms, the kernel's minimum.
std::string CpuMax(int64_t milli_cpus);

class PodLimits {
 public:
  // `mount`: "/sys/fs/cgroup"; `own`: this process' line of /proc/self/cgroup that begins with "0::", or all lines.
  // `record`: a file that holds the path of the run's cgroup as long as that exists. `companion`: a process that counts
  // as part of this one, and moves with it; 0: none.
  PodLimits(std::string mount, std::string own, std::string record, std::string job, pid_t companion = 0);
  ~PodLimits();  // removes the run's cgroups without processes
  PodLimits(const PodLimits&) = delete;
  PodLimits& operator=(const PodLimits&) = delete;

  // Removes the cgroups of a previous run that was killed, and kills the processes in them.
  void RemoveLeft();

  // Creates the cgroup of a container. Returns its folder; empty: neither the container nor its pod has limits.
  // FailedPrecondition: this process may make none; says why, and the remedy. Other errors: a limit cannot be set.
  StatusOr<std::string> Make(const std::string& pod, const ResourceLimits& of_pod, const std::string& container,
                             const ResourceLimits& limits);
  // Whether the kernel has killed a process of the container for memory.
  static bool KilledForMemory(const std::string& folder);
  // Removes the cgroup of a container that has ended, and its pod's if that is empty now.
  static void Remove(const std::string& folder);

 private:
  Status Open();
  StatusOr<std::string> FindBase();
  Status MoveInto(const std::string& base);
  Status MoveTo(const std::string& cgroup);
  void MoveBack();

  const std::string mount_, own_, record_, job_;
  const pid_t companion_;
  std::optional<Status> opened_;
  std::string base_, folder_;  // absolute; empty: not found yet, or not made
  std::string leaf_;           // the child cgroup that this process has moved into; empty: none
};

}  // namespace muster::local
