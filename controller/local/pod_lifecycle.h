// The life of one pod's containers, as the kubelet decides it: which one starts now, which one stops, what the pod's
// status says. Pure: no process, no timer, no clock but the times given. Not thread-safe.
//
// Init containers come one after the other; a sidecar among them goes on, and the next one waits until it has started
// (startup probe). Then all containers start together; from then on a sidecar holds up nothing. When they have ended
// for good, the sidecars stop, the last one first. A container that has ended starts again by its restart policy: at
// once the first time, then after 10 s, doubling to 5 minutes, and from the beginning once it has run for 10 minutes.
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
#include "controller/local/pod_program.h"

namespace muster::controller {

struct ContainerEnd {
  int exit_code = 0;
  bool oom = false;     // it was killed for memory
  std::string reason;   // "ContainerCannotRun"; empty: by the code
  std::string message;  // its termination message, or why it could not start
};

class PodLifecycle {
 public:
  // Position of a container: init containers first, then containers.
  using Position = size_t;

  struct Step {
    std::vector<Position> start, stop;  // to be told once each; stop: SIGTERM, SIGKILL after its grace
    std::optional<WallTime> again;      // then something is due, even if nothing happens
  };

  // `program` outlives it.
  PodLifecycle(const PodProgram& program, std::string address, WallTime now);

  Step Next(WallTime now);

  void Started(Position container, WallTime now);
  void Ended(Position container, ContainerEnd end, WallTime now);
  void StartupDone(Position container);        // its startup probe has succeeded
  void Ready(Position container, bool ready);  // what its readiness probe says
  // Its startup or liveness probe has failed: it is to stop, and starts again unless its restart policy is Never, with
  // whatever code it ends. `grace`: in place of the pod's.
  void Unhealthy(Position container, std::optional<std::chrono::seconds> grace);
  // All stop. `reason`, `message`: of the pod; empty: it was deleted. Nothing happens where it is over.
  void Stop(std::string reason = "", std::string message = "");

  bool over() const;  // no container runs, and none starts again
  bool IsRunning(Position container) const;
  std::chrono::seconds Grace(Position container) const;  // from SIGTERM to SIGKILL
  const ContainerProgram& Program(Position container) const;
  size_t size() const;  // containers, init containers among them

  // The pod's status, whole. `old`: the one before, whose conditions keep their times.
  Json Status(const Json& old, WallTime now) const;

 private:
  enum class State { kWaiting, kRunning, kEnded };
  struct Container {
    State state = State::kWaiting;
    bool told_to_start = false, told_to_stop = false;
    bool started = false, ready = false;        // by the probes
    bool unhealthy = false;                     // a probe has ended this run
    std::optional<std::chrono::seconds> grace;  // of that probe
    int restarts = 0;
    WallTime begun{}, ended{};        // of the run that is under way, or the last one
    std::optional<ContainerEnd> end;  // of the last run
    Json last;                        // state of the run before; null: there was none
    std::chrono::seconds pause{0};    // from the end to the next run
  };

  bool IsInit(Position container) const { return container < program_.init_containers.size(); }
  bool IsSidecar(Position container) const { return Program(container).sidecar; }
  bool StartsAgain(Position container) const;
  bool IsDone(Position container) const;  // it has ended, and does not start again
  bool AreContainersDone() const;
  void Begin(Position container, Step* step, WallTime now);
  void End(Position container, Step* step);
  bool NextInit(Step* step, WallTime now);
  bool HasInitFailed() const;  // for good
  bool HasBegun() const;       // one of the pod's containers has run, or is told to
  bool IsInitialized() const;
  bool Runs(bool sidecars) const;  // one of the sidecars, or one of the others, runs or is told to
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

}  // namespace muster::controller
