// SPDX-License-Identifier: Apache-2.0
// TrainJob (trainer.kubeflow.org/v1alpha1) as Muster reads it, in its newest shape. Pure; untrusted input.
//
// Fields of Kubernetes' own types (env, resources, parts of pod templates) stay JSON as they stand. old_shape.h
// converts the shape of v2.0 and v2.1. docs/api.md lists the fields. Source: Kubeflow Trainer v2.3, trainjob_types.go.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/fields.h"
#include "controller/api/job_failure.h"
#include "controller/api/job_time.h"
#include "controller/api/meta.h"

namespace muster::controller {

inline constexpr char kTrainerGroup[] = "trainer.kubeflow.org";
inline constexpr char kTrainerApi[] = "trainer.kubeflow.org/v1alpha1";
inline constexpr char kManagedByMuster[] = "trainer.kubeflow.org/trainjob-controller";
// On a TrainJob: auto, cpu or gpu, converted from spec.trainer.numProcPerNode of the old shape.
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
  std::string secret;        // each key of this Secret becomes a variable; empty: none
};

struct Trainer {
  std::string image;                                      // empty: the runtime's
  std::optional<std::vector<std::string>> command, args;  // none: the runtime's
  Json env = Json::array();                               // []EnvVar
  std::optional<int> num_nodes;                           // 1 to kMostPods
  std::optional<int> num_proc_per_node;                   // 1 to kMostProcesses
  Json resources_per_node;                                // ResourceRequirements; null: the runtime's
};

struct RuntimePatch {
  std::string manager;
  Json metadata;         // template.metadata: labels and annotations; null: none
  Json replicated_jobs;  // template.spec.replicatedJobs, merged by name; null: none
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

// The part of the status that Muster writes. Fields and conditions of other writers (trainerStatus) are in no part of
// it: what Muster applied, it would own, and the other writer could not remove it.
struct TrainJobStatus {
  std::vector<Condition> conditions;  // Suspended, Complete, Failed
  std::vector<JobsStatus> jobs;
  // The fields down to `failures` are Muster's own.
  std::string state;    // Created, Initializing, Waiting, Running, Restarting, Suspended, Complete, Failed
  std::string reason;   // a word for the column Reason; empty: none
  std::string message;  // why the job does not run yet, or why it ended
  std::optional<WallTime> start_time, completion_time;
  std::optional<int64_t> ttl_seconds;       // the runtime's, as it was when the job began
  int nodes = 0, ready_nodes = 0;           // of the trainer step
  std::string selector;                     // of the pods of an elastic trainer step, for autoscalers; empty: none
  int attempt = 0;                          // how often the trainer step was recreated
  int restarts = 0;                         // used up of the budget, by agents and by new pods or Jobs
  std::vector<Failure> failures;            // the newest last, kMostFailures at most
  std::optional<JobTime> time;              // nullopt: no agent has told any
  std::vector<std::string> completed_jobs;  // names of Jobs that count as complete though the Job itself is not

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
  std::optional<int64_t> ttl_seconds_after_finished;  // a field of Muster's own
  std::string managed_by = kManagedByMuster;
  TrainJobStatus status;
};

// InvalidArgument names the path, the value and the right form: "spec.trainer.numNodes: 'four' is not a whole number".
// An object of the old shape is converted by NewestShape() first. env, resources and parts of templates are checked by
// pod_template.h; metadata of a patch is {labels, annotations}, maps of texts. A malformed status is not an error.
// Unknown fields inside patches are not looked for.
StatusOr<TrainJob> ReadTrainJob(const Json& object, UnknownFields* unknown = nullptr);

// False: managedBy names another controller. Then Muster does not touch the object, whatever else is in it.
bool IsManagedByMuster(const Json& object);

// `status` of a TrainJob. A malformed field counts as absent, so that a wrong edit of the status does not stop the job.
// Leaves out what is not a part of TrainJobStatus.
TrainJobStatus ReadTrainJobStatus(const Json& status);

// `status` for the API. Writes conditions, jobsStatus and all counters even if they are empty or 0. The API's times
// have no fractions of a second, so compare the results of this function to see whether a status has changed.
Json WriteTrainJobStatus(const TrainJobStatus& status);

}  // namespace muster::controller
