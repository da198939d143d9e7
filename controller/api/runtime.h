// SPDX-License-Identifier: Apache-2.0
// TrainingRuntime and ClusterTrainingRuntime (trainer.kubeflow.org/v1alpha1) as Muster reads them. The spec of a JobSet
// inside has the defaults of JobSet's webhook. Job templates stay JSON as they stand. The fields of v2.0 and v2.1 are
// read too: mlPolicy.torch.numProcPerNode, mlPolicy.torch.elasticPolicy. Pure; untrusted input. Source: Kubeflow
// Trainer v2.3, trainingruntime_types.go; JobSet v0.12, jobset_types.go.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/fields.h"
#include "controller/api/meta.h"

namespace muster::controller {

inline constexpr char kAncestorLabel[] = "trainer.kubeflow.org/trainjob-ancestor-step";

// The part of a TrainJob that goes into a replicated job. kAncestorLabel on the job's template tells it.
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
  Json job_template;  // batch/v1 JobTemplateSpec {metadata, spec}, checked by pod_template.h
};

struct SuccessPolicy {
  bool all = true;                // operator All; false: Any
  std::vector<std::string> jobs;  // names of replicated jobs; empty: all of them
};

// The action for a failed Job that matches all lists. An empty list matches anything.
struct FailureRule {
  enum class Action { kFail, kRestart, kRestartUncounted };

  std::string name;
  Action action = Action::kFail;
  std::vector<std::string> reasons;   // of the Job's failure
  std::vector<std::string> patterns;  // RE2; one must be found in the message of the Job's failure
  std::vector<std::string> jobs;      // replicated jobs
};

struct FailurePolicy {
  int max_restarts = 0;
  std::string restart_strategy = "Recreate";  // or BlockingRecreate, InPlaceRestart
  std::vector<FailureRule> rules;             // the first match decides
};

enum class Framework { kPlain, kTorch, kMpi, kJax, kXgboost, kFlux };

struct MlPolicy {
  bool given = false;
  std::optional<int> num_nodes;
  Framework framework = Framework::kPlain;
  // The framework's field as it stands, without defaults; null: none. torch: numProcPerNode is auto, cpu, gpu, a number
  // or a number as a text; elasticPolicy is {minNodes, maxNodes, maxRestarts, metrics}. mpi, flux: numProcPerNode is a
  // number.
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
  std::optional<FailurePolicy> failure;  // none: the runtime has no failurePolicy
  std::string subdomain;                 // empty: the TrainJob's name
  bool publish_not_ready_addresses = true;
  bool dns_hostnames = true;
  bool in_order = false;                           // startupPolicy InOrder
  Json coordinator;                                // {replicatedJob, jobIndex, podIndex}; null: none
  Json volume_claim_policies;                      // [{templates, retentionPolicy}]; null: none
  std::optional<int64_t> child_ttl_seconds;        // template.spec.ttlSecondsAfterFinished, for Jobs and pods
  std::optional<int64_t> active_deadline_seconds;  // runPolicy.activeDeadlineSeconds, for TrainJobs without one
  std::optional<int64_t> train_job_ttl_seconds;    // runPolicy.ttlSecondsAfterFinished, for TrainJobs without one
};

// InvalidArgument names the path, the value and the right form. For a field at a wrong level, such as failurePolicy
// beside template, it names the right path.
StatusOr<Runtime> ReadRuntime(const Json& object, UnknownFields* unknown = nullptr);

}  // namespace muster::controller
