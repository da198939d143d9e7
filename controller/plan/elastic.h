// SPDX-License-Identifier: Apache-2.0
// Elastic jobs: the number of their pods may change while they run. Tells the pods that number, and plans the
// autoscaler that changes it. Pure.
//
// Each pod has the number in an annotation, and the kubelet writes it into a file. The agents watch the file
// (--nodes-file). So the first round needs no last call, and pods that come later join together. The controller updates
// the annotation of existing pods, because the template of a Job is immutable.
#pragma once

#include <string>

#include "base/json_fields.h"
#include "controller/plan/draft.h"

namespace muster::controller {

// On a pod of an elastic job: the number of pods that its Job should have.
inline constexpr char kNodesAnnotation[] = "muster.dev/nodes";
inline constexpr char kQueueLabel[] = "kueue.x-k8s.io/queue-name";  // on a TrainJob: Kueue has admitted its pods

// Whether the number of pods of the trainer step may change while it runs: the job is elastic, Kueue has not booked
// quota for a number of pods, and the API server does not refuse it, as for a Job in a gang of Kubernetes
// (native_gang.h).
bool Scales(const Draft& draft);

// Gives `container` of a pod template the file with the number of pods, and MUSTER_NODES_FILE with its path. Does
// nothing if the container has that variable.
void SetNodes(int pods, Json* pod_template, Json* container);

// A HorizontalPodAutoscaler, named as the job, that changes the number of pods through the job's /scale.
PlannedObject Autoscaler(std::string_view api_version, std::string_view kind, const std::string& name, int least,
                         int most, const Json& metrics);

// Adds one if the job is elastic and elasticPolicy.metrics is not empty; a notice instead if Scales() is false.
void AddAutoscaler(Draft* draft);

// status.selector, by which an autoscaler finds the pods of the trainer step.
std::string PodSelector(const std::string& train_job, const std::string& replicated_job);

}  // namespace muster::controller
