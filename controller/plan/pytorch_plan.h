// SPDX-License-Identifier: Apache-2.0
// Plans a PyTorchJob: a pod and a Service for each replica, with the names, labels and variables of training-operator
// v1.9. Pure: the same inputs give the same bytes. docs/pytorchjob.md says what differs.
//
// A container whose command is known runs under the agent (agent.h), unless muster.dev/agent is "off". The variables
// of v1 are the same with the agent; a torchrun in the command is Muster's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/api/pytorch_job.h"
#include "controller/plan/plan.h"

namespace muster::controller {

inline constexpr char kRestartAnnotation[] = "muster.dev/restart";  // on a PyTorchJob: "pod" or "job"
// On the pods of a PyTorchJob: status.attempt when Muster made the pod.
inline constexpr char kAttemptAnnotation[] = "muster.dev/attempt";
// PET_MAX_RESTARTS of a job without a limit.
inline constexpr int kUnlimitedRestarts = 1'000'000;

inline constexpr char kVolcanoScheduler[] = "volcano";
inline constexpr char kWaitContainer[] = "init-pytorch";  // init container of workers that waits for the master

// What restarts when a pod fails.
enum class RestartScope {
  kPod,  // that pod, as with training-operator
  kJob   // all nodes: the workers in their pods if RestartsInPlace(), else all pods are recreated
};

struct PyTorchOptions {
  PlanOptions agent;
  RestartScope restart = RestartScope::kPod;  // for jobs without the annotation
  std::string wait_image;                     // for the init container init-pytorch; empty: the agent's
  int wait_tries = 100;                       // 2 s each
  std::string wait_template;   // YAML of the containers to use instead, with {{.MasterAddr}} ...; empty: none
  std::string gang_scheduler;  // "volcano", another scheduler's name; empty: none
  bool with_agent = true;      // false: another operator's pods run without the agent, and the new pods must meet them
};

struct PlannedReplicas {
  ReplicaType type = ReplicaType::kWorker;
  int count = 1;
  int first_rank = 0;  // rank of replica 0
  RestartPolicy restart = RestartPolicy::kOnFailure;
  bool agent = false;             // the container `pytorch` runs under the agent
  std::optional<int> agent_port;  // where its /status can be asked (docs/watching.md); nullopt: nowhere
  bool meets = false;       // and its command is torchrun: the agents can restart the workers of all pods in place
  PackedJson pod_template;  // what all its pods have in common
  Json ports;               // the Services' ports
};

struct PyTorchPlan {
  std::vector<PlannedReplicas> replicas;  // Master first
  std::vector<PlannedObject> objects;     // further objects, created before pods and Services
  RestartScope restart = RestartScope::kPod;
  bool has_master = false, elastic = false;
  bool pods_are_ranks = false;       // each pod has one process, whose rank is the pod's RANK, as far as the job says
  bool waits_for_pod_group = false;  // create pods once Volcano has admitted the PodGroup
  std::optional<int> budget;         // of restarts; none: no limit
  std::vector<Notice> notices;

  const PlannedReplicas* Find(ReplicaType type) const;  // null: none of this type
  bool RestartsInPlace() const;                         // `meets` of all replicas
};

// InvalidArgument names the path, the value and the remedy, also of more or larger objects than limits.h and sizes.h
// allow. Takes memory for each template once, however many replicas it has.
StatusOr<PyTorchPlan> PlanPyTorchJob(const PyTorchJob& job, const PyTorchOptions& options);

// <job>-<master|worker>-<index>: the name of the pod and of its Service.
std::string ReplicaObjectName(const Meta& job, ReplicaType type, int index);
// A label selector for all pods of a type: "a=b,c=d".
std::string ReplicaSelector(const Meta& job, ReplicaType type);

// The parts of a pod that differ between attempts.
struct PodAttempt {
  int attempt = 0;
  int restarts_left = 0;  // of the budget
};
Json PodOfReplica(const PyTorchJob& job, const PyTorchPlan& plan, const PlannedReplicas& replicas, int index,
                  const PodAttempt& attempt);
Json ServiceOfReplica(const PyTorchJob& job, const PlannedReplicas& replicas, int index);

// The init containers (init-pytorch) that wait until `master`, a host name, resolves. InvalidArgument: the template is
// no list of containers, or has an unknown placeholder.
StatusOr<Json> WaitContainers(const PyTorchOptions& options, const std::string& master, const Json& container);

// Adds the Workload and the PodGroup of Kubernetes if the job asks for them (native_gang.h), and marks the pods as
// members. An existing PodGroup stays as it is, whatever the number of replicas becomes: its spec is immutable.
// InvalidArgument: as for AddNativeGang of native_gang.h, or it would never be complete.
Status AddNativeGang(const PyTorchJob& job, std::vector<Json>* templates, PyTorchPlan* plan);

// Adds the PodGroup of a gang scheduler to `plan`, and marks the pods as its members. The PodGroup gets the job's
// annotations. `templates`: of the pods of each of `plan->replicas`.
Status AddPodGroup(const PyTorchJob& job, const PyTorchOptions& options, std::vector<Json>* templates,
                   PyTorchPlan* plan);

}  // namespace muster::controller
