// SPDX-License-Identifier: Apache-2.0
// Decides the life of one pod's containers as the kubelet does: which container starts now, which one stops, and the
// pod's status. Pure: no process, no timer, no clock but the given times. Not thread-safe.
//
// Init containers run one after the other. A sidecar among them continues to run; the next init container waits until
// it has started (startup probe). Then all containers start together, and none waits for a sidecar from then on. When
// they have ended for good, the sidecars stop, the last one first. A container that has ended starts again by its
// restart policy: at once the first time, then after 10 s, doubling to 5 minutes. A run of 10 minutes resets the pause.
// Source: Kubernetes, pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions), kubelet_pods.go (getPhase,
// convertToAPIContainerStatuses), KEP-753.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json_fields.h"
#include "local/pod/program.h"

namespace muster::local {

struct ContainerEnd {
  int exit_code = 0;
  bool oom = false;     // the kernel killed it for memory
  std::string reason;   // "ContainerCannotRun"; empty: derived from `oom` and the code
  std::string message;  // its termination message, or why it could not start
};

class PodLifecycle {
 public:
  // Position of a container: init containers first, then containers.
  using Position = size_t;

  struct Step {
    std::vector<Position> start, stop;  // each is given once; stop: SIGTERM, and SIGKILL after the grace
    std::optional<WallTime> again;      // call Next() again then, even if nothing has happened
  };

  // `program` must outlive the PodLifecycle.
  PodLifecycle(const PodProgram& program, std::string address, WallTime now);

  Step Next(WallTime now);

  void Started(Position container, WallTime now);
  void Ended(Position container, ContainerEnd end, WallTime now);
  void StartupDone(Position container);        // its startup probe has succeeded
  void Ready(Position container, bool ready);  // what its readiness probe says
  // Its startup or liveness probe has failed: the container is stopped. Whatever its exit code, it starts again unless
  // its restart policy is Never. `grace` replaces the pod's.
  void Unhealthy(Position container, std::optional<std::chrono::seconds> grace);
  // Stops all containers. `reason`, `message`: for the pod's status; empty: the pod was deleted. No effect if over().
  void Stop(std::string reason = "", std::string message = "");

  bool over() const;  // no container runs, and none starts again
  bool IsRunning(Position container) const;
  std::chrono::seconds Grace(Position container) const;  // from SIGTERM to SIGKILL
  std::chrono::seconds Pause(Position container) const;  // from its last end to its next start; 0: at once, or never
  const ContainerProgram& Program(Position container) const;
  size_t size() const;  // the number of containers, with init containers

  // The whole status of the pod. `old`: the previous status; a condition that has not changed keeps its time.
  Json Status(const Json& old, WallTime now) const;

 private:
  enum class State { kWaiting, kRunning, kEnded };
  struct Container {
    State state = State::kWaiting;
    bool told_to_start = false, told_to_stop = false;
    bool started = false, ready = false;        // by the probes
    bool unhealthy = false;                     // its startup or liveness probe has failed in this run
    std::optional<std::chrono::seconds> grace;  // that the failed probe sets
    int restarts = 0;
    WallTime begun{}, ended{};        // of the present run, or of the last one
    std::optional<ContainerEnd> end;  // of the last run
    Json last;                        // state at the end of the previous run; null: there was none
    std::chrono::seconds pause{0};    // from the end to the next run
  };

  bool IsInit(Position container) const { return container < program_.init_containers.size(); }
  bool IsSidecar(Position container) const { return Program(container).sidecar; }
  bool StartsAgain(Position container) const;
  bool IsDone(Position container) const;  // it has ended and will not start again
  bool AreContainersDone() const;
  void Begin(Position container, Step* step, WallTime now);
  void End(Position container, Step* step);
  bool NextInit(Step* step, WallTime now);
  bool HasInitFailed() const;  // for good
  bool HasBegun() const;       // a container that is not an init container has started, or is told to
  bool IsInitialized() const;
  bool Runs(bool sidecars) const;  // one of the sidecars, or of the other containers, runs or is told to start
  std::string Phase() const;
  Json StatusOf(Position container) const;
  Json StateOf(Position container) const;

  const PodProgram& program_;
  const std::string address_;
  const WallTime created_;
  std::vector<Container> containers_;
  bool stopped_ = false;
  std::string reason_, message_;
};

}  // namespace muster::local
