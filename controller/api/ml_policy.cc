// SPDX-License-Identifier: Apache-2.0
#include "controller/api/ml_policy.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "controller/api/limits.h"

namespace muster::controller {
namespace {

struct NamedFramework {
  const char* name;
  Framework framework;
};

constexpr std::array<NamedFramework, 5> kFrameworks = {{{"torch", Framework::kTorch},
                                                        {"mpi", Framework::kMpi},
                                                        {"jax", Framework::kJax},
                                                        {"xgboost", Framework::kXgboost},
                                                        {"flux", Framework::kFlux}}};

void CheckTorchProcesses(Fields& torch) {
  const Json* value = torch.Find("numProcPerNode");
  if (value == nullptr) return;
  auto number = WholeNumber(*value);
  if (value->is_string()) {
    const std::string& text = value->get_ref<const std::string&>();
    if (text == "auto" || text == "cpu" || text == "gpu") return;
    number = ParseInt(text);
  }
  if (!number || *number < 1 || *number > kMostProcesses) {
    torch.complaints()->Wrong(torch.PathOf("numProcPerNode"), *value, kNoProcesses);
  }
}

void CheckElastic(Fields& torch, const MlPolicy& policy) {
  Fields elastic = torch.Object("elasticPolicy");
  if (!elastic) return;
  const auto least = elastic.Int("minNodes", 1, kMostPods), most = elastic.Int("maxNodes", 1, kMostPods);
  elastic.Int("maxRestarts", 0);
  elastic.Objects("metrics");
  if (least && most && *least > *most) {
    elastic.Wrong("minNodes", fmt::format("{} is more than maxNodes, which is {}", *least, *most));
  }
  if (policy.num_nodes) {
    torch.Wrong("elasticPolicy", "stands beside mlPolicy.numNodes; leave numNodes out: minNodes and maxNodes say it");
  }
  elastic.NoOthers();
}

void CheckEnvInjection(Fields& torch) {
  std::set<std::string> jobs;
  for (Fields& target : torch.Object("envInjection").Objects("targets")) {
    const std::string job = target.NeedText("jobName");
    if (!job.empty() && !jobs.insert(job).second) target.Wrong("jobName", "is there twice; put both into one");
    const auto containers = target.Texts("containerNames");
    if (!containers || containers->empty()) target.Wrong("containerNames", "it is missing");
    if (containers && std::find(containers->begin(), containers->end(), "node") != containers->end()) {
      target.Wrong("containerNames", "may not contain \"node\": that one always has the variables");
    }
  }
}

void CheckPolicy(Fields policy, const MlPolicy& ml_policy) {
  switch (ml_policy.framework) {
    case Framework::kTorch:
      CheckTorchProcesses(policy);
      CheckElastic(policy, ml_policy);
      CheckEnvInjection(policy);
      break;
    case Framework::kMpi:
      policy.Int("numProcPerNode", 1, kMostProcesses);
      policy.Word("mpiImplementation", {"OpenMPI", "Intel", "MPICH"});
      policy.Text("sshAuthMountPath");
      policy.Flag("runLauncherAsNode", false);
      break;
    case Framework::kFlux:
      policy.Int("numProcPerNode", 1, kMostProcesses);
      break;
    case Framework::kJax:
    case Framework::kXgboost:
    case Framework::kPlain:
      break;
  }
  policy.NoOthers();
}

}  // namespace

MlPolicy ReadMlPolicy(Fields& spec) {
  MlPolicy ml_policy;
  Fields fields = spec.Object("mlPolicy");
  if (!fields) return ml_policy;
  ml_policy.given = true;
  ml_policy.num_nodes = fields.Int("numNodes", 0, kMostPods);
  std::string_view first;
  for (const auto& [name, framework] : kFrameworks) {
    Fields policy = fields.Object(name);
    if (!policy) continue;
    if (!first.empty()) {
      spec.Wrong("mlPolicy", fmt::format("{} and {} are there. Only one of the policy can be configured", first, name));
      continue;
    }
    first = name;
    ml_policy.framework = framework;
    ml_policy.policy = fields.Copy(name);
    CheckPolicy(policy, ml_policy);
  }
  fields.NoOthers();
  return ml_policy;
}

Json ReadPodGroupPolicy(Fields& spec) {
  Fields policy = spec.Object("podGroupPolicy");
  Fields coscheduling = policy.Object("coscheduling"), volcano = policy.Object("volcano");
  if (coscheduling && volcano) {
    spec.Wrong("podGroupPolicy", "coscheduling and volcano are there; one scheduler places the pods: leave one out");
  }
  coscheduling.Int("scheduleTimeoutSeconds", 0);
  Fields topology = volcano.Object("networkTopology");
  topology.Word("mode", {"hard", "soft"});
  topology.Int("highestTierAllowed", 0);
  for (Fields* documented : {&volcano, &topology}) {
    documented->Text("topologyKey");
    documented->Word("networkPolicy", {"Best-effort", "Strict"});
  }
  for (const Fields* read : {&policy, &coscheduling, &volcano, &topology}) read->NoOthers();
  return spec.Copy("podGroupPolicy");
}

}  // namespace muster::controller
