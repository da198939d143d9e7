// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/pytorch_services.h"

#include <map>

#include "base/text.h"
#include "controller/api/labels.h"

namespace muster::controller {
namespace {

std::string ConflictOf(const std::string& replica, const std::vector<const ObservedService*>& services) {
  std::vector<std::string> names;
  for (const ObservedService* service : services) names.push_back(service->meta.name);
  return fmt::format(
      "Services {} all have the labels of replica {}: none of them is made, changed or deleted, and the replica is "
      "reached by the name {}. Take the labels {} and {} off those that are not the job's, and let them select its "
      "pods "
      "by {}",
      Join(names, ", "), replica, replica, kTrainingJobLabel, kReplicaIndexLabel, kTrainingJobLabel);
}

}  // namespace

ServiceSteps SettleServices(const PyTorchJob& job, const PyTorchPlan& plan, const Observed& observed) {
  ServiceSteps steps;
  std::map<std::pair<std::string, int>, std::vector<const ObservedService*>> matching;
  for (const ObservedService& service : observed.services) {
    if (service.index) matching[{service.replica_type, *service.index}].push_back(&service);
  }
  for (const PlannedReplicas& planned : plan.replicas) {
    for (int index = 0; index < planned.count; ++index) {
      const std::string name = ReplicaObjectName(job.meta, planned.type, index);
      const auto found = matching.extract({std::string(ReplicaLabel(planned.type)), index});
      const std::vector<const ObservedService*> services =
          found.empty() ? std::vector<const ObservedService*>() : found.mapped();
      const bool is_there = std::any_of(services.begin(), services.end(),
                                        [&name](const ObservedService* service) { return service->meta.name == name; });
      if (services.size() > 1) {
        if (steps.conflict.empty()) steps.conflict = ConflictOf(name, services);
      } else if (!is_there) {
        // Created even if a Service of another name matches: the pods of the job use this name.
        Action action{.kind = Action::Kind::kCreateService, .name = name};
        action.object = [&job, &planned, index] { return ServiceOfReplica(job, planned, index); };
        steps.actions.push_back(std::move(action));
      } else if (!services.front()->reaches_pods) {
        DeleteService(job, observed, name, &steps.actions);  // it is created again when it is gone
      }
    }
  }
  for (const auto& [replica, services] : matching) {
    if (services.size() > 1) continue;
    DeleteService(job, observed, services.front()->meta.name, &steps.actions);
  }
  return steps;
}

void DeleteService(const PyTorchJob& job, const Observed& observed, const std::string& name,
                   std::vector<Action>* actions) {
  for (const ObservedService& service : observed.services) {
    if (service.meta.name != name || !service.meta.IsControlledBy(job.meta) || service.meta.deleted) continue;
    actions->push_back({Action::Kind::kDeleteService, name, service.meta.uid});
  }
}

}  // namespace muster::controller
