// SPDX-License-Identifier: Apache-2.0
#include "controller/api/runtime.h"

#include <re2/re2.h>

#include <algorithm>
#include <set>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/ml_policy.h"
#include "controller/api/pod_template.h"
#include "controller/api/train_job.h"

namespace muster::controller {
namespace {

constexpr size_t kLongestPattern = 1024;
constexpr size_t kMostJobs = 100;  // maxItems of status.jobsStatus in the CRD

// Fields that users often write at a wrong level, grouped by the right level.
constexpr const char* kJobSet[] = {"replicatedJobs", "successPolicy",       "failurePolicy", "startupPolicy",
                                   "network",        "volumeClaimPolicies", "coordinator"};
constexpr const char* kJob[] = {"parallelism", "completions", "backoffLimit", "completionMode", "podFailurePolicy"};
constexpr const char* kPod[] = {"containers",   "initContainers", "restartPolicy", "volumes",
                                "nodeSelector", "tolerations",    "affinity",      "serviceAccountName"};
constexpr const char* kMl[] = {"torch", "mpi", "jax", "xgboost", "flux", "numNodes"};

template <size_t size>
void Refuse(Fields& level, const char* const (&names)[size], const std::string& where) {
  for (const char* name : names) {
    if (level.Find(name) != nullptr) level.Wrong(name, fmt::format("it belongs in {}", PathOf(where, name)));
  }
}

// Gets copies: the names are not known in these places.
void RefuseMisplaced(Fields spec, Fields whole, Fields job_set) {
  const std::string of_jobs = PathOf(whole.path(), "spec");
  Refuse(spec, kJobSet, of_jobs);
  Refuse(whole, kJobSet, of_jobs);
  Refuse(spec, kMl, spec.PathOf("mlPolicy"));
  for (const char* name : {"mlPolicy", "podGroupPolicy"}) {
    for (Fields* level : {&whole, &job_set}) {
      if (level->Find(name) != nullptr) level->Wrong(name, fmt::format("it belongs in {}", spec.PathOf(name)));
    }
  }
}

void RefuseMisplacedInJob(Fields job) {
  Fields job_template = job.Object("template");
  Fields job_spec = job_template.Object("spec");
  Fields pod_template = job_spec.Object("template");
  const std::string of_job = job.PathOf("template.spec"), of_pod = of_job + ".template.spec";
  for (Fields* level : {&job, &job_template, &job_spec, &pod_template}) {
    for (const char* name : kJobSet) {
      const bool is_of_job = level == &job_spec && name == std::string_view("successPolicy");
      if (!is_of_job && level->Find(name) != nullptr) {
        level->Wrong(name, fmt::format("it belongs in {}", PathOf("spec.template.spec", name)));
      }
    }
  }
  for (Fields* level : {&job, &job_template, &job_spec, &pod_template}) Refuse(*level, kPod, of_pod);
  Fields pod_spec = pod_template.Object("spec");
  for (Fields* level : {&job, &job_template, &pod_template, &pod_spec}) Refuse(*level, kJob, of_job);
  for (Fields* level : {&job_template, &job_spec, &pod_template, &pod_spec}) {
    for (const char* name : {"dependsOn", "replicas"}) {
      if (level->Find(name) != nullptr) level->Wrong(name, fmt::format("it belongs in {}", job.PathOf(name)));
    }
  }
}

void CheckLabel(Fields& fields, const char* name, const std::string& text) {
  if (text.empty() || IsLabel(text)) return;
  fields.Wrong(name, text, "is not a DNS label: a-z, 0-9 and '-', a letter first and no '-' last, at most 63");
}

Step StepOf(Fields job_template) {
  const auto labels = job_template.Object("metadata").TextMap("labels");
  const auto found = labels.find(kAncestorLabel);
  if (found == labels.end()) return Step::kOther;
  if (found->second == "trainer") return Step::kTrainer;
  if (found->second == "dataset-initializer") return Step::kDatasetInitializer;
  if (found->second == "model-initializer") return Step::kModelInitializer;
  return Step::kOther;
}

using Names = std::set<std::string>;

// "node, launcher"
std::string Listed(const Names& names) { return Join({names.begin(), names.end()}, ", "); }

std::vector<Dependency> ReadDependencies(Fields& job, const Names& earlier) {
  std::vector<Dependency> dependencies;
  for (Fields& fields : job.Objects("dependsOn")) {
    Dependency dependency{.job = fields.NeedText("name")};
    const std::string until = fields.Word("status", {"Ready", "Complete"});
    if (until.empty()) fields.Wrong("status", "it is missing; Ready or Complete");
    dependency.until = until == "Ready" ? Dependency::Until::kReady : Dependency::Until::kComplete;
    if (!earlier.contains(dependency.job)) {
      fields.Wrong("name", dependency.job,
                   earlier.empty() ? "is not a job above this one, which is the first; leave dependsOn out"
                                   : fmt::format("is not a job above this one; these are: {}", Listed(earlier)));
    }
    dependencies.push_back(std::move(dependency));
  }
  return dependencies;
}

ReplicatedJob ReadReplicatedJob(Fields& fields, const Names& earlier) {
  ReplicatedJob job;
  job.name = fields.NeedText("name");
  CheckLabel(fields, "name", job.name);
  if (earlier.contains(job.name)) fields.Wrong("name", job.name, "is there twice; give each job its own name");
  const std::string group = fields.Text("groupName");
  CheckLabel(fields, "groupName", group);
  if (!group.empty()) job.group = group;
  job.replicas = fields.Int("replicas", 0).value_or(1);
  job.depends_on = ReadDependencies(fields, earlier);
  RefuseMisplacedInJob(fields);
  Fields job_template = fields.Object("template");
  if (!job_template) fields.Wrong("template", "it is missing");
  CheckJobTemplate(job_template, Extent::kWhole);
  job.step = StepOf(job_template);
  job.job_template = fields.Copy("template");
  fields.NoOthers();
  return job;
}

// The names in list `name`. Complains if one is not a replicated job.
std::vector<std::string> ReadTargets(Fields& fields, const char* name, const Names& jobs) {
  std::vector<std::string> targets = fields.Texts(name).value_or(std::vector<std::string>());
  for (size_t i = 0; i < targets.size(); ++i) {
    if (jobs.contains(targets[i])) continue;
    fields.complaints()->Wrong(PathOf(fields.PathOf(name), i), std::string_view(targets[i]),
                               fmt::format("is not a replicated job; these are: {}", Listed(jobs)));
  }
  return targets;
}

std::vector<std::string> ReadReasons(Fields& rule) {
  constexpr std::string_view kReasons[] = {"BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes",
                                           "MaxFailedIndexesExceeded", "PodFailurePolicy"};
  auto reasons = rule.Texts("onJobFailureReasons").value_or(std::vector<std::string>());
  for (size_t i = 0; i < reasons.size(); ++i) {
    if (std::find(std::begin(kReasons), std::end(kReasons), reasons[i]) != std::end(kReasons)) continue;
    rule.complaints()->Wrong(PathOf(rule.PathOf("onJobFailureReasons"), i), std::string_view(reasons[i]),
                             fmt::format("is not one of {}", fmt::join(kReasons, ", ")));
  }
  return reasons;
}

std::vector<std::string> ReadPatterns(Fields& rule) {
  auto patterns = rule.Texts("onJobFailureMessagePatterns").value_or(std::vector<std::string>());
  for (size_t i = 0; i < patterns.size(); ++i) {
    const std::string path = PathOf(rule.PathOf("onJobFailureMessagePatterns"), i);
    if (patterns[i].size() > kLongestPattern) {
      rule.complaints()->Wrong(path, fmt::format("it has more than {} characters", kLongestPattern));
      continue;
    }
    const RE2 pattern(patterns[i], RE2::Quiet);
    if (pattern.ok()) continue;
    rule.complaints()->Wrong(path, std::string_view(patterns[i]),
                             fmt::format("is not a regular expression of RE2: {}", Quoted(pattern.error())));
  }
  return patterns;
}

FailureRule::Action ReadAction(Fields& rule) {
  const std::string action = rule.Word("action", {"FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts",
                                                  "RestartJob", "RestartJobAndIgnoreMaxRestarts"});
  if (action.empty()) rule.Wrong("action", "it is missing");
  if (action.starts_with("RestartJob") && !action.starts_with("RestartJobSet")) {
    rule.Wrong("action", action, "is not served: all Jobs of a step restart together; use RestartJobSet");
  }
  if (action == "RestartJobSet") return FailureRule::Action::kRestart;
  if (action == "RestartJobSetAndIgnoreMaxRestarts") return FailureRule::Action::kRestartUncounted;
  return FailureRule::Action::kFail;
}

std::vector<FailureRule> ReadRules(Fields& failure, const Names& jobs) {
  std::vector<FailureRule> rules;
  Names names;
  for (Fields& fields : failure.Objects("rules")) {
    FailureRule rule;
    rule.name = fields.Text("name");
    if (rule.name.empty()) rule.name = fmt::format("failurePolicyRule{}", rules.size());
    if (!names.insert(rule.name).second) fields.Wrong("name", rule.name, "is there twice; a rule needs its own");
    rule.action = ReadAction(fields);
    rule.reasons = ReadReasons(fields);
    rule.patterns = ReadPatterns(fields);
    rule.jobs = ReadTargets(fields, "targetReplicatedJobs", jobs);
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::optional<FailurePolicy> ReadFailurePolicy(Fields fields, const Names& jobs) {
  if (!fields) return std::nullopt;
  FailurePolicy policy;
  policy.max_restarts = fields.Int("maxRestarts", 0).value_or(0);
  const std::string strategy = fields.Word("restartStrategy", {"Recreate", "BlockingRecreate", "InPlaceRestart"});
  if (!strategy.empty()) policy.restart_strategy = strategy;
  policy.rules = ReadRules(fields, jobs);
  return policy;
}

void ReadJobs(Fields& job_set, Runtime& runtime, Names& names) {
  std::vector<Fields> jobs = job_set.Objects("replicatedJobs");
  if (jobs.empty()) job_set.Wrong("replicatedJobs", "it is missing; a runtime needs a job");
  if (jobs.size() > kMostJobs) {
    job_set.Wrong("replicatedJobs", fmt::format("{} jobs are more than {}", jobs.size(), kMostJobs));
    return;
  }
  for (Fields& job : jobs) {
    runtime.jobs.push_back(ReadReplicatedJob(job, names));
    names.insert(runtime.jobs.back().name);
  }
}

void ReadJobSet(Fields& job_set, Runtime& runtime) {
  Names names;
  ReadJobs(job_set, runtime, names);

  Fields success = job_set.Object("successPolicy");
  runtime.success.all = success.Word("operator", {"All", "Any"}) != "Any";
  runtime.success.jobs = ReadTargets(success, "targetReplicatedJobs", names);
  runtime.failure = ReadFailurePolicy(job_set.Object("failurePolicy"), names);

  Fields network = job_set.Object("network");
  runtime.subdomain = network.Text("subdomain");
  CheckLabel(network, "subdomain", runtime.subdomain);
  runtime.publish_not_ready_addresses = network.Flag("publishNotReadyAddresses", true);
  runtime.dns_hostnames = network.Flag("enableDNSHostnames", true);

  Fields startup = job_set.Object("startupPolicy");
  runtime.in_order = startup.Word("startupPolicyOrder", {"AnyOrder", "InOrder"}) == "InOrder";
  const auto waits = [](const ReplicatedJob& job) { return !job.depends_on.empty(); };
  if (runtime.in_order && std::any_of(runtime.jobs.begin(), runtime.jobs.end(), waits)) {
    startup.Wrong("startupPolicyOrder", "StartupPolicy and DependsOn APIs are mutually exclusive; leave InOrder out");
  }

  Fields coordinator = job_set.Object("coordinator");
  if (coordinator) {
    const std::string job = coordinator.NeedText("replicatedJob");
    if (!names.contains(job)) {
      coordinator.Wrong("replicatedJob", job, fmt::format("is not a replicated job; these are: {}", Listed(names)));
    }
    coordinator.Int("jobIndex", 0);
    coordinator.Int("podIndex", 0);
  }
  runtime.coordinator = job_set.Copy("coordinator");
  for (Fields& policy : job_set.Objects("volumeClaimPolicies")) {
    policy.Objects("templates");
    policy.Object("retentionPolicy").Word("whenDeleted", {"Delete", "Retain"});
  }
  runtime.volume_claim_policies = job_set.Copy("volumeClaimPolicies");
  runtime.child_ttl_seconds = job_set.Number("ttlSecondsAfterFinished", 0);
  job_set.NoOthers("managedBy suspend");
}

}  // namespace

StatusOr<Runtime> ReadRuntime(const Json& object, UnknownFields* unknown) {
  Runtime runtime;
  MUSTER_ASSIGN_OR_RETURN(runtime.meta, ReadMeta(object));
  Complaints complaints(unknown);
  Fields root(&object, "", &complaints);
  const std::string api = root.Text("apiVersion");
  if (!api.empty() && api != kTrainerApi) {
    complaints.Wrong("apiVersion", std::string_view(api), fmt::format("is not {}", kTrainerApi));
  }
  runtime.kind = root.Word("kind", {"TrainingRuntime", "ClusterTrainingRuntime"});
  if (runtime.kind.empty()) root.Wrong("kind", "it is missing; TrainingRuntime or ClusterTrainingRuntime");

  Fields spec = root.Object("spec");
  if (!spec) root.Wrong("spec", "it is missing");
  Fields whole = spec.Object("template");
  Fields job_set = whole.Object("spec");
  RefuseMisplaced(spec, whole, job_set);
  if (!whole) spec.Wrong("template", "it is missing");
  if (!job_set) whole.Wrong("spec", "it is missing");
  runtime.ml_policy = ReadMlPolicy(spec);
  runtime.pod_group_policy = ReadPodGroupPolicy(spec);
  runtime.template_metadata = LabelsAndAnnotations(whole.Object("metadata"));
  ReadJobSet(job_set, runtime);
  Fields run_policy = spec.Object("runPolicy");
  runtime.active_deadline_seconds = run_policy.Number("activeDeadlineSeconds", 1);
  runtime.train_job_ttl_seconds = run_policy.Number("ttlSecondsAfterFinished", 0);
  for (const Fields* read : {&spec, &whole, &run_policy}) read->NoOthers();
  MUSTER_RETURN_IF_ERROR(complaints.status());
  return runtime;
}

}  // namespace muster::controller
