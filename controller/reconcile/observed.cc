// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/observed.h"

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/plan/agent.h"
#include "controller/plan/elastic.h"
#include "controller/plan/pod_fields.h"
#include "controller/plan/pod_object.h"
#include "controller/plan/pytorch_plan.h"

namespace muster::controller {
namespace {

constexpr char kJobNameLabel[] = "batch.kubernetes.io/job-name";
constexpr int kMostAttempts = 1'000'000;
constexpr size_t kMostMessage = 4096;  // bytes of a termination message: the kubelet cuts the rest off
constexpr size_t kMostQuantity = 32;   // bytes of a quantity: more digits than any machine has
constexpr size_t kMostText = 1024;     // bytes of another program's termination message, or of a reason to wait

// The labels and annotations that are read of pods and Jobs. A pod has about thirty, and users may write long ones.
constexpr std::string_view kKeys[] = {kJobNameLabel,       kRestartAttemptLabel,    kReplicaTypeLabel,
                                      kIndexLabel,         kReplicaIndexLabel,      kJobSetNameLabel,
                                      kTrainingJobLabel,   kAttemptAnnotation,      kEndedAnnotation,
                                      kChildTtlAnnotation, kRestartsLeftAnnotation, kNodesAnnotation,
                                      kPodGroupAnnotation, kExcludedNodeAnnotation};

bool IsTrue(const ObjectView& condition, std::string_view type) {
  return condition.Is("type", type) && condition.Is("status", "True");
}

int AttemptOf(const Meta& meta) {
  const std::string_view label = meta.Label(kRestartAttemptLabel);
  const auto number = ParseInt(label.empty() ? meta.Annotation(kAttemptAnnotation) : label);
  return number && *number >= 0 && *number <= kMostAttempts ? static_cast<int>(*number) : 0;
}

// Keeps only the labels and annotations that are read later.
void Trim(Meta* meta) {
  std::erase_if(meta->labels,
                [](const auto& label) { return label.first != kJobSetNameLabel && label.first != kTrainingJobLabel; });
  std::erase_if(meta->annotations, [](const auto& annotation) {
    return annotation.first != kRestartsLeftAnnotation && annotation.first != kNodesAnnotation &&
           annotation.first != kPodGroupAnnotation;
  });
}

// Cuts text of JSON, which is UTF-8, between characters to kMostText bytes.
std::string Bounded(std::string text) {
  text.resize(Beginning(text, kMostText).size());
  return text;
}

std::optional<int> IndexOf(const Meta& meta) {
  const std::string_view completion = meta.Label(kIndexLabel);
  const auto index = ParseInt(completion.empty() ? meta.Label(kReplicaIndexLabel) : completion);
  if (!index || *index < 0 || *index > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*index);
}

// Whether the selector of a Service names the pods of its labels: of the job, or of one replica.
bool SelectsByLabels(const Meta& meta, const Json& selector) {
  for (const char* key : {kJobSetNameLabel, kTrainingJobLabel, kReplicaTypeLabel, kReplicaIndexLabel}) {
    if (TextField(selector, key) != meta.Label(key)) return false;
  }
  return std::all_of(selector.items().begin(), selector.items().end(), [&](const auto& item) {
    return meta.Label(item.key()) == TextField(selector, item.key().c_str());
  });
}

// What containerd and the kubelet report of a container whose end they did not see, or which containerd could not start
// because it stopped itself. What runc refuses, it says by "OCI runtime".
bool IsUnseen(const ObservedEnd& end, std::string_view text) {
  return end.reason == "ContainerStatusUnknown" || (end.reason == "Unknown" && end.exit_code == 255) ||
         (end.reason == "StartError" && text.find("OCI runtime") == std::string_view::npos);
}

// The end of a container. Of a container that runs again: its last end.
std::optional<ObservedEnd> EndOf(const ObjectView& status, bool init) {
  const bool started_again = !status.Part("state").Has("terminated");
  const ObjectView state = status.Part(started_again ? "lastState" : "state");
  if (!state.Has("terminated")) return std::nullopt;
  const ObjectView ended = state.Part("terminated");
  ObservedEnd end;
  end.started_again = started_again;
  end.container = status.Text("name");
  end.init = init;
  end.exit_code = ended.Number("exitCode");
  end.reason = ended.Text("reason");
  end.finished = ended.Time("finishedAt");
  std::string text = ended.Text("message");
  auto message = ParseTerminationMessage(text);
  // Any process of the container may have written it. If it names another exit code, it is kept as text only. An agent
  // writes it when all its workers have ended: it counts if nobody saw the container's own end.
  end.unseen = IsUnseen(end, text);
  if (message.ok() && (message->exit_code == end.exit_code || end.unseen) && text.size() <= kMostMessage) {
    end.exit_code = message->exit_code;
    end.message = *std::move(message);
    end.unseen = false;
  } else {
    end.text = Bounded(std::move(text));
  }
  return end;
}

// backoffLimit, if it alone decides when the Job fails. nullopt: a policy decides, or the kubelet restarts containers.
std::optional<int> BackoffLimit(const ObjectView& spec) {
  for (const char* other : {"podFailurePolicy", "backoffLimitPerIndex", "successPolicy"}) {
    if (spec.Has(other)) return std::nullopt;
  }
  if (!spec.Part("template").Part("spec").Is("restartPolicy", "Never")) return std::nullopt;
  return spec.Int("backoffLimit");
}

// The container that decides how the pod ends, if it has others.
std::string DecidingContainerOf(const ObjectView& spec, bool of_pytorch_job) {
  const std::vector<ObjectView> containers = spec.List("containers");
  if (containers.size() < 2) return "";
  const std::string_view first = of_pytorch_job ? kPyTorchContainer : kTrainerContainer;
  for (const std::string_view name : {first, std::string_view(kDatasetContainer), std::string_view(kModelContainer)}) {
    const auto is_it = [name](const ObjectView& container) { return container.Is("name", name); };
    if (std::any_of(containers.begin(), containers.end(), is_it)) return std::string(name);
  }
  return "";
}

// Reasons to wait that pass by themselves.
bool IsOnItsWay(std::string_view reason) { return reason == "ContainerCreating" || reason == "PodInitializing"; }

// When the Event last happened. The newer API of Events has eventTime and series.
WallTime LastOf(const Json& event, const Meta& meta) {
  for (const auto& time : {TimeField(PartOf(event, "series"), "lastObservedTime"), TimeField(event, "lastTimestamp"),
                           TimeField(event, "eventTime"), meta.created}) {
    if (time) return *time;
  }
  return WallTime{};
}

void ReadConditions(const ObjectView& status, ObservedPod* pod) {
  for (const ObjectView& condition : status.List("conditions")) {
    pod->moved = std::max(pod->moved, condition.Time("lastTransitionTime").value_or(WallTime{}));
    if (IsTrue(condition, "Ready")) pod->ready = true;
    if (IsTrue(condition, "DisruptionTarget")) {
      pod->disrupted = true;
      pod->disruption = condition.Text("reason");
      pod->disruption_message = Bounded(condition.Text("message"));
    }
    if (condition.Is("type", "PodReadyToStartContainers") && condition.Is("status", "False")) {
      pod->stranded = condition.Time("lastTransitionTime");
    }
    if (!condition.Is("type", "PodScheduled") || !condition.Is("status", "False")) continue;
    const std::string reason = condition.Text("reason");
    if (reason.empty() || reason == "SchedulingGated") continue;
    pod->waiting_reason = reason;
    pod->waiting = Bounded(fmt::format("{}: {}", reason, condition.Text("message")));
  }
}

// Whether the container, which has ended, failed.
bool EndedBadly(const ObjectView& status) { return status.Part("state").Part("terminated").Number("exitCode") != 0; }

void ReadContainers(const ObjectView& status, const char* kind, const std::set<std::string>& sidecars,
                    ObservedPod* pod) {
  const bool init = kind[0] == 'i';
  const std::vector<ObjectView> containers = status.List(kind);
  for (const ObjectView& container : containers) {
    const std::string name = container.Text("name");
    const ObjectView state = container.Part("state");
    const bool runs = state.Has("running");
    auto end = EndOf(container, init);
    if (end) {
      pod->moved = std::max(pod->moved, end->finished.value_or(WallTime{}));
      end->waits_to_start = !runs && end->exit_code != 0 && pod->restarts_failed && pod->phase != "Failed";
    }
    if (end && (!init || (!sidecars.contains(name) && end->exit_code != 0))) {
      pod->restarts += std::min(container.Number("restartCount"), kMostAttempts) + (end->waits_to_start ? 1 : 0);
    }
    // The pod has failed, but its only container had told its success.
    if (end && !init && end->exit_code == 0 && containers.size() == 1 && EndedBadly(container)) pod->decides = name;
    if (end) pod->ends.push_back(*std::move(end));
    if (runs && !init && !pod->decides.empty()) pod->running.push_back(name);
    if (runs) pod->moved = std::max(pod->moved, state.Part("running").Time("startedAt").value_or(WallTime{}));
    pod->ran = pod->ran || !pod->ends.empty() || runs;
    const ObjectView waiting = state.Part("waiting");
    const std::string reason = waiting.Text("reason");
    if (!pod->waiting.empty() || reason.empty() || IsOnItsWay(reason)) continue;
    pod->waiting_reason = reason;
    pod->waiting = Bounded(fmt::format("{}: container {}: {}", reason, name, waiting.Text("message")));
  }
}

// Sets what is said of lost sandboxes. The kubelet runs an init container that had succeeded again only in a new
// sandbox.
void FindLostSandbox(const ObjectView& status, const std::set<std::string>& sidecars, ObservedPod* pod) {
  std::optional<WallTime> begun;  // when an init container last began to run again
  for (const ObjectView& container : status.List("initContainerStatuses")) {
    const int again = std::min(container.Number("restartCount"), kMostAttempts);
    if (sidecars.contains(container.Text("name")) || again == 0) continue;
    if (container.Text("name") == kAgentContainer) pod->sandboxes_lost = again;
    const ObjectView state = container.Part("state");
    begun = std::max(begun, state.Part(state.Has("running") ? "running" : "terminated").Time("startedAt"));
  }
  for (ObservedEnd& end : pod->ends) end.sandbox_lost = !end.init && begun && end.finished && *end.finished <= *begun;
}

// The first container that waits. Empty: none does, or an init container works.
std::string FirstToStart(const ObjectView& status, const std::set<std::string>& sidecars) {
  for (const char* kind : {"initContainerStatuses", "containerStatuses"}) {
    for (const ObjectView& container : status.List(kind)) {
      const std::string name = container.Text("name");
      const ObjectView state = container.Part("state");
      if (state.Has("waiting")) return name;
      if (kind[0] == 'i' && state.Has("running") && !sidecars.contains(name)) return "";
    }
  }
  return "";
}

// ObservedPod::will_fail. A container with a restart policy of its own may start again, whatever the pod's says.
bool WillFail(const ObjectView& spec, const ObjectView& status, const std::set<std::string>& sidecars) {
  if (!spec.Is("restartPolicy", "Never")) return false;
  for (const char* kind : {"initContainers", "containers"}) {
    for (const ObjectView& container : spec.List(kind)) {
      if (container.Has("restartPolicy") && !sidecars.contains(container.Text("name"))) return false;
    }
  }
  for (const ObjectView& container : status.List("initContainerStatuses")) {
    if (!sidecars.contains(container.Text("name")) && EndedBadly(container)) return true;
  }
  const std::vector<ObjectView> containers = status.List("containerStatuses");
  const auto ended = [](const ObjectView& container) { return container.Part("state").Has("terminated"); };
  return containers.size() == spec.Count("containers") && std::all_of(containers.begin(), containers.end(), ended) &&
         std::any_of(containers.begin(), containers.end(), EndedBadly);
}

// Whether the pod, which has no sandbox, has had one, and the kubelet makes no other (ObservedPod::stranded).
bool IsStranded(const ObservedPod& pod, const ObjectView& spec, const ObjectView& status) {
  if (pod.phase != "Pending" || !spec.Is("restartPolicy", "Never")) return false;
  for (const char* kind : {"initContainerStatuses", "containerStatuses"}) {
    for (const ObjectView& container : status.List(kind)) {
      if (container.Has("containerID")) return true;
    }
  }
  return false;
}

void ReadMemoryLimits(const ObjectView& spec, ObservedPod* pod) {
  for (const char* kind : {"initContainers", "containers"}) {
    for (const ObjectView& container : spec.List(kind)) {
      std::string memory = container.Part("resources").Entry("limits", "memory");
      if (memory.empty() || memory.size() > kMostQuantity) continue;
      pod->memory_limits.push_back({container.Text("name"), std::move(memory)});
    }
  }
}

void ReadPending(const ObjectView& spec, const ObjectView& status, const std::set<std::string>& sidecars,
                 ObservedPod* pod) {
  if (pod->node.empty()) {
    pod->gated = spec.Count("schedulingGates") > 0;
    const std::string scheduler = spec.Text("schedulerName");
    const std::string group = spec.Part("schedulingGroup").Text("podGroupName");
    pod->pending = pod->gated
                       ? fmt::format("its scheduling gates are not removed: {}", NamesIn(spec, "schedulingGates"))
                       : fmt::format("scheduler {} has not placed it{}",
                                     scheduler.empty() ? "default-scheduler" : scheduler.c_str(),
                                     group.empty() ? ""
                                                   : fmt::format("; it waits for PodGroup {} to exist and to have as "
                                                                 "many pods as it needs",
                                                                 group));
  } else if (const std::string first = FirstToStart(status, sidecars); !first.empty()) {
    const std::vector<ObjectView> conditions = status.List("conditions");
    const bool has_sandbox = std::any_of(conditions.begin(), conditions.end(), [](const ObjectView& condition) {
      return IsTrue(condition, "PodReadyToStartContainers");
    });
    pod->pending =
        fmt::format("container {} has not started on node {}; {}", first, pod->node,
                    has_sandbox ? "its image may not be there yet" : "volumes, network or image are missing");
  } else if (pod->phase == "Pending" && status.Count("containerStatuses") == 0) {
    pod->pending = fmt::format("node {} has not begun with it", pod->node);
  }
  pod->pending = Bounded(std::move(pod->pending));
}

}  // namespace

std::vector<std::pair<int, int>> ReadIndexRanges(const std::string& text) {
  std::vector<std::pair<int, int>> ranges;
  for (std::string_view part : Split(text, ',')) {
    const size_t dash = part.find('-');
    const auto from = ParseInt(part.substr(0, dash));
    const auto to = dash == std::string_view::npos ? from : ParseInt(part.substr(dash + 1));
    constexpr int64_t kMost = std::numeric_limits<int>::max();
    if (!from || !to || *from < 0 || *to < *from || *to > kMost) continue;
    ranges.emplace_back(static_cast<int>(*from), static_cast<int>(*to));
  }
  return ranges;
}

std::string WriteIndexes(const std::set<int>& indexes) {
  std::vector<std::string> parts;
  for (auto it = indexes.begin(); it != indexes.end();) {
    const int from = *it;
    int to = from;
    while (++it != indexes.end() && *it == to + 1) ++to;
    if (to == from) {
      parts.push_back(fmt::format("{}", from));
    } else {
      parts.push_back(fmt::format("{}{}{}", from, to == from + 1 ? ',' : '-', to));
    }
  }
  return Join(parts, ",");
}

bool HasCompleted(const ObservedJob& job, int index) {
  return std::any_of(job.completed.begin(), job.completed.end(),
                     [index](const auto& range) { return range.first <= index && index <= range.second; });
}

bool StillRuns(const ObservedPod& pod) {
  return pod.phase != "Succeeded" && pod.phase != "Failed" && !pod.meta.deleted;
}

bool HasFailed(const ObservedPod& pod) { return pod.phase == "Failed" || pod.will_fail; }

std::optional<WallTime> FailsUntil(const ObservedPod& pod, WallTime now) {
  constexpr std::chrono::seconds kFailsSoon{30};  // from the container's end to the pod's, on a busy node
  std::optional<WallTime> until;
  if (pod.phase == "Succeeded" || pod.phase == "Failed") return until;
  for (const ObservedEnd& end : pod.ends) {
    if (end.started_again || end.exit_code == 0 || !end.finished || now >= *end.finished + kFailsSoon) continue;
    until = std::max(until.value_or(WallTime::min()), *end.finished + kFailsSoon);
  }
  return until;
}

StatusOr<ObservedJob> ReadJob(const ObjectView& object) {
  ObservedJob job;
  MUSTER_ASSIGN_OR_RETURN(job.meta, object.Metadata(kKeys));
  job.attempt = AttemptOf(job.meta);
  const auto ttl = ParseInt(job.meta.Annotation(kChildTtlAnnotation));
  if (ttl && *ttl >= 0 && *ttl <= std::numeric_limits<int>::max()) job.ttl_seconds = *ttl;
  Trim(&job.meta);
  const ObjectView spec = object.Part("spec"), status = object.Part("status");
  job.suspended = spec.Flag("suspend");
  job.pods =
      std::min(spec.Int("parallelism").value_or(1), spec.Int("completions").value_or(std::numeric_limits<int>::max()));
  job.active = status.Number("active");
  job.ready = status.Number("ready");
  job.succeeded = status.Number("succeeded");
  job.failed = status.Number("failed");
  job.completed = ReadIndexRanges(status.Text("completedIndexes"));
  job.backoff_limit = BackoffLimit(spec);
  for (const ObjectView& condition : status.List("conditions")) {
    // SuccessCriteriaMet and FailureTarget come first: the Job controller has decided, and waits for the remaining pods
    // to end. A lost node may delay that for ever.
    if (IsTrue(condition, "Complete") || IsTrue(condition, "SuccessCriteriaMet")) {
      job.complete = true;
      job.complete_at = condition.Time("lastTransitionTime");
    }
    if (!IsTrue(condition, "Failed") && !IsTrue(condition, "FailureTarget")) continue;
    job.failed_at = condition.Time("lastTransitionTime").value_or(WallTime{});
    job.failed_reason = condition.Text("reason");
    job.failed_message = Bounded(condition.Text("message"));
  }
  return job;
}

StatusOr<ObservedRefusal> ReadRefusal(const Json& event) {
  ObservedRefusal refusal;
  MUSTER_ASSIGN_OR_RETURN(refusal.meta, ReadMeta(event));
  Trim(&refusal.meta);
  const Json& job = PartOf(event, "involvedObject");
  refusal.job = TextField(job, "name");
  refusal.job_uid = TextField(job, "uid");
  std::string message = TextField(event, "message");
  constexpr std::string_view kPrefix = "Error creating: ";
  if (const size_t at = message.find(kPrefix); at != std::string::npos) message.erase(0, at + kPrefix.size());
  refusal.why = Bounded(std::move(message));
  refusal.last = LastOf(event, refusal.meta);
  return refusal;
}

StatusOr<ObservedPodEvent> ReadPodEvent(const Json& event) {
  ObservedPodEvent read;
  MUSTER_ASSIGN_OR_RETURN(read.meta, ReadMeta(event));
  Trim(&read.meta);
  read.pod = TextField(PartOf(event, "involvedObject"), "name");
  read.pod_uid = TextField(PartOf(event, "involvedObject"), "uid");
  read.reason = Bounded(TextField(event, "reason"));
  read.message = Bounded(TextField(event, "message"));
  read.related = Bounded(TextField(PartOf(event, "related"), "name"));
  read.last = LastOf(event, read.meta);
  return read;
}

StatusOr<ObservedService> ReadService(const Json& object) {
  ObservedService service;
  MUSTER_ASSIGN_OR_RETURN(service.meta, ReadMeta(object));
  service.replica_type = service.meta.Label(kReplicaTypeLabel);
  service.index = IndexOf(service.meta);
  service.reaches_pods = SelectsByLabels(service.meta, PartOf(PartOf(object, "spec"), "selector"));
  Trim(&service.meta);
  return service;
}

StatusOr<ObservedPodGroup> ReadPodGroup(const Json& object) {
  ObservedPodGroup group;
  MUSTER_ASSIGN_OR_RETURN(group.meta, ReadMeta(object));
  Trim(&group.meta);
  group.api_version = TextField(object, "apiVersion");
  group.phase = TextField(PartOf(object, "status"), "phase");
  return group;
}

StatusOr<ObservedPod> ReadPod(const ObjectView& object) {
  ObservedPod pod;
  MUSTER_ASSIGN_OR_RETURN(pod.meta, object.Metadata(kKeys));
  pod.job = pod.meta.Label(kJobNameLabel);
  pod.attempt = AttemptOf(pod.meta);
  pod.replica_type = pod.meta.Label(kReplicaTypeLabel);
  pod.index = IndexOf(pod.meta);
  pod.made_here = !pod.meta.Annotation(kAttemptAnnotation).empty();
  const ObjectView metadata = object.Part("metadata");
  pod.tracked = metadata.HasText("finalizers", kTrackingFinalizer);
  if (pod.meta.deleted) {
    pod.told_to_end = *pod.meta.deleted - std::chrono::seconds(metadata.Number("deletionGracePeriodSeconds"));
  }
  pod.ended_here = !pod.meta.Annotation(kEndedAnnotation).empty();
  pod.excluded_node = pod.meta.Annotation(kExcludedNodeAnnotation);
  Trim(&pod.meta);
  const ObjectView spec = object.Part("spec");
  pod.node = spec.Text("nodeName");
  pod.host = spec.Flag("hostNetwork") ? pod.node : spec.Text("hostname");
  pod.decides = DecidingContainerOf(spec, !pod.replica_type.empty());
  pod.restarts_succeeded = spec.Is("restartPolicy", "Always");
  pod.restarts_failed = pod.restarts_succeeded || spec.Is("restartPolicy", "OnFailure");
  ReadMemoryLimits(spec, &pod);
  const ObjectView status = object.Part("status");
  pod.phase = status.Text("phase");
  pod.address = status.Text("podIP");
  // The deadline that Muster has set says nothing: the container had ended before.
  if (const std::string reason = status.Text("reason"); !pod.ended_here || reason != "DeadlineExceeded") {
    pod.reason = reason;
    pod.message = Bounded(status.Text("message"));
  }
  pod.moved = pod.meta.created.value_or(WallTime{});
  ReadConditions(status, &pod);
  const std::set<std::string> sidecars = SidecarsOf(object);
  for (const char* kind : {"initContainerStatuses", "containerStatuses"}) ReadContainers(status, kind, sidecars, &pod);
  FindLostSandbox(status, sidecars, &pod);
  if (!IsStranded(pod, spec, status)) pod.stranded.reset();
  if (pod.phase != "Succeeded" && pod.phase != "Failed") {
    pod.will_fail = WillFail(spec, status, sidecars);
    ReadPending(spec, status, sidecars, &pod);
  }
  return pod;
}

}  // namespace muster::controller
