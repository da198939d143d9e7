// TrainingRuntime and ClusterTrainingRuntime (trainer.kubeflow.org/v1alpha1) as Muster reads them, with JobSet's spec
// inside, with the defaults of JobSet's webhook. Pure; outside bytes. Job templates stay JSON as they stand. Runtimes
// of v2.0 and v2.1 are read as well: mlPolicy.torch.numProcPerNode, mlPolicy.torch.elasticPolicy. Source: Kubeflow
// Trainer v2.3, trainingruntime_types.go; JobSet v0.12, jobset_types.go.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/meta.h"

namespace muster::controller {

inline constexpr char kAncestorLabel[] = "trainer.kubeflow.org/trainjob-ancestor-step";

// Which part of a TrainJob goes into a replicated job, by kAncestorLabel on its template.
enum class Step { kDatasetInitializer, kModelInitializer, kTrainer, kOther };

struct Dependency {
  enum class Until { kReady, kComplete };
  std::string job;  // the name of an earlier replicated job
  Until until = Until::kComplete;
  bool operator==(const Dependency&) const = default;
};

struct ReplicatedJob {
  std::string name;
  std::string group = "default";
  int replicas = 1;
  std::vector<Dependency> depends_on;
  Step step = Step::kOther;
  Json job_template;  // batch/v1 JobTemplateSpec: {metadata, spec}, as pod_template.h checks it
};

struct SuccessPolicy {
  bool all = true;                // false: any
  std::vector<std::string> jobs;  // empty: all of them
};

// What is done when Jobs have failed as it says. An empty list matches anything.
struct FailureRule {
  enum class Action { kFail, kRestart, kRestartUncounted };

  std::string name;
  Action action = Action::kFail;
  std::vector<std::string> reasons;   // of the Job's failure
  std::vector<std::string> patterns;  // RE2; one of them is found in the message of the Job's failure
  std::vector<std::string> jobs;      // replicated jobs
};

struct FailurePolicy {
  int max_restarts = 0;
  std::string restart_strategy = "Recreate";  // or BlockingRecreate, InPlaceRestart
  std::vector<FailureRule> rules;             // the first that matches counts
};

enum class Framework { kPlain, kTorch, kMpi, kJax, kXgboost, kFlux };

struct MlPolicy {
  bool given = false;
  std::optional<int> num_nodes;
  Framework framework = Framework::kPlain;
  // Of the framework, as it stands; null: none. torch: numProcPerNode is auto, cpu, gpu, a number or a number as a
  // text; elasticPolicy is {minNodes, maxNodes, maxRestarts, metrics}. mpi, flux: numProcPerNode is a number. No
  // defaults.
  Json policy;
};

struct Runtime {
  Meta meta;
  std::string kind;  // TrainingRuntime, ClusterTrainingRuntime
  MlPolicy ml_policy;
  Json pod_group_policy;   // null: none
  Json template_metadata;  // labels and annotations of template.metadata; null: none
  std::vector<ReplicatedJob> jobs;
  SuccessPolicy success;
  std::optional<FailurePolicy> failure;  // none: the runtime says nothing
  std::string subdomain;                 // empty: the TrainJob's name
  bool publish_not_ready_addresses = true;
  bool dns_hostnames = true;
  bool in_order = false;                           // startupPolicy InOrder
  Json coordinator;                                // {replicatedJob, jobIndex, podIndex}; null: none
  Json volume_claim_policies;                      // [{templates, retentionPolicy}]; null: none
  std::optional<int64_t> child_ttl_seconds;        // template.spec.ttlSecondsAfterFinished: of Jobs and pods
  std::optional<int64_t> active_deadline_seconds;  // runPolicy.activeDeadlineSeconds: of TrainJobs that name none
  std::optional<int64_t> train_job_ttl_seconds;    // runPolicy.ttlSecondsAfterFinished: of TrainJobs that name none
};

// InvalidArgument names the path, the value and what is wanted; of a field that stands at a wrong level, such as
// failurePolicy beside template, also the path where it belongs.
StatusOr<Runtime> ReadRuntime(const Json& object);

}  // namespace muster::controller
