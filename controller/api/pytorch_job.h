// SPDX-License-Identifier: Apache-2.0
// PyTorchJob (kubeflow.org/v1) as Muster reads it, with training-operator's defaults filled in. Pure; untrusted input.
//
// Pod templates stay JSON as they stand. docs/pytorchjob.md says what each field does. Source: training-operator v1.9,
// pytorch_types.go, common_types.go, pytorch_defaults.go.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/fields.h"
#include "controller/api/job_failure.h"
#include "controller/api/meta.h"
#include "controller/api/restart_policy.h"

namespace muster::controller {

inline constexpr char kKubeflowApi[] = "kubeflow.org/v1";
inline constexpr char kPyTorchJobKind[] = "PyTorchJob";
inline constexpr char kPyTorchContainer[] = "pytorch";
inline constexpr char kPyTorchPortName[] = "pytorchjob-port";
inline constexpr int kPyTorchPort = 23456;
inline constexpr char kManagedByTrainingOperator[] = "kubeflow.org/training-operator";

enum class ReplicaType { kMaster, kWorker };
inline constexpr std::array<ReplicaType, 2> kReplicaTypes = {ReplicaType::kMaster, ReplicaType::kWorker};
std::string_view ReplicaName(ReplicaType type);   // "Master", the key in pytorchReplicaSpecs
std::string_view ReplicaLabel(ReplicaType type);  // "master", in names and labels
std::string ReplicaPath(ReplicaType type);        // "spec.pytorchReplicaSpecs.Master"

struct ReplicaSpec {
  ReplicaType type = ReplicaType::kWorker;
  int replicas = 1;
  RestartPolicy restart = RestartPolicy::kOnFailure;  // never kOwn
  Json pod_template;  // PodTemplateSpec: metadata and spec are objects, no field is null
};

struct ElasticPolicy {
  int least = 1, most = 1;  // nodes
  std::string rdzv_backend = "c10d";
  std::string rdzv_host;         // empty: worker 0
  std::optional<int> rdzv_port;  // none: the port of worker 0
  std::string rdzv_id;           // empty: not set
  std::vector<std::pair<std::string, std::string>> rdzv_conf;
  bool standalone = false;
  std::optional<int> processes_per_node;  // nProcPerNode, deprecated
  std::optional<int> max_restarts;
  Json metrics = Json::array();  // autoscaling/v2 MetricSpecs
};

enum class CleanPodPolicy { kNone, kRunning, kAll };

struct SchedulingPolicy {
  std::optional<int> min_available;  // none: all replicas
  std::string queue;                 // empty: the scheduler's default
  Json min_resources;                // null: what the pods request
  std::string priority_class;
  std::optional<int> timeout_seconds;
};

// kubeflow.org/v1 JobCondition.
struct JobCondition {
  std::string type;  // Created, Running, Restarting, Suspended, Succeeded, Failed
  bool status = false;
  std::string reason, message;
  WallTime updated{};  // lastUpdateTime
  WallTime since{};    // lastTransitionTime
  bool operator==(const JobCondition&) const = default;
};

// status.replicaStatuses[type]: counts of pods.
struct ReplicaStatus {
  int active = 0, succeeded = 0, failed = 0;
  std::string selector;
  std::string succeeded_indexes;  // Muster's own: "0,2-4"; they do not run again
  bool operator==(const ReplicaStatus&) const = default;
};

// status.countedPods[]: the restarts of a pod that still exists, as far as they are in status.restarts.
struct CountedPod {
  std::string uid;
  int restarts = 0;
  bool operator==(const CountedPod&) const = default;
};

struct PyTorchJobStatus {
  std::vector<JobCondition> conditions;  // the last one is the state
  std::optional<ReplicaStatus> master, worker;
  std::optional<WallTime> start_time, completion_time;
  // Muster's own.
  std::string message;            // why the job does not run yet
  int attempt = 0;                // how often all pods were recreated
  int restarts = 0;               // used up of backoffLimit
  std::vector<Failure> failures;  // the newest last
  std::vector<CountedPod> counted;

  const JobCondition* Find(std::string_view type) const;
  bool Is(std::string_view type) const;  // the condition exists and is true
  bool Finished() const;                 // Succeeded or Failed is true
  std::optional<ReplicaStatus>& Of(ReplicaType type) { return type == ReplicaType::kMaster ? master : worker; }
  const std::optional<ReplicaStatus>& Of(ReplicaType type) const {
    return type == ReplicaType::kMaster ? master : worker;
  }
  bool operator==(const PyTorchJobStatus&) const = default;
};

struct PyTorchJob {
  Meta meta;
  std::vector<ReplicaSpec> replicas;  // Master first; each type at most once
  std::string processes_per_node;     // nprocPerNode; empty: use the deprecated one in elasticPolicy
  std::optional<ElasticPolicy> elastic;
  CleanPodPolicy clean = CleanPodPolicy::kNone;
  std::optional<int64_t> ttl_seconds_after_finished, active_deadline_seconds;
  std::optional<int> backoff_limit;  // none: no limit
  SchedulingPolicy scheduling;
  bool suspend = false;
  PyTorchJobStatus status;

  const ReplicaSpec* Find(ReplicaType type) const;  // null: none of this type
  int AllReplicas() const;                          // pods of all types
};

// InvalidArgument names the path, the value and the right form. Keys of pytorchReplicaSpecs count in any letter case,
// as in training-operator's defaulting. A malformed status is not an error.
StatusOr<PyTorchJob> ReadPyTorchJob(const Json& object, UnknownFields* unknown = nullptr);

// False: runPolicy.managedBy names another controller or is empty. Then Muster does not touch the object.
bool IsPyTorchJobManagedByMuster(const Json& object);

// A malformed field counts as absent.
PyTorchJobStatus ReadPyTorchJobStatus(const Json& status);

// Writes all counters, zeros too, so that an apply overwrites another writer's values.
Json WritePyTorchJobStatus(const PyTorchJobStatus& status);

}  // namespace muster::controller
