#include "controller/plan/known_fields.h"

#include <algorithm>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/lenient.h"
#include "controller/api/pytorch_job.h"
#include "controller/plan/nearest_names.h"

namespace muster::controller {
namespace {

// Collects the fields that are not known.
class Unknown {
 public:
  explicit Unknown(std::string_view kind) : kind_(kind) {}

  // `known` has the names of all fields of `object`, with spaces between them.
  void Look(const std::string& path, const Json& object, std::string_view known) {
    if (!object.is_object()) return;
    const std::vector<std::string_view> words = Words(known);
    for (const auto& [name, value] : object.items()) {
      if (std::find(words.begin(), words.end(), name) != words.end()) continue;
      const std::vector<std::string> nearest = NearestNames(name, {words.begin(), words.end()});
      Add(PathOf(path, name), nearest.empty() ? "" : fmt::format("; the nearest is {}", Quoted(nearest.front())));
    }
  }
  void Add(std::string_view path, std::string_view hint) {
    found_.push_back(fmt::format("{}: is not a field of a {}: it is ignored{}", path, kind_, hint));
  }
  std::vector<std::string> Found() && { return std::move(found_); }

 private:
  std::string kind_;
  std::vector<std::string> found_;
};

constexpr std::string_view kTemplate = "metadata spec";

constexpr std::string_view kJobSet =
    "replicatedJobs network successPolicy failurePolicy startupPolicy suspend coordinator managedBy "
    "ttlSecondsAfterFinished volumeClaimPolicies";

constexpr std::string_view kJob =
    "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions managedBy manualSelector "
    "maxFailedIndexes parallelism podFailurePolicy podReplacementPolicy selector successPolicy suspend template "
    "ttlSecondsAfterFinished";

constexpr std::string_view kPod =
    "activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy "
    "enableServiceLinks ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname "
    "hostnameOverride imagePullSecrets initContainers nodeName nodeSelector os overhead preemptionPolicy priority "
    "priorityClassName readinessGates resourceClaims resources restartPolicy runtimeClassName schedulerName "
    "schedulingGates schedulingGroup securityContext serviceAccount serviceAccountName setHostnameAsFQDN "
    "shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes";

constexpr std::string_view kContainer =
    "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe "
    "resizePolicy resources restartPolicy restartPolicyRules securityContext startupProbe stdin stdinOnce "
    "terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir";

void LookAtPods(const std::string& path, const Json& pods, Unknown* unknown) {
  unknown->Look(path, pods, kTemplate);
  const Json& spec = PartOf(pods, "spec");
  const std::string of_spec = PathOf(path, "spec");
  unknown->Look(of_spec, spec, kPod);
  for (const char* list : {"initContainers", "containers"}) {
    size_t i = 0;
    for (const Json& container : ListField(spec, list)) {
      unknown->Look(PathOf(PathOf(of_spec, list), i++), container, kContainer);
    }
  }
}

void LookAtPolicies(const Json& spec, Unknown* unknown) {
  unknown->Look("spec.runPolicy", PartOf(spec, "runPolicy"), "activeDeadlineSeconds ttlSecondsAfterFinished");
  const Json& ml = PartOf(spec, "mlPolicy");
  unknown->Look("spec.mlPolicy", ml, "numNodes torch mpi flux jax xgboost");
  unknown->Look("spec.mlPolicy.torch", PartOf(ml, "torch"), "numProcPerNode elasticPolicy envInjection");
  unknown->Look("spec.mlPolicy.torch.elasticPolicy", PartOf(ml, "torch", "elasticPolicy"),
                "maxRestarts minNodes maxNodes metrics");
  unknown->Look("spec.mlPolicy.mpi", PartOf(ml, "mpi"),
                "numProcPerNode mpiImplementation sshAuthMountPath runLauncherAsNode");
  unknown->Look("spec.mlPolicy.flux", PartOf(ml, "flux"), "numProcPerNode");
  const Json& gang = PartOf(spec, "podGroupPolicy");
  unknown->Look("spec.podGroupPolicy", gang, "coscheduling volcano");
  unknown->Look("spec.podGroupPolicy.coscheduling", PartOf(gang, "coscheduling"), "scheduleTimeoutSeconds");
  unknown->Look("spec.podGroupPolicy.volcano", PartOf(gang, "volcano"), "networkTopology topologyKey networkPolicy");
  unknown->Look("spec.podGroupPolicy.volcano.networkTopology", PartOf(gang, "volcano", "networkTopology"),
                "mode highestTierAllowed topologyKey networkPolicy");
}

}  // namespace

std::vector<std::string> UnknownTrainJobFields(const Json& job) {
  Unknown unknown("TrainJob");
  const Json& spec = PartOf(job, "spec");
  unknown.Look("spec", spec,
               "runtimeRef initializer trainer runtimePatches suspend managedBy activeDeadlineSeconds "
               "ttlSecondsAfterFinished labels annotations podTemplateOverrides podSpecOverrides");
  unknown.Look("spec.runtimeRef", PartOf(spec, "runtimeRef"), "apiGroup kind name");
  unknown.Look("spec.trainer", PartOf(spec, "trainer"),
               "image command args env numNodes resourcesPerNode numProcPerNode");
  unknown.Look("spec.initializer", PartOf(spec, "initializer"), "dataset model");
  for (const char* one : {"dataset", "model"}) {
    unknown.Look(PathOf("spec.initializer", one), PartOf(spec, "initializer", one), "storageUri env secretRef");
  }
  return std::move(unknown).Found();
}

std::vector<std::string> UnknownRuntimeFields(const Json& runtime) {
  Unknown unknown(TextField(runtime, "kind"));
  const Json& spec = PartOf(runtime, "spec");
  unknown.Look("spec", spec, "mlPolicy podGroupPolicy template runPolicy");
  LookAtPolicies(spec, &unknown);
  unknown.Look("spec.template", PartOf(spec, "template"), kTemplate);
  const Json& job_set = PartOf(spec, "template", "spec");
  unknown.Look("spec.template.spec", job_set, kJobSet);
  size_t i = 0;
  for (const Json& job : ListField(job_set, "replicatedJobs")) {
    const std::string path = PathOf("spec.template.spec.replicatedJobs", i++);
    unknown.Look(path, job, "name groupName replicas dependsOn template");
    const std::string of_template = PathOf(path, "template");
    unknown.Look(of_template, PartOf(job, "template"), kTemplate);
    const Json& job_spec = PartOf(job, "template", "spec");
    unknown.Look(PathOf(of_template, "spec"), job_spec, kJob);
    LookAtPods(PathOf(of_template, "spec.template"), PartOf(job_spec, "template"), &unknown);
  }
  return std::move(unknown).Found();
}

std::vector<std::string> UnknownPyTorchJobFields(const Json& job) {
  Unknown unknown(kPyTorchJobKind);
  for (const std::string& path : UnknownFieldsOf(job)) unknown.Add(path, "");
  for (const auto& [type, replica] : MapField(PartOf(job, "spec"), "pytorchReplicaSpecs").items()) {
    LookAtPods(PathOf(PathOf("spec.pytorchReplicaSpecs", type), "template"), PartOf(replica, "template"), &unknown);
  }
  return std::move(unknown).Found();
}

}  // namespace muster::controller
