// SPDX-License-Identifier: Apache-2.0
// What a TrainJob comes to, a Service and batch/v1 Jobs (train_job_plan.h), and what is asked of its plan.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/packed_json.h"
#include "controller/api/restart_policy.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"

namespace muster::controller {

inline constexpr int kTrainerPort = 29500;
inline constexpr int kAgentHttpPort = 29480;   // /healthz, /readyz, /metrics: the agent's default in a pod
inline constexpr int kAgentRshPort = 29522;    // `muster rsh`: the agent's default
inline constexpr int kDefaultMaxRestarts = 6;  // with the agent, if neither job nor runtime gives a budget
// On the TrainJob, its runtime or a PyTorchJob: "off" or "on".
inline constexpr char kAgentAnnotation[] = "muster.dev/agent";
// On the same objects: "auto" or "off", for MUSTER_STANDBY_WORKERS (docs/standby.md).
inline constexpr char kStandbyAnnotation[] = "muster.dev/standby-workers";

// On a Job, or on a pod of a PyTorchJob with RestartScope::kJob: the budget left when the object was made.
inline constexpr char kRestartsLeftAnnotation[] = "muster.dev/restarts-left";
// On a Job: the PodGroup of Kubernetes in which its pods are scheduled together (native_gang.h).
inline constexpr char kPodGroupAnnotation[] = "muster.dev/pod-group";

// The status server, to which pods post the progress of the training.
struct StatusServerAddress {
  std::string url;  // "https://kubeflow-trainer-controller-manager.kubeflow-system.svc:10443"
  std::string ca;   // PEM of the authority to trust
};

struct PlanOptions {
  std::string agent_image = "muster";                // for the init container `muster install`
  std::string version;                               // Muster's version, recorded on the Jobs
  std::optional<StatusServerAddress> status_server;  // none: the pods post no progress
};

struct PlannedJob {
  std::string name;            // JobName() of names.h
  std::string replicated_job;  // name in the runtime
  int index = 0;               // among the replicas
  Step step = Step::kOther;
  std::vector<Dependency> after;  // the replicated jobs that come first
  int pods = 1;                   // completions
  bool are_nodes = false;         // its pods count as nodes: the trainer step, and MPI's workers
  bool agent = false;             // the container `node` runs under `muster exec`
  std::optional<int> agent_port;  // where its /status can be asked (docs/watching.md); nullopt: nowhere
  bool scales = false;            // the number of its pods may change while it runs
  bool budget_in_job = false;     // its backoffLimit is the budget that is left
  bool in_gang = false;           // its pods are in the PodGroup of Kubernetes (native_gang.h)
  RestartPolicy restart = RestartPolicy::kOwn;
  int global_index = 0, group_index = 0;  // among all Jobs of the plan, and among those of its group
  PackedJson common;                      // what it has in common with the other replicas

  Json Object() const;  // batch/v1 Job of attempt 0, not suspended
};

// A further object of a job, beside its Service and its Jobs. It is created before the Jobs.
struct PlannedObject {
  enum class IfThere {
    kBelongs,  // an existing object of this name must belong to the job, and stays as it is
    kUpdate,   // an existing object must belong to the job, and is changed to the planned one
    kReplace,  // the same, but its spec is immutable: it is deleted and created again
    kUse       // an existing object is used as it is, whoever made it
  };
  enum class Fill { kNothing, kToken, kSshKeys };  // what the controller puts into it at creation

  Json object;
  bool for_initializers = false;  // create it before the initializers; else after them
  bool of_start = false;          // each start of the pods has its own; `object` has the name of the first one
  IfThere if_there = IfThere::kBelongs;
  Fill fill = Fill::kNothing;
};

// A message for the user. It becomes an event, once.
struct Notice {
  std::string reason, message;
  bool warning = false;
};

struct TrainJobPlan {
  std::string subdomain;  // the Service's name
  Json service;           // headless; null: the pods have no host names
  std::vector<PlannedObject> objects;
  std::vector<PlannedJob> jobs;  // in the order of the runtime
  SuccessPolicy success;
  std::vector<FailureRule> failure_rules;
  bool waits_for_old_pods = false;  // a new attempt begins once no pod of the last one is left
  int max_restarts = 0;             // the budget
  bool agents_only = false;         // nobody gave it: a Job without the agent that fails ends the TrainJob
  std::optional<int64_t> active_deadline_seconds, ttl_seconds;  // the runtime's, for TrainJobs without their own
  std::vector<Notice> notices;
};

// ConfigMap <job>-runtime-snapshot. Its key `runtime` keeps the runtime as it is now, to plan the job by from then on.
std::string SnapshotName(const TrainJob& job);
// InvalidArgument: a ConfigMap cannot hold the runtime.
StatusOr<Json> MakeSnapshot(const TrainJob& job, const Json& runtime);
// Its runtime. FailedPrecondition: `job` does not own `config_map`, it is malformed, or holds another runtime.
StatusOr<Json> ReadSnapshot(const TrainJob& job, const Json& config_map);

// The parts of a Job that differ between attempts.
struct Attempt {
  int number = 0;         // label jobset.sigs.k8s.io/restart-attempt
  int restarts_left = 0;  // of the budget, for the agents
  bool suspend = false;
  std::string pod_group = {};  // for Jobs that are in_gang; empty: the first one's
};
Json JobOfAttempt(const PlannedJob& planned, const Attempt& attempt);

// `name` if it has at most `most` characters; else `most` characters: its beginning, '-' and a hash of the whole name.
std::string ShortName(std::string_view name, size_t most = 63);

}  // namespace muster::controller
