// SPDX-License-Identifier: Apache-2.0
// Decides when a probe of a container runs and what its results mean, as the kubelet does. Pure.
//
// A probe first runs initialDelaySeconds after the container's start, then every periodSeconds; liveness and readiness
// probes not before the startup probe has succeeded. failureThreshold (successThreshold) failures (successes) in a row
// make a verdict, and each further one repeats it. A result kUnknown counts neither way. After the verdict that startup
// has succeeded, or that startup or liveness has failed, the probe does not run again until the container is restarted.
//
// Unlike in the kubelet, there is no random delay. And a readiness probe that has not succeeded yet also runs between
// its periods, after 100 ms, 200 ms and so on: a container that is ready soon counts as ready soon. Of these answers
// only a success counts.
//
// Source: Kubernetes 1.36, pkg/kubelet/prober/worker.go (run, doProbe), prober_manager.go (UpdatePodStatus).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "local/pod/program.h"

namespace muster::local {

enum class ProbeKind { kStartup, kLiveness, kReadiness };
std::string_view NameOf(ProbeKind kind);  // "startup"

struct ProbeAnswer {
  enum class Kind { kSuccess, kFailure, kUnknown } kind = Kind::kSuccess;
  std::string said;  // why it is not a success, for people
};

inline constexpr std::chrono::milliseconds kFirstEarly{100};

// The state of one probe since its container has started.
struct ProbeState {
  std::optional<ProbeAnswer::Kind> last;  // the last answer that counted
  int run = 0;                            // how many answers like it came in a row
  bool succeeded = false;                 // once at least
  std::optional<TimePoint> due;           // before that: when the next failure counts
  Duration early = kFirstEarly;           // before that: from this question to the next one
};

struct ProbeStep {
  enum class Verdict { kNone, kSuccess, kFailure } verdict = Verdict::kNone;
  std::optional<TimePoint> next;  // when the probe runs next; nullopt: never
};

// When the probe runs first. `begun`: the container's start. `asks`: when its startup probe succeeded, or its start.
TimePoint FirstQuestion(const Probe& probe, TimePoint begun, TimePoint asks);

// Counts an `answer` that has come `now`, of a probe that ran at `asked`.
ProbeStep CountAnswer(const Probe& probe, ProbeKind kind, ProbeAnswer::Kind answer, TimePoint asked, TimePoint now,
                      ProbeState* state);

}  // namespace muster::local
