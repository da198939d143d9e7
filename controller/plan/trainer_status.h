// How the pods of a job reach the status server (controller/kube/status_server.h), as Kubeflow Trainer tells them where
// its gate TrainJobStatus is on. Pure.
#pragma once

#include <string>
#include <string_view>

#include "controller/plan/framework.h"

namespace muster::controller {

inline constexpr char kStatusPosts[] = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/";

// kStatusPosts + "NS/trainjobs/NAME/status": where the progress of a job is posted. It is the audience of the tokens,
// too, so that a pod's token for one job is of no use for another.
std::string TrainerStatusPath(std::string_view ns, std::string_view name);

// Adds to each container of the trainer step the variables KUBEFLOW_TRAINER_SERVER_{URL,CA_CERT,TOKEN} and a volume
// with a token of the pod and the server's authority; to the job the ConfigMap that has the authority. A variable of
// the same name that is there stays.
void AddStatusServer(const StatusServerAddress& server, Draft* draft);

}  // namespace muster::controller
