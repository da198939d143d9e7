// When a container is asked how it is, and what its answers come to, as the kubelet decides it. Pure.
//
// The first question comes initialDelaySeconds after the container's start, the others every periodSeconds; liveness
// and readiness not before the startup probe has succeeded. failureThreshold (successThreshold) failures (successes) in
// a row make a verdict, and each further one repeats it. A question that could not be put (kUnknown) counts as none.
// After the verdict that startup has succeeded, or that startup or liveness has failed, nobody asks until the container
// starts anew. Unlike the kubelet's, questions have no random phase.
// Source: Kubernetes 1.36, pkg/kubelet/prober/worker.go (run, doProbe), prober_manager.go (UpdatePodStatus).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "controller/local/pod_program.h"

namespace muster::controller {

enum class ProbeKind { kStartup, kLiveness, kReadiness };
std::string_view NameOf(ProbeKind kind);  // "startup"

struct ProbeAnswer {
  enum class Kind { kSuccess, kFailure, kUnknown } kind = Kind::kSuccess;
  std::string said;  // why it is no success, for people
};

// Of one probe, since its container has started.
struct ProbeState {
  std::optional<ProbeAnswer::Kind> last;  // that counted
  int run = 0;                            // so many alike
};

struct ProbeStep {
  enum class Verdict { kNone, kSuccess, kFailure } verdict = Verdict::kNone;
  std::optional<TimePoint> next;  // the next question
};

// The moment of the first question. `begun`: the container's start; `asks`: when its startup probe has succeeded, or
// its start.
TimePoint FirstQuestion(const Probe& probe, TimePoint begun, TimePoint asks);

// The answer to the question of the moment `asked` has come: now.
ProbeStep CountAnswer(const Probe& probe, ProbeKind kind, ProbeAnswer::Kind answer, TimePoint asked, TimePoint now,
                      ProbeState* state);

}  // namespace muster::controller
