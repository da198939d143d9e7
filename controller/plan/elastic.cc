// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/elastic.h"

#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/api/reasons.h"
#include "controller/plan/job_object.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

constexpr char kVolume[] = "muster-nodes";
constexpr char kFolder[] = "/muster-nodes";
constexpr char kFile[] = "nodes";
constexpr char kVariable[] = "MUSTER_NODES_FILE";

}  // namespace

bool Scales(const Draft& draft) {
  return draft.nodes.elastic && !draft.native_gang && draft.job.meta.Label(kQueueLabel).empty();
}

void SetNodes(int pods, Json* pod_template, Json* container) {
  if (FindNamed(std::as_const(*container), "env", kVariable) != nullptr) return;
  UpsertEnvFirst(Json::array({EnvValue(kVariable, fmt::format("{}/{}", kFolder, kFile))}), container);
  (*pod_template)["metadata"]["annotations"][kNodesAnnotation] = fmt::format("{}", pods);
  const Json field = {{"path", kFile},
                      {"fieldRef", {{"fieldPath", fmt::format("metadata.annotations['{}']", kNodesAnnotation)}}}};
  MountVolume(kVolume, {{"downwardAPI", {{"items", Json::array({field})}}}}, kFolder, MountMode::kReadOnly,
              &(*pod_template)["spec"], container);
}

PlannedObject Autoscaler(std::string_view api_version, std::string_view kind, const std::string& name, int least,
                         int most, const Json& metrics) {
  const Json target = {{"apiVersion", api_version}, {"kind", kind}, {"name", name}};
  PlannedObject planned;
  planned.object = {
      {"apiVersion", "autoscaling/v2"},
      {"kind", "HorizontalPodAutoscaler"},
      {"metadata", {{"name", name}}},
      {"spec", {{"scaleTargetRef", target}, {"minReplicas", least}, {"maxReplicas", most}, {"metrics", metrics}}}};
  planned.if_there = PlannedObject::IfThere::kUpdate;
  return planned;
}

void AddAutoscaler(Draft* draft) {
  const Runtime& runtime = draft->runtime;
  const Json& metrics = PartOf(runtime.ml_policy.policy, "elasticPolicy", "metrics");
  if (metrics.empty() || !draft->nodes.elastic) return;
  if (!Scales(*draft)) {
    const std::string why =
        draft->native_gang
            ? std::string("Kubernetes refuses to change the number of pods of a gang that runs")
            : fmt::format("the job has the label {}, and Kueue has admitted the number of its pods", kQueueLabel);
    draft->notices.push_back(
        {reason::kElasticMetricsIgnored, fmt::format("no HorizontalPodAutoscaler is made: {}", why)});
    return;
  }
  draft->objects.push_back(
      Autoscaler(kTrainerApi, "TrainJob", draft->job.meta.name, draft->nodes.least, draft->nodes.most, metrics));
}

std::string PodSelector(const std::string& train_job, const std::string& replicated_job) {
  return fmt::format("{}={},{}replicatedjob-name={}", kJobSetNameLabel, train_job, kJobSetPrefix, replicated_job);
}

}  // namespace muster::controller
