// TrainJob (trainer.kubeflow.org/v1alpha1) as Muster reads it, in its newest shape. Pure; outside bytes.
//
// Fields of Kubernetes' own types (env, resources, parts of pod templates) stay JSON as they stand. The shape of v2.0
// and v2.1 becomes this one in old_shape.h. docs/api.md lists the fields. Source: Kubeflow Trainer v2.3,
// trainjob_types.go.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/job_failure.h"
#include "controller/api/meta.h"

namespace muster::controller {

inline constexpr char kTrainerGroup[] = "trainer.kubeflow.org";
inline constexpr char kTrainerApi[] = "trainer.kubeflow.org/v1alpha1";
inline constexpr char kManagedByMuster[] = "trainer.kubeflow.org/trainjob-controller";
// On a TrainJob: auto, cpu or gpu, where the old shape had that as spec.trainer.numProcPerNode.
inline constexpr char kNumProcAnnotation[] = "muster.dev/num-proc-per-node";

struct RuntimeRef {
  std::string api_group = kTrainerGroup;
  std::string kind = "ClusterTrainingRuntime";
  std::string name;
  bool operator==(const RuntimeRef&) const = default;
};

struct Initializer {
  std::string storage_uri;
  Json env = Json::array();  // []EnvVar
  std::string secret;        // every key of it becomes a variable; empty: none
};

struct Trainer {
  std::string image;                                      // empty: the runtime's
  std::optional<std::vector<std::string>> command, args;  // none: the runtime's
  Json env = Json::array();                               // []EnvVar
  std::optional<int> num_nodes;                           // 0 or more
  std::optional<int> num_proc_per_node;                   // 1 or more
  Json resources_per_node;                                // ResourceRequirements; null: the runtime's
};

struct RuntimePatch {
  std::string manager;
  Json metadata;         // template.metadata: labels and annotations; null: none
  Json replicated_jobs;  // template.spec.replicatedJobs: strategic merge by name; null: none
};

// metav1.Condition.
struct Condition {
  std::string type;  // Suspended, Complete, Failed
  bool status = false;
  std::string reason, message;
  WallTime since{};  // lastTransitionTime
  int64_t generation = 0;
  bool operator==(const Condition&) const = default;
};

// status.jobsStatus[]: counts of Jobs, not of pods.
struct JobsStatus {
  std::string name;  // of the replicated job
  int ready = 0, succeeded = 0, failed = 0, active = 0, suspended = 0;
  bool operator==(const JobsStatus&) const = default;
};

struct TrainJobStatus {
  std::vector<Condition> conditions;
  std::vector<JobsStatus> jobs;
  // Muster's own, beside upstream's.
  std::string state;    // Created, Initializing, Waiting, Running, Restarting, Suspended, Complete, Failed
  std::string reason;   // a word for the column Reason; empty: none
  std::string message;  // why nothing happens yet, or why it ended
  std::optional<WallTime> start_time, completion_time;
  std::optional<int64_t> ttl_seconds;  // the runtime's ttlSecondsAfterFinished, when it ended
  int nodes = 0, ready_nodes = 0;      // of the trainer step
  std::string selector;                // of the pods of an elastic trainer step, for autoscalers; empty: none
  int attempt = 0;                     // of the trainer step: how often it was made anew
  int restarts = 0;                    // used up of the budget, wherever they happened
  std::vector<Failure> failures;       // the newest last, kMostFailures at most
  Json others;                         // fields of status that are not Muster's (trainerStatus): kept as they are

  const Condition* Find(std::string_view type) const;
  bool Finished() const;  // Complete or Failed is true
  bool operator==(const TrainJobStatus&) const = default;
};

struct TrainJob {
  Meta meta;
  RuntimeRef runtime;
  std::optional<Initializer> dataset, model;
  std::optional<Trainer> trainer;
  std::vector<RuntimePatch> patches;  // later ones win
  bool suspend = false;
  std::optional<int64_t> active_deadline_seconds;
  std::optional<int64_t> ttl_seconds_after_finished;  // Muster's own
  std::string managed_by = kManagedByMuster;
  TrainJobStatus status;
};

// InvalidArgument names the path, the value and what is wanted: "spec.trainer.numNodes: 'four' is no whole number". An
// object of the old shape is read as NewestShape() makes it. env, resources and parts of templates have been checked by
// pod_template.h, and metadata of a patch is {labels, annotations}, maps of texts. The status never makes an error.
StatusOr<TrainJob> ReadTrainJob(const Json& object);

// False: managedBy names another controller, so Muster leaves the object alone, whatever else is in it.
bool IsManagedByMuster(const Json& object);

// `status` of a TrainJob. What is malformed in it counts as absent: an edit of somebody else must not stop the job.
TrainJobStatus ReadStatus(const Json& status);

// `status` as the API has it; conditions, jobsStatus and all counters are always there. The API's times have no
// fractions of a second: to see whether a status has changed, compare what this gives.
Json WriteStatus(const TrainJobStatus& status);

}  // namespace muster::controller
