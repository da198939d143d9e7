// Elastic jobs, whose number of pods may change while they run: what tells their pods that number, and what changes it.
// Pure.
//
// Each pod has the number as an annotation, which the kubelet brings into a file. The agents watch that file
// (--nodes-file), so the first round needs no last call, and pods that come later are taken in together. The controller
// changes the annotation of the pods that are there; the template of a Job cannot be changed.
#pragma once

#include <string>

#include "base/json_fields.h"
#include "controller/plan/framework.h"

namespace muster::controller {

// On a pod of an elastic job: how many pods its Job is meant to have.
inline constexpr char kNodesAnnotation[] = "muster.dev/nodes";
inline constexpr char kQueueLabel[] = "kueue.x-k8s.io/queue-name";  // on a TrainJob: Kueue has admitted its pods

// Whether the pods of the trainer step may become more and fewer while it runs: it is elastic, and no quota is booked
// for a number of them.
bool Scales(const Draft& draft);

// The container of a pod template hears how many pods there are meant to be. A file that the container names itself
// stays.
void TellNodes(int pods, Json* pod_template, Json* container);

// A HorizontalPodAutoscaler of the job's name, which changes its number of pods by its /scale.
PlannedObject Autoscaler(std::string_view api_version, std::string_view kind, const std::string& name, int least,
                         int most, const Json& metrics);

// Puts one into the draft where elasticPolicy.metrics asks for one.
void AddAutoscaler(Draft* draft);

// status.selector: how an autoscaler finds the pods of the trainer step.
std::string PodSelector(const std::string& train_job, const std::string& replicated_job);

}  // namespace muster::controller
