// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/lenient.h"
#include "controller/plan/elastic.h"
#include "controller/plan/frameworks/framework.h"
#include "controller/plan/frameworks/torchtune.h"
#include "controller/plan/pod_fields.h"
#include "controller/plan/resources.h"

namespace muster::controller {
namespace {

struct TorchFacts {
  std::string nodes;      // PET_NNODES
  std::string processes;  // PET_NPROC_PER_NODE
  std::string master;     // host of node 0
  std::string job_id;
  bool elastic = false;  // the number of nodes is a range, which only the c10d rendezvous accepts
};

StatusOr<TorchFacts> FactsFor(const Draft& draft, ReplicatedJob& first) {
  TorchFacts facts;
  facts.nodes = draft.nodes.Text();
  facts.elastic = draft.nodes.elastic;
  MUSTER_ASSIGN_OR_RETURN(facts.processes,
                          ProcessesPerNode(draft.job, draft.runtime, PartOf(*TrainerContainer(first), "resources")));
  facts.master = FirstHost(draft, first);
  facts.job_id = JobId(draft.job);
  return facts;
}

// Adds the five PET_* variables; without `master` only the three that are not about node 0. PET_MASTER_PORT of the
// container stays.
void AddTorchVariables(const TorchFacts& facts, bool master, Json* container) {
  Json variables = Json::array();
  variables.push_back(EnvValue("PET_NNODES", facts.nodes));
  variables.push_back(EnvValue("PET_NPROC_PER_NODE", facts.processes));
  variables.push_back(IndexVariable("PET_NODE_RANK"));
  if (master) variables.push_back(EnvValue("PET_MASTER_ADDR", facts.master));
  if (master && FindNamed(std::as_const(*container), "env", "PET_MASTER_PORT") == nullptr) {
    variables.push_back(EnvValue("PET_MASTER_PORT", fmt::format("{}", kTrainerPort)));
  }
  UpsertEnvFirst(variables, container);
}

// Adds the PET_* variables and the port of the rendezvous. Also adds TRAINER_*, the names that arguments of older
// runtimes use, and PET_RDZV_* of an elastic job, unless the container has them.
void AddTorchEnvironment(const TorchFacts& facts, bool master, Json* container) {
  const Json* own_port = EnvText(*container, "PET_MASTER_PORT");
  const std::string port = own_port == nullptr ? fmt::format("{}", kTrainerPort) : own_port->get<std::string>();
  std::vector<std::pair<const char*, std::string>> wanted = {{"TRAINER_NNODES", facts.nodes},
                                                             {"TRAINER_NPROC_PER_NODE", facts.processes},
                                                             {"TRAINER_NODE_0_HOSTNAME", facts.master},
                                                             {"TRAINER_JOB_ID", facts.job_id}};
  if (facts.elastic) {
    wanted.insert(wanted.begin(), {{"PET_RDZV_BACKEND", "c10d"},
                                   {"PET_RDZV_ENDPOINT", fmt::format("{}:{}", facts.master, port)},
                                   {"PET_RDZV_ID", facts.job_id}});
  }
  Json fresh = Json::array();
  for (const auto& [name, value] : wanted) fresh.push_back(EnvValue(name, value));
  AddMissingEnv(fresh, container);
  AddTorchVariables(facts, master, container);
  if (const auto number = ParseInt(port); number && *number > 0 && *number <= 65535) {
    UpsertPort(static_cast<int>(*number), container);
  }
}

// mlPolicy.torch.envInjection.targets: containers of other jobs that get the PET_* variables too. InvalidArgument: no
// such job or container; names those that exist.
Status InjectIntoTargets(const TorchFacts& facts, const Runtime& runtime, std::vector<ReplicatedJob>* jobs) {
  Complaints complaints;
  Fields policy(&runtime.ml_policy.policy, fmt::format("runtime '{}': spec.mlPolicy.torch", runtime.meta.name),
                &complaints);
  Fields injection = policy.Object("envInjection");
  for (Fields& target : injection.Objects("targets")) {
    const std::string name = target.NeedText("jobName");
    const std::vector<std::string> wanted = target.Texts("containerNames").value_or(std::vector<std::string>());
    MUSTER_RETURN_IF_ERROR(complaints.status());
    const auto job = std::find_if(jobs->begin(), jobs->end(), [&](const auto& known) { return known.name == name; });
    if (job == jobs->end()) {
      std::vector<std::string> names;
      for (const ReplicatedJob& known : *jobs) names.push_back(known.name);
      return absl::InvalidArgumentError(fmt::format("{}: there is no job {}; there are: {}", target.PathOf("jobName"),
                                                    Quoted(name), Join(names, ", ")));
    }
    Json& pod = PodSpec(job->job_template);
    for (const std::string& container_name : wanted) {
      Json* container = FindNamed(pod, "containers", container_name);
      if (container == nullptr) container = FindNamed(pod, "initContainers", container_name);
      if (container == nullptr) {
        return absl::InvalidArgumentError(
            fmt::format("{}: job '{}' has no container {}; its containers are: {}; its init containers: {}",
                        target.PathOf("containerNames"), name, Quoted(container_name), NamesIn(pod, "containers"),
                        NamesIn(pod, "initContainers")));
      }
      AddTorchVariables(facts, true, container);
    }
  }
  return complaints.status();
}

}  // namespace

Status AddTorch(Draft* draft) {
  ReplicatedJob* first = FirstTrainer(*draft);
  if (first == nullptr) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const TorchFacts facts, FactsFor(*draft, *first));
  const bool torchtune = AsksTorchtune(draft->job);
  for (ReplicatedJob& of : draft->jobs) {
    if (of.step != Step::kTrainer) continue;
    if (torchtune) MUSTER_RETURN_IF_ERROR(AddRecipe(*draft, facts.processes, facts.master, TrainerContainer(of)));
    AddTorchEnvironment(facts, !torchtune, TrainerContainer(of));
  }
  // The agents of torchrun meet at a port of rank 0's pod, unless the job always has one pod.
  draft->agents_meet = draft->nodes.pods > 1 || draft->nodes.elastic;
  AddAutoscaler(draft);
  return InjectIntoTargets(facts, draft->runtime, &draft->jobs);
}

}  // namespace muster::controller
