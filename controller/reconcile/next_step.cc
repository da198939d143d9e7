// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/next_step.h"

#include <algorithm>
#include <csignal>
#include <string_view>

#include "base/exit_codes.h"
#include "base/text.h"

namespace muster::controller {
namespace {

constexpr int kSignals = 128;

bool HasAny(std::string_view text, std::initializer_list<std::string_view> words) {
  const std::string lower = Lower(text);
  return std::any_of(words.begin(), words.end(),
                     [&lower](std::string_view word) { return lower.find(word) != std::string::npos; });
}

// The command that shows what the container has printed.
std::string Logs(const Failure& failure, const ObservedPod& pod) {
  if (!pod.logs.empty()) {
    return failure.node_rank ? fmt::format("see {} --node {}", pod.logs, *failure.node_rank) : "see " + pod.logs;
  }
  const std::string ns = pod.meta.ns.empty() ? "" : fmt::format("-n {} ", pod.meta.ns);
  if (failure.container.empty()) return fmt::format("see kubectl describe pod {}{}", ns, pod.meta.name);
  const bool previous = std::any_of(pod.ends.begin(), pod.ends.end(), [&failure](const ObservedEnd& end) {
    return end.container == failure.container && end.started_again && !end.waits_to_start;
  });
  return fmt::format("see kubectl logs {}{} -c {}{}", ns, pod.meta.name, failure.container,
                     previous ? " --previous" : "");
}

std::string MoreMemory(const Failure& failure, const ObservedPod& pod) {
  for (const MemoryLimit& limit : pod.memory_limits) {
    if (limit.container != failure.container) continue;
    return fmt::format("raise resources.limits.memory of container {} (it was {})", limit.container, limit.memory);
  }
  return fmt::format("its node had too little memory: set resources.requests.memory of container {}",
                     failure.container);
}

// What the pod's own end asks for. Empty: nothing special.
std::string AboutThePod(const Failure& failure) {
  if (failure.reason == "Evicted") {
    return HasAny(failure.message, {"exceeds"})
               ? "raise the limit that it exceeded"
               : "request what the pod needs (resources.requests), so that its node keeps it";
  }
  if (failure.reason == "DeadlineExceeded") return "raise activeDeadlineSeconds of the pod";
  if (failure.reason == "PreemptionByScheduler") return "give the job a higher priority (priorityClassName)";
  return "";
}

}  // namespace

bool NeverStarted(const ObservedEnd& end) {
  if (end.unseen) return false;
  if (!end.message || !end.message->cause) return end.reason == "StartError" || end.reason == "ContainerCannotRun";
  const int code = end.message->cause->exit_code;
  return end.message->cause->pid == 0 && end.message->exit_class == ExitClass::kFatal &&
         (code == kExitBadConfiguration || code == kExitNotExecutable || code == kExitNotFound);
}

std::string_view NextStepOfWait(std::string_view reason, std::string_view message) {
  static constexpr std::string_view kImage = "correct the image, or the credentials of its registry (imagePullSecrets)";
  static constexpr std::string_view kObject = "once it exists the pod starts";
  static constexpr struct {
    std::string_view reason, begin, step;  // `begin`: of the message
  } kSteps[] = {
      {"ErrImagePull", "", kImage},
      {"ImagePullBackOff", "", kImage},
      {"InvalidImageName", "", "correct the name of the image"},
      {"ErrImageNeverPull", "", "load the image on the node, or change imagePullPolicy"},
      {"CreateContainerConfigError", "", kObject},
      {"Failed", "Failed to pull image", kImage},  // the kubelet's Event for each of these
      {"Failed", "Error: configmap ", kObject},
      {"Failed", "Error: secret ", kObject},
      {"FailedMount", "", "once it can be mounted the pod starts"},
      {"Unschedulable", "", "the pod starts once a node fits; else change what it asks for"},
  };
  for (const auto& step : kSteps) {
    if (step.reason == reason && message.starts_with(step.begin)) return step.step;
  }
  return "";
}

std::string NextStep(const Failure& failure, const ObservedPod& pod, bool never_started) {
  if (failure.oom) return MoreMemory(failure, pod);
  if (std::string step = AboutThePod(failure); !step.empty()) return step;
  if (!failure.counted) return "";
  if (never_started) return fmt::format("correct the command of container {}, or its image", failure.container);
  std::string logs = Logs(failure, pod);
  if (failure.reason == "Unhealthy") {
    return fmt::format("{}; if the container was only slow, raise failureThreshold or timeoutSeconds of its probe",
                       logs);
  }
  if (failure.exit_code == kSignals + SIGBUS || HasAny(failure.message, {"shared memory (shm)", "/dev/shm"})) {
    return fmt::format("mount an emptyDir of medium Memory at /dev/shm of container {}", failure.container);
  }
  return logs;
}

}  // namespace muster::controller
