// What a TrainJob and its runtime come to: a Service and batch/v1 Jobs, named and labelled as Kubeflow Trainer and
// JobSet name and label theirs. Pure: the same inputs give the same bytes. docs/api.md says what each field does.
//
// The agent: a container whose command is known runs under `muster exec`; an init container copies the agent into an
// emptyDir that both mount. A job without it is planned exactly as upstream plans it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/restart_policy.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"

namespace muster::controller {

inline constexpr int kTrainerPort = 29500;
inline constexpr int kAgentHttpPort = 29480;   // /healthz, /readyz, /metrics: the agent's default in a pod
inline constexpr int kAgentRshPort = 29522;    // `muster rsh`: the agent's default
inline constexpr int kDefaultMaxRestarts = 6;  // where neither job nor runtime names a budget, and the agent is there
inline constexpr char kAgentAnnotation[] = "muster.dev/agent";  // on the TrainJob or the runtime: "off"

// On a Job, or on a pod of a PyTorchJob that is restarted as a whole: what was left of the budget when it was made.
inline constexpr char kRestartsLeftAnnotation[] = "muster.dev/restarts-left";

// Where pods post how far the training is.
struct StatusServerAddress {
  std::string url;  // "https://kubeflow-trainer-controller-manager.kubeflow-system.svc:10443"
  std::string ca;   // PEM: whom to trust there
};

struct PlanOptions {
  std::string agent_image = "muster";                // of the init container `muster install`
  std::string version;                               // of Muster, recorded on the Jobs
  std::optional<StatusServerAddress> status_server;  // none: the pods are told of none
};

struct PlannedJob {
  std::string name;            // of the Job object: names.h
  std::string replicated_job;  // of the runtime
  int index = 0;               // among the replicas
  Step step = Step::kOther;
  std::vector<Dependency> after;  // names of replicated jobs
  int pods = 1;                   // completions
  bool are_nodes = false;         // its pods are nodes of the job: the trainer step, and MPI's workers
  bool agent = false;             // the container `node` runs under `muster exec`
  bool scales = false;            // the number of its pods may change while it runs
  bool budget_in_job = false;     // its backoffLimit is what is left of the budget
  RestartPolicy restart = RestartPolicy::kOwn;
  Json object;  // batch/v1 Job of attempt 0, not suspended
};

// An object of a job beside its Service and its Jobs, made before the Jobs.
struct PlannedObject {
  enum class IfThere {
    kBelongs,  // one of its name that is there must be the job's own, and stays
    kUpdate,   // the same, but it is changed to what is planned
    kUse       // it is used, whoever made it
  };
  enum class Fill { kNothing, kToken, kSshKeys };  // what only the controller can put into it, when it is made

  Json object;
  bool for_initializers = false;  // else it is made after these
  IfThere if_there = IfThere::kBelongs;
  Fill fill = Fill::kNothing;
};

// Something the user should be told once, by an event.
struct Notice {
  std::string reason, message;
  bool warning = false;
};

struct Plan {
  std::string subdomain;  // the Service's name
  Json service;           // headless; null: the pods have no host names
  std::vector<PlannedObject> objects;
  std::vector<PlannedJob> jobs;  // in the order of the runtime
  SuccessPolicy success;
  std::vector<FailureRule> failure_rules;
  bool waits_for_old_pods = false;  // a step begins anew once no pod of the last attempt is left
  int max_restarts = 0;             // the budget
  std::optional<int64_t> active_deadline_seconds, ttl_seconds;  // of TrainJobs that name none
  std::vector<Notice> notices;
};

// InvalidArgument: `job` and `runtime` do not fit together; names the path, the value and the remedy.
StatusOr<Plan> MakePlan(const TrainJob& job, const Runtime& runtime, const PlanOptions& options);

// ConfigMap <job>-runtime-snapshot, key `runtime`: the runtime as it is now, by which the job is planned from here on.
std::string SnapshotName(const TrainJob& job);
Json MakeSnapshot(const TrainJob& job, const Json& runtime);
// The runtime in it. FailedPrecondition: it is another one's, or cannot be read.
StatusOr<Json> ReadSnapshot(const TrainJob& job, const Json& config_map);

// What differs between two makings of one Job.
struct Attempt {
  int number = 0;         // label jobset.sigs.k8s.io/restart-attempt
  int restarts_left = 0;  // of the budget, for the agents
  bool suspend = false;
};
Json JobOfAttempt(const PlannedJob& planned, const Attempt& attempt);

// `name` where it is at most `most` characters; else its beginning and a hash of all of it, `most` characters.
std::string ShortName(std::string_view name, size_t most = 63);

}  // namespace muster::controller
