// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/children.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/reconcile/repair.h"
#include "controller/reconcile/taken_over.h"

namespace muster::controller {
namespace {

std::string KeyByLabel(const Meta& object, std::string_view label) {
  const std::string_view name = object.Label(label);
  return name.empty() ? "" : KeyOf(object.ns, name);
}

bool HasReason(const ObservedPodEvent& event) {
  // Pods are not ready for many reasons, and run on.
  if (event.reason == "Unhealthy") return !event.message.starts_with("Readiness");
  // Behind each Event with the image and the error the kubelet writes one that has neither.
  return event.message != "Error: ErrImagePull" && event.message != "Error: ImagePullBackOff";
}

}  // namespace

bool PodPlaces::Put(ObservedPod pod, std::vector<ObservedPod>* pods) {
  const auto [place, added] = places_.try_emplace(pod.meta.name, pods->size());
  if (added) {
    pods->push_back(std::move(pod));
    return true;
  }
  ObservedPod& known = (*pods)[place->second];
  if (known.meta.uid == pod.meta.uid ? !IsNews(pod.meta, known.meta) : IsOlder(pod.meta, known.meta)) return false;
  if (known.meta.uid == pod.meta.uid) pod.event = std::move(known.event);
  known = std::move(pod);
  return true;
}

bool PodPlaces::Note(ObservedPodEvent event, std::vector<ObservedPod>* pods) {
  const auto place = places_.find(event.pod);
  if (place == places_.end()) return false;
  ObservedPod& pod = (*pods)[place->second];
  if (pod.meta.uid != event.pod_uid || event.last < pod.event.last) return false;
  event.meta = Meta();  // nothing reads it any more
  pod.event = std::move(event);
  return true;
}

bool PodPlaces::Remove(const GoneObject& gone, std::vector<ObservedPod>* pods) {
  const auto place = places_.find(gone.name);
  if (place == places_.end() || !IsGone((*pods)[place->second].meta, gone)) return false;
  ObservedPod& freed = (*pods)[place->second];
  if (&freed != &pods->back()) {
    freed = std::move(pods->back());
    places_[freed.meta.name] = place->second;
  }
  pods->pop_back();
  places_.erase(place);
  return true;
}

std::string TrainJobOf(const Meta& object) { return KeyByLabel(object, kJobSetNameLabel); }
std::string PyTorchJobOf(const Meta& object) { return KeyByLabel(object, kTrainingJobLabel); }

template <class Object>
void Children::PutRead(const char* what, StatusOr<Object> object) {
  if (!object.ok()) return log::Warning(fmt::format("a {} cannot be read: {}", what, Message(object.status())));
  Put(*std::move(object));
}

template <class Object>
void Children::PutNamesake(const char* what, StatusOr<Object> object, std::optional<Object> Observed::*place) {
  if (!object.ok()) return log::Warning(fmt::format("a {} cannot be read: {}", what, Message(object.status())));
  const std::string job = KeyOf(object->meta.ns, object->meta.name);
  std::optional<Object>& known = families_[job].seen.*place;
  if (known && IsOlder(object->meta, known->meta)) return;
  known = *std::move(object);
  changed_(job);
}

void Children::Put(const Resource& resource, const ObjectView& view) {
  if (resource == kJobs) return PutRead("Job", ReadJob(view));
  if (resource == kPods) return PutRead("pod", ReadPod(view));
  const Json& object = *view.json();
  if (resource == kServices) PutRead("Service", ReadService(object));
  if (resource == kEvents) PutEvent(object);
  if (resource == kConfigMaps || resource == kAutoscalers) objects_.Put(object);
  if (resource == kJobSets) PutNamesake("JobSet", ReadJobSet(object), &Observed::job_set);
  if (resource == kPodGroups || resource == kVolcanoPodGroups) {
    PutNamesake("PodGroup", ReadPodGroup(object), &Observed::pod_group);
  }
}

void Children::PutEvent(const Json& object) {
  if (TextField(PartOf(object, "involvedObject"), "kind") == "Pod") {
    if (auto event = ReadPodEvent(object); event.ok() && HasReason(*event)) Put(*std::move(event));
  } else if (auto refusal = ReadRefusal(object); refusal.ok()) {
    Put(*std::move(refusal));
  }
}

Children::Family* Children::FamilyOf(const Resource& resource, const Meta& meta) {
  const std::string job = owner_of_(meta);
  const std::pair child(resource.plural, KeyOf(meta.ns, meta.name));
  const auto owner = owners_.find(child);
  if (owner != owners_.end() && owner->second != job) {
    Remove(resource, {meta.ns, meta.name, meta.resource_version});
    if (owners_.contains(child)) return nullptr;
  }
  if (job.empty()) return nullptr;
  owners_[child] = job;
  return &families_[job];
}

void Children::Put(ObservedJob job) {
  Family* family = FamilyOf(kJobs, job.meta);
  if (family == nullptr) return;
  const std::string key = owner_of_(job.meta);
  const auto [known, added] = family->jobs.try_emplace(job.meta.name);
  if (!added && known->second.meta.uid == job.meta.uid && !IsNews(job.meta, known->second.meta)) return;
  known->second = std::move(job);
  changed_(key);
}

void Children::Put(ObservedPod pod) {
  Family* family = FamilyOf(kPods, pod.meta);
  if (family == nullptr) return;
  const std::string key = owner_of_(pod.meta);
  if (family->places.Put(std::move(pod), &family->seen.pods)) changed_(key);
}

void Children::Put(ObservedService service) {
  Family* family = FamilyOf(kServices, service.meta);
  if (family == nullptr) return;
  const std::string key = owner_of_(service.meta);
  std::vector<ObservedService>& services = family->seen.services;
  const auto known = std::find_if(services.begin(), services.end(), [&service](const ObservedService& other) {
    return other.meta.name == service.meta.name;
  });
  if (known == services.end()) {
    services.push_back(std::move(service));
  } else if (!IsOlder(service.meta, known->meta)) {
    *known = std::move(service);
  }
  changed_(key);
}

void Children::Put(ObservedRefusal refusal) {
  const auto owner = owners_.find({kJobs.plural, KeyOf(refusal.meta.ns, refusal.job)});
  const std::string job = KeyOf(refusal.meta.ns, refusal.job_uid);
  refused_jobs_[KeyOf(refusal.meta.ns, refusal.meta.name)] = job;
  ObservedRefusal& known = refusals_[job];
  if (known.last <= refusal.last) known = std::move(refusal);
  if (owner != owners_.end()) changed_(owner->second);
}

void Children::Put(ObservedPodEvent event) {
  const auto owner = owners_.find({kPods.plural, KeyOf(event.meta.ns, event.pod)});
  if (owner == owners_.end()) return;
  Family& family = families_[owner->second];
  if (family.places.Note(std::move(event), &family.seen.pods)) changed_(owner->second);
}

void Children::RemoveRefusal(const GoneObject& gone) {
  const auto found = refused_jobs_.find(KeyOf(gone.ns, gone.name));
  if (found == refused_jobs_.end()) return;
  const auto refusal = refusals_.find(found->second);
  if (refusal != refusals_.end() && refusal->second.meta.name == gone.name) refusals_.erase(refusal);
  refused_jobs_.erase(found);
}

void Children::Remove(const Resource& resource, const GoneObject& gone) {
  if (resource == kEvents) return RemoveRefusal(gone);
  if (resource == kConfigMaps) return objects_.Remove(kConfigMapKind, gone);
  if (resource == kAutoscalers) return objects_.Remove(kAutoscalerKind, gone);
  const auto owner = owners_.find({resource.plural, KeyOf(gone.ns, gone.name)});
  const bool is_namesake = resource.plural == kJobSets.plural || resource.plural == kPodGroups.plural;
  if (owner == owners_.end() && !is_namesake) return;
  const std::string job = is_namesake ? KeyOf(gone.ns, gone.name) : owner->second;
  const auto family = families_.find(job);
  if (family == families_.end()) return;
  Observed& seen = family->second.seen;
  // True if `known` is the object that is gone.
  const auto is_it = [&gone](const auto& known) { return known.meta.name == gone.name && IsGone(known.meta, gone); };
  bool removed = false;
  if (resource == kPods) removed = family->second.places.Remove(gone, &seen.pods);
  if (resource == kServices) removed = std::erase_if(seen.services, is_it) > 0;
  if (resource == kJobs) {
    removed = std::erase_if(family->second.jobs, [&](const auto& named) { return is_it(named.second); }) > 0;
  }
  if (resource.plural == kJobSets.plural && seen.job_set && is_it(*seen.job_set)) {
    seen.job_set.reset();
    removed = true;
  }
  if (resource.plural == kPodGroups.plural && seen.pod_group && is_it(*seen.pod_group)) {
    seen.pod_group.reset();
    removed = true;
  }
  if (!removed) return;
  if (owner != owners_.end()) owners_.erase(owner);
  const bool empty =
      seen.pods.empty() && seen.services.empty() && family->second.jobs.empty() && !seen.job_set && !seen.pod_group;
  if (empty) families_.erase(family);
  changed_(job);
}

Observed& Children::Of(const Meta& job) {
  const std::string key = KeyOf(job.ns, job.name);
  const auto family = families_.find(key);
  if (family == families_.end()) nothing_ = Observed();
  Observed& seen = family == families_.end() ? nothing_ : family->second.seen;
  seen.objects = &objects_.Of(key);
  seen.jobs.clear();
  if (family == families_.end()) return seen;
  for (const auto& [name, child] : family->second.jobs) {
    if (!child.meta.IsControlledBy(job)) continue;
    seen.jobs.push_back(child);
    const auto refusal = refusals_.find(KeyOf(child.meta.ns, child.meta.uid));
    if (refusal == refusals_.end()) continue;
    seen.jobs.back().refusal = refusal->second.why;
    seen.jobs.back().refused_at = refusal->second.last;
  }
  return seen;
}

}  // namespace muster::controller
