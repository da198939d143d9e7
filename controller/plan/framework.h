// What a framework adds to a plan: how many pods its jobs have, what their containers are told, and the objects that
// they need beside them. One file each: torch.cc, mpi.cc, jax.cc ... Pure.
//
// By then the runtime's jobs are patched and ordered, and spec.trainer is in the containers `node` of the trainer step.
// The agent comes after the framework.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"
#include "controller/plan/agent.h"
#include "controller/plan/node_count.h"
#include "controller/plan/plan.h"

namespace muster::controller {

// Jobs of an MPI runtime: mpirun runs in the launcher, its daemons in the nodes.
inline constexpr char kMpiLauncher[] = "launcher", kMpiNodes[] = "node";

struct Draft {
  const TrainJob& job;
  const Runtime& runtime;
  std::string subdomain;
  NodeCount nodes;
  std::vector<ReplicatedJob> jobs;  // in the runtime's order
  std::map<std::string, int> pods;  // by replicated job, where the framework decides it
  // By replicated job; a job of the trainer step that is not here has the agent without flags, others have none.
  std::map<std::string, AgentUse> agents;
  // A job that spec.trainer goes into as well, but for its command: its pods are nodes too. Empty: none.
  std::string workers;
  bool agents_meet = false;            // they need the job's token
  std::vector<PlannedObject> objects;  // without the metadata that all objects share: job_object.h adds it
  std::vector<Notice> notices;
};

// Null: the runtime has no trainer step.
ReplicatedJob* FirstTrainer(Draft& draft);
// Null: there is none of that name.
ReplicatedJob* JobNamed(Draft& draft, std::string_view name);
// The container `node` of a job; null: there is none.
Json* TrainerContainer(ReplicatedJob& of);
// The host of pod 0 of a job, as the other pods find it.
std::string FirstHost(const Draft& draft, const ReplicatedJob& of);
// The TrainJob's UID, else its name: the same for all pods of this job, and of no other one.
std::string JobId(const TrainJob& job);
// {name, valueFrom}: the pod's index among those of its Job.
Json IndexVariable(std::string_view name);

// Which jobs are the trainer step and which its workers, where the framework has a word in it. Before spec.trainer.
void SettleSteps(Draft* draft);

// Adds what the runtime's framework needs. InvalidArgument names the path, the value and the remedy.
Status AddFramework(Draft* draft);

// The names of variables that Muster sets for `framework`: no spec.trainer.env and no patch may have them.
// InvalidArgument: `path` and those that are in `env`.
Status CheckReservedNames(Framework framework, std::string_view path, const Json& env);

Status AddTorch(Draft* draft);
Status AddMpi(Draft* draft);
Status AddJax(Draft* draft);
Status AddXgboost(Draft* draft);

}  // namespace muster::controller
