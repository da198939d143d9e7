// SPDX-License-Identifier: Apache-2.0
// Tells the pods of a job how to reach the status server (controller/kube/webhook/status_server.h), in the same way as
// Kubeflow Trainer with its feature gate TrainJobStatus. Pure.
#pragma once

#include <string>
#include <string_view>

#include "controller/plan/draft.h"

namespace muster::controller {

inline constexpr char kStatusPosts[] = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/";

// kStatusPosts + "NS/trainjobs/NAME/status": the path to which pods post the progress of a job.
std::string TrainerStatusPath(std::string_view ns, std::string_view name);
// The audience of their tokens, so that a token for one job is not valid for another: the path without "/apis/".
std::string TrainerStatusAudience(std::string_view ns, std::string_view name);

// Adds to each container of the trainer step the variables KUBEFLOW_TRAINER_SERVER_{URL,CA_CERT,TOKEN} and a volume
// with the pod's token and the server's certificate authority. Adds the ConfigMap with the authority to the job. An
// existing variable of the same name stays.
void AddStatusServer(const StatusServerAddress& server, Draft* draft);

}  // namespace muster::controller
