// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/job_object.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/plan/agent.h"
#include "controller/plan/names.h"
#include "controller/plan/native_gang.h"
#include "controller/plan/placement.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

constexpr size_t kMostLabelValue = 63;
constexpr std::string_view kKueuePrefix = "kueue.x-k8s.io/";  // for the TrainJob; Kueue would queue a Job that has it

std::string Key(std::string_view name) { return fmt::format("{}{}", kJobSetPrefix, name); }

// Merges `over` into `field` of `metadata`; `over` wins.
void Put(const Json& over, const char* field, Json* metadata) {
  if (!over.is_object() || over.empty()) return;
  Json& map = (*metadata)[field];
  if (map.is_null()) map = Json::object();
  map.update(over);
}

// Merges the shared labels and annotations into the object's own; the object's own win.
void PutShared(const Json& shared, Json* metadata) {
  for (const char* field : {"labels", "annotations"}) {
    Json merged = Json::object();
    for (const auto& [key, value] : MapField(shared, field).items()) {
      if (!key.starts_with(kKueuePrefix)) merged[key] = value;
    }
    if (const Json* own = FindField(*metadata, field)) merged.update(*own);
    if (!merged.empty()) (*metadata)[field] = std::move(merged);
  }
}

// The host that the runtime names as the coordinator.
std::string Coordinator(const JobFrame& frame) {
  const Json& coordinator = frame.runtime.coordinator;
  return HostName(frame.job.meta.name, TextField(coordinator, "replicatedJob"), CountField(coordinator, "jobIndex"),
                  CountField(coordinator, "podIndex"), frame.subdomain);
}

// The labels of JobSet that all Jobs of `of` have. JobSet sets the same keys and values as annotations.
Json CommonKeys(const JobFrame& frame, const ReplicatedJob& of) {
  int all = 0, group = 0;
  for (const ReplicatedJob& other : frame.jobs) {
    all += other.replicas;
    if (other.group == of.group) group += other.replicas;
  }
  Json keys = {{kJobSetNameLabel, frame.job.meta.name},
               {Key("replicatedjob-name"), of.name},
               {kRestartAttemptLabel, "0"},
               {Key("replicatedjob-replicas"), fmt::format("{}", of.replicas)},
               {Key("global-replicas"), fmt::format("{}", all)},
               {Key("group-name"), of.group},
               {Key("group-replicas"), fmt::format("{}", group)}};
  if (!frame.job.meta.uid.empty()) keys[Key("jobset-uid")] = frame.job.meta.uid;
  if (frame.runtime.coordinator.is_object()) {
    const std::string host = Coordinator(frame);
    if (host.size() <= kMostLabelValue) keys[Key("coordinator")] = host;
  }
  return keys;
}

// Those in which the Jobs differ.
Json OwnKeys(const PlannedJob& planned, const std::string& ns) {
  return {{Key("job-index"), fmt::format("{}", planned.index)},
          {Key("job-global-index"), fmt::format("{}", planned.global_index)},
          {Key("job-group-index"), fmt::format("{}", planned.group_index)},
          {kJobKeyLabel, Sha1Hex(fmt::format("{}/{}", ns, planned.name))}};
}

// Places the pods by the annotations of the Job (placement.h), and copies these annotations to the pod.
void PlaceApart(const Json& job_metadata, const std::string& ns, Json* pod) {
  const Json& annotations = job_metadata["annotations"];
  const std::string topology = TextField(annotations, kExclusiveAnnotation);
  if (topology.empty()) return;
  const bool by_nodes = FindField(annotations, kNodeSelectorAnnotation) != nullptr;
  for (const char* name : {kExclusiveAnnotation, kNodeSelectorAnnotation}) {
    if (const Json* given = FindField(annotations, name)) (*pod)["metadata"]["annotations"][name] = *given;
  }
  if (by_nodes) {
    PlaceOnNodesOf(ns, TextField(job_metadata, "name"), &(*pod)["spec"]);
  } else {
    PlaceExclusively(topology, TextField(job_metadata["labels"], kJobKeyLabel), &(*pod)["spec"]);
  }
}

}  // namespace

Json MakeJobs(const JobFrame& frame, const ReplicatedJob& of, int pods) {
  const Json keys = CommonKeys(frame, of);
  Json job_template = of.job_template;

  Json metadata = OwnedMetadata(kTrainerApi, "TrainJob", frame.job.meta, "");
  for (const char* field : {"labels", "annotations"}) {
    if (const Json* own = FindField(job_template["metadata"], field)) metadata[field] = *own;
  }
  PutShared(frame.shared_metadata, &metadata);

  Json spec = std::move(job_template["spec"]);
  if (FindField(spec, "completionMode") == nullptr) spec["completionMode"] = "Indexed";
  spec["parallelism"] = spec["completions"] = pods;
  spec.erase("suspend");  // the TrainJob's field decides
  // An annotation replaces the field: else Kubernetes deletes a finished step's Job too early, and it is recreated.
  std::optional<int64_t> ttl = frame.runtime.child_ttl_seconds;
  if (const Json* own = FindField(spec, "ttlSecondsAfterFinished")) {
    if (const auto seconds = WholeNumber(*own)) ttl = std::min(ttl.value_or(*seconds), *seconds);
    spec.erase("ttlSecondsAfterFinished");
  }
  if (ttl) metadata["annotations"][kChildTtlAnnotation] = fmt::format("{}", *ttl);
  Json& pod = spec["template"];
  PutShared(frame.shared_metadata, &pod["metadata"]);
  for (Json* labelled : {&metadata, &pod["metadata"]}) {
    for (const char* field : {"labels", "annotations"}) Put(keys, field, labelled);
  }
  if (!frame.version.empty()) metadata["annotations"][kVersionAnnotation] = frame.version;
  Json& pod_spec = pod["spec"];
  if (frame.runtime.dns_hostnames) pod_spec["subdomain"] = frame.subdomain;
  if (FindField(pod_spec, "restartPolicy") == nullptr) {
    // Kubernetes accepts only Never beside a podFailurePolicy.
    pod_spec["restartPolicy"] = FindField(spec, "podFailurePolicy") == nullptr ? "OnFailure" : "Never";
  }
  return {{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
}

Json MakeService(const JobFrame& frame) {
  Json metadata = OwnedMetadata(kTrainerApi, "TrainJob", frame.job.meta, frame.subdomain);
  PutShared(frame.shared_metadata, &metadata);
  const Json selector = {{kJobSetNameLabel, frame.job.meta.name}};
  Put(selector, "labels", &metadata);
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", std::move(metadata)},
          {"spec",
           {{"clusterIP", "None"},
            {"selector", selector},
            {"publishNotReadyAddresses", frame.runtime.publish_not_ready_addresses}}}};
}

void MakeOwned(const JobFrame& frame, Json* object) {
  Json& metadata = (*object)["metadata"];
  Json owned = OwnedMetadata(kTrainerApi, "TrainJob", frame.job.meta, TextField(metadata, "name"));
  owned.update(metadata);
  metadata = std::move(owned);
  PutShared(frame.shared_metadata, &metadata);
  Put({{kJobSetNameLabel, frame.job.meta.name}}, "labels", &metadata);
}

Json PlannedJob::Object() const {
  Json object = common.Unpack();
  Json& metadata = object["metadata"];
  Json& pod = object["spec"]["template"];
  const std::string ns = TextField(metadata, "namespace");
  const Json keys = OwnKeys(*this, ns);
  metadata["name"] = name;
  for (Json* labelled : {&metadata, &pod["metadata"]}) {
    for (const char* field : {"labels", "annotations"}) Put(keys, field, labelled);
  }
  PlaceApart(metadata, ns, &pod);
  return object;
}

Json JobOfAttempt(const PlannedJob& planned, const Attempt& attempt) {
  Json object = planned.Object();
  Json& spec = object["spec"];
  const std::string number = fmt::format("{}", attempt.number);
  for (Json* metadata : {&object["metadata"], &spec["template"]["metadata"]}) {
    for (const char* field : {"labels", "annotations"}) (*metadata)[field][kRestartAttemptLabel] = number;
  }
  if (attempt.suspend) spec["suspend"] = true;
  if (planned.in_gang && !attempt.pod_group.empty()) PutInPodGroup(attempt.pod_group, &object);
  if (planned.budget_in_job) spec["backoffLimit"] = attempt.restarts_left;
  if (!planned.agent) return object;
  Json* container = FindNamed(PodSpec(object), "containers", kTrainerContainer);
  if (container != nullptr && EnvText(*container, kMaxRestartsVariable) != nullptr) {
    UpsertEnv(EnvValue(kMaxRestartsVariable, fmt::format("{}", attempt.restarts_left)), container);
  }
  return object;
}

}  // namespace muster::controller
