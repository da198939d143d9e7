// What a PyTorchJob comes to: pods and Services, one of each for a replica, named, labelled and wired as
// training-operator v1.9 names, labels and wires them. Pure: the same inputs give the same bytes. docs/pytorchjob.md
// says what differs.
//
// A container whose command is known runs under the agent (agent.h), unless muster.dev/agent is "off". Such a job's
// environment is the same; a torchrun in it is Muster's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/api/pytorch_job.h"
#include "controller/plan/plan.h"

namespace muster::controller {

inline constexpr char kRestartAnnotation[] = "muster.dev/restart";  // on a PyTorchJob: "pod" or "job"
// On the pods that Muster makes of one: status.attempt when they were made.
inline constexpr char kAttemptAnnotation[] = "muster.dev/attempt";
// PET_MAX_RESTARTS where a job has no limit of its own.
inline constexpr int kUnlimitedRestarts = 1'000'000;

inline constexpr char kVolcanoScheduler[] = "volcano";
inline constexpr char kWaitContainer[] = "init-pytorch";  // in workers: it waits for the master

// What is made anew when a pod fails.
enum class RestartScope {
  kPod,  // that pod, as training-operator does it
  kJob   // the round on all nodes: in place where all pods have the agent, else all pods
};

struct PyTorchOptions {
  PlanOptions agent;
  RestartScope restart = RestartScope::kPod;  // of jobs without the annotation
  std::string wait_image;                     // of the init container init-pytorch; empty: the agent's
  int wait_tries = 100;                       // of 2 s each
  std::string wait_template;   // YAML of the containers in its place, with {{.MasterAddr}} ...; empty: none
  std::string gang_scheduler;  // "volcano", another scheduler's name; empty: none
  bool with_agent = true;      // false: pods that another operator has made run, and have none: the new ones meet them
};

struct PlannedReplicas {
  ReplicaType type = ReplicaType::kWorker;
  int count = 1;
  int first_rank = 0;  // of replica 0
  RestartPolicy restart = RestartPolicy::kOnFailure;
  bool agent = false;  // the container `pytorch` runs under it
  bool meets = false;  // and is torchrun: the agents restart the workers of all pods in their pods
  Json pod_template;   // of all its pods, without what differs between them
  Json ports;          // of the Services
};

struct PyTorchPlan {
  std::vector<PlannedReplicas> replicas;  // Master first
  std::vector<PlannedObject> objects;     // beside pods and Services, made before them
  RestartScope restart = RestartScope::kPod;
  bool has_master = false, elastic = false;
  bool pods_are_ranks = false;       // RANK of a pod is that of its only process, as far as the job says
  bool waits_for_pod_group = false;  // pods are made once Volcano has let the PodGroup in
  std::optional<int> budget;         // restarts; none: no limit
  std::vector<Notice> notices;

  const PlannedReplicas* Find(ReplicaType type) const;  // null: it has none
  bool RestartsInPlace() const;                         // all replicas meet
};

// InvalidArgument names the path, the value and the remedy.
StatusOr<PyTorchPlan> PlanPyTorchJob(const PyTorchJob& job, const PyTorchOptions& options);

// <job>-<master|worker>-<index>: of the pod, and of its Service.
std::string ReplicaObjectName(const Meta& job, ReplicaType type, int index);
// The labels of all pods of a type: "a=b,c=d".
std::string ReplicaSelector(const Meta& job, ReplicaType type);

// What differs between two makings of one pod.
struct PodAttempt {
  int attempt = 0;
  int restarts_left = 0;  // of the budget, where the agents restart
};
Json PodOfReplica(const PyTorchJob& job, const PyTorchPlan& plan, const PlannedReplicas& replicas, int index,
                  const PodAttempt& attempt);
Json ServiceOfReplica(const PyTorchJob& job, const PlannedReplicas& replicas, int index);

// init-pytorch in pods that wait for `master`, a host name. InvalidArgument: the template is no list of containers, or
// has a placeholder that is not known.
StatusOr<Json> WaitContainers(const PyTorchOptions& options, const std::string& master, const Json& pod,
                              const Json& container);

// The PodGroup of a gang scheduler into `plan`, and what its pods say about it. `metadata`: the job's annotations go
// to the group.
Status AddPodGroup(const PyTorchJob& job, const PyTorchOptions& options, PyTorchPlan* plan);

}  // namespace muster::controller
