// SPDX-License-Identifier: Apache-2.0
// The Jobs, pods and Services of a job in the cluster, with the fields that decisions need. An API object is read once,
// when a watch brings it, and the rest is dropped: memory grows with the number of pods, not with the size of YAML.
// Pure; untrusted input.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "base/termination_message.h"
#include "controller/api/meta.h"
#include "controller/api/object_view.h"
#include "controller/api/packed_json.h"
#include "controller/reconcile/after.h"

namespace muster::controller {

// On a pod: Muster has set its deadline, since the container that decides has ended (deciding.h).
inline constexpr char kEndedAnnotation[] = "muster.dev/container-ended";

// batch/v1 Job.
struct ObservedJob {
  Meta meta;
  int attempt = 0;  // label jobset.sigs.k8s.io/restart-attempt
  bool suspended = false;
  int pods = 1;  // completions, or parallelism
  int active = 0, ready = 0, succeeded = 0, failed = 0;
  std::vector<std::pair<int, int>> completed;  // ranges of indexes that have succeeded: first, last
  // The Job fails when more pods than this have failed. nullopt: other rules decide.
  std::optional<int> backoff_limit;
  bool complete = false;  // condition Complete or SuccessCriteriaMet is true
  std::optional<WallTime> complete_at;
  std::optional<WallTime> failed_at;          // since when condition Failed or FailureTarget is true
  std::optional<int64_t> ttl_seconds;         // the Job is deleted this long after its TrainJob has ended
  std::string failed_reason, failed_message;  // BackoffLimitExceeded, PodFailurePolicy, DeadlineExceeded ...
  // Why the Job controller last failed to create a pod of this Job (a quota, a webhook). Empty: no failure is known.
  std::string refusal;
  WallTime refused_at{};
  bool operator==(const ObservedJob&) const = default;
};

bool HasCompleted(const ObservedJob& job, int index);  // the index has succeeded

// An Event FailedCreate of the Job controller.
struct ObservedRefusal {
  Meta meta;  // of the Event
  std::string job, job_uid;
  std::string why;  // "pods \"a-node-0-0-x\" is forbidden: exceeded quota: ..."
  WallTime last{};  // lastTimestamp of the Event
};

// An Event about a pod: of type Warning, or the scheduler's Preempted.
struct ObservedPodEvent {
  Meta meta;  // of the Event
  std::string pod, pod_uid;
  std::string reason;   // FailedMount, Unhealthy ...
  std::string message;  // 1 KiB at most
  std::string related;  // name of another object: of Preempted, the preemptor
  WallTime last{};
  bool operator==(const ObservedPodEvent&) const = default;
};

// Why a container ended.
struct ObservedEnd {
  std::string container;
  bool init = false;
  bool started_again = false;   // or waits to: it is the container's last end
  bool waits_to_start = false;  // the kubelet starts the container again, and has not yet
  int exit_code = 0;
  std::string reason;  // Error, OOMKilled, ContainerCannotRun ...
  // Its machine or containerd stopped under it, and the agent had not told its end; or while it was started.
  bool unseen = false;
  // The kubelet ended it with the pod's sandbox, and has begun the pod anew: init containers run again.
  bool sandbox_lost = false;
  std::optional<WallTime> finished;
  std::optional<TerminationMessage> message;  // written by the agent
  std::string text;                           // written by another program: 1 KiB at most, as UTF-8
  bool operator==(const ObservedEnd&) const = default;
};

struct MemoryLimit {
  std::string container, memory;  // resources.limits.memory: "64Mi"
  bool operator==(const MemoryLimit&) const = default;
};

struct ObservedPod {
  Meta meta;
  std::string job;           // label batch.kubernetes.io/job-name; empty: of a PyTorchJob
  std::string replica_type;  // "master", "worker"; empty: of a TrainJob
  std::optional<int> index;
  int attempt = 0;
  // By the kubelet, of all containers but sidecars; with those to come after ends that have happened. An init container
  // that runs again although it had succeeded (the sandbox is new) does not count. A container whose last end is not
  // known counts once it is: the kubelet may report the restart first.
  int restarts = 0;
  // How often the kubelet has begun it anew, in a new sandbox: the agent's init container, which does not fail, ran
  // again.
  int sandboxes_lost = 0;
  bool made_here = false;       // a pod of a PyTorchJob that Muster created
  bool tracked = false;         // has the Job controller's finalizer: its end has not been counted
  std::string node;             // empty: not scheduled
  std::string excluded_node;    // kExcludedNodeAnnotation
  std::string host;             // its host name; empty: the pod's name
  std::string address;          // status.podIP
  std::string phase;            // Pending, Running, Succeeded, Failed, Unknown
  std::string reason, message;  // of the pod: Evicted, Preempting ...
  bool ready = false;
  bool disrupted = false;                      // condition DisruptionTarget
  std::string disruption, disruption_message;  // its reason (EvictionByEvictionAPI ...), its message
  bool ran = false;                            // a container of it runs or has ended
  // It has failed for good, and only its phase does not say so yet: the kubelet sets that seconds later. An init
  // container has ended with a code other than 0, or all containers have ended and one so, and none starts again.
  bool will_fail = false;
  // Since when it has had no sandbox, if the kubelet starts it no more: it makes a second sandbox only for pods whose
  // containers it restarts. The pod would wait for ever. Source: kuberuntime_manager.go, computePodActions.
  std::optional<WallTime> stranded;
  std::string decides;               // of several containers, the one that decides (deciding.h); empty: all count
  std::vector<std::string> running;  // its containers that run now, without init containers
  bool restarts_failed = false, restarts_succeeded = false;  // by the kubelet: containers that have ended so
  std::optional<WallTime> told_to_end;                       // when its deletion was asked for
  bool ended_here = false;                                   // it has kEndedAnnotation
  // The first reason to wait that does not pass by itself. Empty: there is none.
  std::string waiting_reason;  // ImagePullBackOff, Unschedulable ...
  std::string waiting;         // "ImagePullBackOff: container node: not found"
  std::string pending;         // what it waits for, which may come by itself; empty: it runs or has ended
  bool gated = false;          // its scheduling gates are `pending`
  WallTime moved{};            // when it was created, or when a condition or a container of it last changed
  ObservedPodEvent event;      // the newest Event about it; without a reason: none is known
  std::vector<ObservedEnd> ends;
  std::vector<MemoryLimit> memory_limits;  // of the containers that have one
  std::string logs;  // the command that shows what its containers have printed; empty: kubectl logs
  bool operator==(const ObservedPod&) const = default;
};

bool StillRuns(const ObservedPod& pod);  // it has not ended and is not being deleted
bool HasFailed(const ObservedPod& pod);  // for good, whether or not its phase says so yet

// A container of the pod has just failed, and the kubelet has not set the pod's phase yet: until when that is awaited.
// Such a pod counts as failed, so that its logs stay. nullopt: any other pod.
std::optional<WallTime> FailsUntil(const ObservedPod& pod, WallTime now);

// core/v1 Service. Of a PyTorchJob, each replica has one.
struct ObservedService {
  Meta meta;
  std::string replica_type;
  std::optional<int> index;
  bool reaches_pods = true;  // its selector is what its labels say of the job's pods; false: somebody has edited it
};

// The PodGroup of a gang scheduler. It has the job's name.
struct ObservedPodGroup {
  Meta meta;
  std::string api_version;
  std::string phase;  // Volcano: Pending, Inqueue, Running ...
};

// A further object of a job, of a kind that is followed (repair.h).
struct ObservedObject {
  std::string kind;
  Meta meta;
  PackedJson fields;  // what a plan sets of it; of a ConfigMap a digest of each value, which may be large
};

// A node of the rendezvous that the agents of a running job have lost.
struct LostNode {
  std::string address;  // of its pod
  bool closed = false;  // its connection closed; else it fell silent
  WallTime lost{};      // when
  WallTime due{};       // its pod counts as lost from then on, unless the agents hear it or a kubelet reports its end
  bool operator==(const LostNode&) const = default;
};

// What the agents of a running job say of restarts in their pods, of lost nodes, and of the training (agent_status.h).
struct AgentsSaid {
  std::string pod_uid;                    // of the pod that was asked
  int restarts = 0;                       // that were charged
  std::optional<WorkerFailure> overcome;  // the cause of the last one
  std::vector<LostNode> lost = {};
  std::optional<TrainingFacts> training = {};  // on the node that was asked
  std::optional<RunTime> time = {};            // of the agent that was asked
  bool operator==(const AgentsSaid&) const = default;
};

// The JobSet with which Kubeflow Trainer started a TrainJob (taken_over.h). It has the job's name.
struct ObservedJobSet {
  struct End {
    std::string reason, message;
  };

  Meta meta;
  bool suspended = false;
  std::optional<End> completed, failed;  // the conditions of these names, if they are true
  std::vector<JobsStatus> jobs;          // in the order of the spec
  int restarts = 0;
};

// All that belongs to one job, or has its labels. An object may have another owner, or none. What a kind of job does
// not have is empty.
struct Observed {
  std::vector<ObservedPod> pods;
  std::vector<ObservedService> services;
  std::vector<ObservedJob> jobs;              // of a TrainJob: those that it controls
  std::optional<ObservedJobSet> job_set;      // of a TrainJob
  std::optional<Hold> hold;                   // why a TrainJob does not begin yet; nullopt: it may begin, or has begun
  std::optional<ObservedPodGroup> pod_group;  // of a PyTorchJob
  bool has_objects = false;                   // all of PyTorchPlan::objects have been made as they are planned
  std::optional<AgentsSaid> agents;           // nullopt: not asked, or no answer
  const std::vector<ObservedObject>* objects = nullptr;  // those that are followed; null: none is
};

// Reads status.completedIndexes, such as "0,2-4", as pairs of first and last index. Skips unreadable parts.
std::vector<std::pair<int, int>> ReadIndexRanges(const std::string& text);
std::string WriteIndexes(const std::set<int>& indexes);  // in the same form

StatusOr<ObservedJob> ReadJob(const ObjectView& object);
StatusOr<ObservedPod> ReadPod(const ObjectView& object);
StatusOr<ObservedService> ReadService(const Json& object);
StatusOr<ObservedPodGroup> ReadPodGroup(const Json& object);
StatusOr<ObservedRefusal> ReadRefusal(const Json& event);
StatusOr<ObservedPodEvent> ReadPodEvent(const Json& event);

}  // namespace muster::controller
