// What there is of a job in the cluster: Jobs, pods and Services, as far as decisions need them. Read from API objects
// once, when a watch brings them: the rest is dropped, so memory follows the number of pods and not the size of YAML.
// Pure; outside bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "base/termination_message.h"
#include "controller/api/meta.h"
#include "controller/reconcile/after.h"

namespace muster::controller {

// batch/v1 Job.
struct ObservedJob {
  Meta meta;
  int attempt = 0;  // label jobset.sigs.k8s.io/restart-attempt
  bool suspended = false;
  int pods = 1;  // completions, or parallelism
  int active = 0, ready = 0, succeeded = 0, failed = 0;
  std::vector<std::pair<int, int>> completed;  // indexes that have succeeded: from, to
  // It fails once more of its pods than these have failed; nothing: other rules decide.
  std::optional<int> backoff_limit;
  bool complete = false;  // or bound to be: its success criteria are met
  std::optional<WallTime> complete_at;
  std::optional<WallTime> failed_at;          // condition Failed, or FailureTarget, is true since then
  std::optional<int64_t> ttl_seconds;         // it is deleted so long after its TrainJob has ended
  std::string failed_reason, failed_message;  // BackoffLimitExceeded, PodFailurePolicy, DeadlineExceeded ...
  // Why the Job controller could not make a pod of it when it last tried in vain (a quota, a webhook); empty: it could.
  std::string refusal;
  WallTime refused_at{};
};

// An Event by which the Job controller says so.
struct ObservedRefusal {
  Meta meta;  // of the Event
  std::string job, job_uid;
  std::string why;  // "pods \"a-node-0-0-x\" is forbidden: exceeded quota: ..."
  WallTime last{};  // when it was said last
};

// Why a container ended.
struct ObservedEnd {
  std::string container;
  bool init = false;
  int exit_code = 0;
  std::string reason;  // Error, OOMKilled, ContainerCannotRun ...
  std::optional<WallTime> finished;
  std::optional<TerminationMessage> message;  // what the agent wrote
  std::string text;                           // what another program wrote: 1 KiB of it at most, as UTF-8
};

struct ObservedPod {
  Meta meta;
  std::string job;           // label batch.kubernetes.io/job-name; empty: of a PyTorchJob
  std::string replica_type;  // "master", "worker"; empty: of a TrainJob
  std::optional<int> index;
  int attempt = 0;
  int restarts = 0;             // of its containers by the kubelet, sidecars among the init containers left out
  bool made_here = false;       // of a PyTorchJob: Muster has made it
  std::string node;             // empty: not scheduled
  std::string phase;            // Pending, Running, Succeeded, Failed, Unknown
  std::string reason, message;  // of the pod: Evicted, Preempting ...
  bool ready = false;
  bool disrupted = false;  // condition DisruptionTarget
  bool ran = false;        // a container of it runs, or has ended
  // The first thing that it waits for and that does not come by itself; empty: there is none.
  std::string waiting_reason;  // ImagePullBackOff, Unschedulable ...
  std::string waiting;         // "ImagePullBackOff: container node: not found"
  std::vector<ObservedEnd> ends;
};

bool StillRuns(const ObservedPod& pod);  // it has not ended, and is not told to

// core/v1 Service of a replica of a PyTorchJob.
struct ObservedService {
  Meta meta;
  std::string replica_type;
  std::optional<int> index;
};

// Of a gang scheduler; it has the job's name.
struct ObservedPodGroup {
  Meta meta;
  std::string api_version;
  std::string phase;  // Volcano: Pending, Inqueue, Running ...
};

// All that belongs to one PyTorchJob, or would, if it belonged to anybody: that has its labels.
struct ObservedReplicas {
  std::vector<ObservedPod> pods;
  std::vector<ObservedService> services;
  std::optional<ObservedPodGroup> pod_group;
  bool has_objects = false;  // PyTorchPlan::objects are as they are planned
};

// All that belongs to one TrainJob.
struct Observed {
  bool service = false;  // the headless Service is there, and the job's
  std::vector<ObservedJob> jobs;
  std::vector<ObservedPod> pods;
  std::optional<Hold> hold;  // why it does not begin yet; nothing: it may, or has begun
};

// "0,2-4", as the Job controller writes status.completedIndexes: from, to. What is no such part is left out.
std::vector<std::pair<int, int>> ReadIndexRanges(const std::string& text);

StatusOr<ObservedJob> ReadJob(const Json& object);
StatusOr<ObservedPod> ReadPod(const Json& object);
StatusOr<ObservedService> ReadService(const Json& object);
StatusOr<ObservedPodGroup> ReadPodGroup(const Json& object);
StatusOr<ObservedRefusal> ReadRefusal(const Json& event);

}  // namespace muster::controller
