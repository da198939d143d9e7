// SPDX-License-Identifier: Apache-2.0
// The plan of a TrainJob while it is made: the runtime's jobs, and what the framework and the policies add to them.
// Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
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
  std::map<std::string, int> pods;  // by replicated job, if the framework decides it
  // By replicated job. A job that is not here gets the agent without flags if it is of the trainer step, else no agent.
  std::map<std::string, AgentUse> agents;
  // Another job that gets spec.trainer, all but command and args. Its pods are nodes too. Empty: none.
  std::string workers;
  bool native_gang = false;            // Kubernetes itself schedules the pods as a gang (native_gang.h)
  bool agents_meet = false;            // the agents talk to each other, so they need the job's token
  std::vector<PlannedObject> objects;  // without the shared metadata, which job_object.h adds
  std::vector<Notice> notices;
};

ReplicatedJob* FirstTrainer(Draft& draft);                     // null: the runtime has no trainer step
ReplicatedJob* JobNamed(Draft& draft, std::string_view name);  // null: no job has that name
Json* TrainerContainer(ReplicatedJob& of);                     // the container `node`; null: the job has none
// The host name of pod 0 of a job, for the other pods.
std::string FirstHost(const Draft& draft, const ReplicatedJob& of);
// The TrainJob's UID, else its name. All pods of the job get the same one, and no other job has it.
std::string JobId(const TrainJob& job);
// {name, valueFrom}: a variable with the pod's completion index.
Json IndexVariable(std::string_view name);

}  // namespace muster::controller
