// resources.limits of cpu and memory, by cgroup v2, where this process may make cgroups below its own or beside it:
//
//   <base>/muster-local.<job>/<pod>/<container>     cpu.max, memory.max (without swap), memory.oom.group
//
// The base is the nearest cgroup, from this process' own upwards, that this user may write and whose children can have
// both controllers. A cgroup with processes of its own has no such children: where it holds this process alone (a scope
// of systemd), the process moves into a leaf, and back at the end; one that holds others is passed over.
// As the kubelet does it, a container that needs more memory than it may is killed as a whole.
// Source: Kubernetes 1.36, pkg/kubelet/kuberuntime/kuberuntime_container_linux.go; Linux, cgroup-v2.rst.
//
// Loop thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "controller/local/pod_program.h"

namespace muster::controller {

// What cpu.max and memory.max get. At least 1 ms of CPU in 100 ms, as the kernel wants it.
std::string CpuMax(int64_t milli_cpus);

class PodLimits {
 public:
  // `mount`: "/sys/fs/cgroup"; `own`: this process' line of /proc/self/cgroup that begins with "0::", or all lines.
  // `record`: a file that names what there is to remove, as long as there is.
  PodLimits(std::string mount, std::string own, std::string record, std::string job);
  ~PodLimits();  // removes all that is empty
  PodLimits(const PodLimits&) = delete;
  PodLimits& operator=(const PodLimits&) = delete;

  // Removes what a run that was killed has left, with the processes in it.
  void RemoveLeft();

  // The folder of a container's cgroup, made; empty: neither it nor its pod has limits. FailedPrecondition: this
  // process may make none; says why, and what helps. Other errors: a limit cannot be set.
  StatusOr<std::string> Make(const std::string& pod, const ResourceLimits& of_pod, const std::string& container,
                             const ResourceLimits& limits);
  // Of a container that has ended: the kernel has killed it for memory.
  static bool KilledForMemory(const std::string& folder);
  // A container has ended; its pod's goes, too, where it was the last.
  static void Remove(const std::string& folder);

 private:
  Status Open();
  StatusOr<std::string> FindBase();
  Status MoveInto(const std::string& leaf);
  void MoveBack();

  const std::string mount_, own_, record_, job_;
  std::optional<Status> opened_;
  std::string base_, folder_;  // absolute; empty: there is none
  std::string leaf_;           // that this process has moved into
};

}  // namespace muster::controller
