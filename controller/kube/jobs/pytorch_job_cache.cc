#include "controller/kube/jobs/pytorch_job_cache.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/reconcile/repair.h"

namespace muster::controller {
namespace {

std::string JobKeyOf(const Meta& meta) {
  const std::string_view name = meta.Label(kTrainingJobLabel);
  return name.empty() ? "" : KeyOf(meta.ns, name);
}

PackedJson WithoutStatus(Json object) {
  object.erase("status");
  return PackedJson(object);
}

void SayUnreadable(const char* what, const Status& why) {
  log::Warning(fmt::format("a {} cannot be read: {}", what, Message(why)));
}

}  // namespace

PyTorchJobCache::PyTorchJobCache(boost::asio::io_context& loop, ApiClient& client, std::string ns,
                                 const Resource* pod_groups, Events events)
    : loop_(loop),
      client_(client),
      ns_(std::move(ns)),
      pod_groups_(pod_groups),
      events_(std::move(events)),
      objects_(JobKeyOf, [this](const std::string& key) { Wake(key); }),
      pod_events_(loop, client, ns_, [this](ObservedPodEvent event) { PutPodEvent(std::move(event)); }) {}

void PyTorchJobCache::Begin() {
  const std::string selector = fmt::format("{}={}", kOperatorNameLabel, kPyTorchOperator);
  Watch(kPods, selector);
  Watch(kServices, selector);
  Watch(kAutoscalers, selector);
  if (pod_groups_ != nullptr) Watch(*pod_groups_, "");
  Watch(kPyTorchJobs, "");
  for (const auto& informer : informers_) informer->Begin();
}

void PyTorchJobCache::Watch(const Resource& resource, const std::string& selector) {
  ++unsynced_;
  Informer::Events events;
  events.put = [this, resource](const Json& object) { Keep(resource, object); };
  events.gone = [this, resource](const GoneObject& gone) { Gone(resource, gone); };
  events.synced = [this] {
    if (--unsynced_ > 0) return;
    for (const auto& [key, known] : jobs_) events_.changed(key);
    pod_events_.Begin();
  };
  events.say = [](const std::string& text) { log::Warning(text); };
  informers_.push_back(std::make_unique<Informer>(loop_, client_, resource, ns_, selector, std::move(events)));
}

KnownPyTorchJob* PyTorchJobCache::Find(const std::string& key) {
  const auto found = jobs_.find(key);
  return found == jobs_.end() ? nullptr : &found->second;
}

const ObservedReplicas& PyTorchJobCache::Of(const KnownPyTorchJob& known) {
  const auto family = families_.find(KeyOf(known.job.meta.ns, known.job.meta.name));
  ObservedReplicas& seen = family == families_.end() ? nothing_ : family->second.seen;
  seen.has_objects = known.objects_generation == known.job.meta.generation;
  seen.agents = known.agents;
  seen.objects = &objects_.Of(KeyOf(known.job.meta.ns, known.job.meta.name));
  return seen;
}

void PyTorchJobCache::Put(const Resource& resource, const Json& object) {
  if (!deletions_.Cover(resource, object)) Keep(resource, object);
}

void PyTorchJobCache::Keep(const Resource& resource, const Json& object) {
  if (resource == kPyTorchJobs) PutJob(object);
  if (resource == kPods) PutPod(object);
  if (resource == kServices) PutService(object);
  if (resource == kAutoscalers) objects_.Put(object);
  if (pod_groups_ != nullptr && resource == *pod_groups_) PutPodGroup(object);
}

void PyTorchJobCache::Remove(const Resource& resource, const std::string& ns, const std::string& name) {
  Forget(resource, {ns, name, ""});
}

void PyTorchJobCache::PutJob(const Json& object) {
  auto meta = ReadMeta(object);
  if (!meta.ok()) return SayUnreadable("PyTorchJob", meta.status());
  const std::string key = KeyOf(meta->ns, meta->name);
  if (!IsPyTorchJobManagedByMuster(object)) {
    if (jobs_.erase(key) > 0) events_.gone(key);
    return;
  }
  auto job = ReadPyTorchJob(object);
  const Status unreadable = job.status();
  if (!job.ok()) {
    job = PyTorchJob();
    job->meta = *std::move(meta);
    job->status = ReadPyTorchJobStatus(PartOf(object, "status"));
  }
  KnownPyTorchJob& known = jobs_[key];
  const bool same = known.job.meta.uid == job->meta.uid;
  // Drops older states, also of an earlier job of that name, and the known one: an apply that changes nothing returns
  // it, and a pass would apply the same again, without end.
  if (!IsNews(job->meta, known.job.meta)) return;
  if (!same) known = KnownPyTorchJob();
  known.job = *std::move(job);
  known.unreadable = unreadable;
  if (known.job.status.Finished()) known.plan = nullptr;
  known.whole = known.job.status.Finished() || !unreadable.ok() ? PackedJson() : WithoutStatus(object);
  for (ReplicaSpec& replica : known.job.replicas) replica.pod_template = nullptr;
  known.job.meta.labels.clear();
  known.job.meta.annotations.clear();
  Wake(key);
}

void PyTorchJobCache::PutPod(const Json& object) {
  auto pod = ReadPod(object);
  if (!pod.ok()) return SayUnreadable("pod", pod.status());
  const std::string key = JobKeyOf(pod->meta);
  if (!Leaves(kPods, pod->meta, key) || key.empty()) return;
  pod_owners_[KeyOf(pod->meta.ns, pod->meta.name)] = key;
  Family& family = families_[key];
  if (family.places.Put(*std::move(pod), &family.seen.pods)) Wake(key);
}

void PyTorchJobCache::PutService(const Json& object) {
  auto service = ReadService(object);
  if (!service.ok()) return SayUnreadable("Service", service.status());
  const std::string key = JobKeyOf(service->meta);
  if (!Leaves(kServices, service->meta, key) || key.empty()) return;
  service_owners_[KeyOf(service->meta.ns, service->meta.name)] = key;
  std::vector<ObservedService>& services = families_[key].seen.services;
  const auto known = std::find_if(services.begin(), services.end(), [&service](const ObservedService& other) {
    return other.meta.name == service->meta.name;
  });
  if (known == services.end()) {
    services.push_back(*std::move(service));
  } else if (!IsOlder(service->meta, known->meta)) {
    *known = *std::move(service);
  }
  Wake(key);
}

bool PyTorchJobCache::Leaves(const Resource& resource, const Meta& meta, const std::string& key) {
  const auto& owners = resource == kPods ? pod_owners_ : service_owners_;
  const std::string object = KeyOf(meta.ns, meta.name);
  const auto owner = owners.find(object);
  if (owner == owners.end() || owner->second == key) return true;
  Forget(resource, {meta.ns, meta.name, meta.resource_version});
  return !owners.contains(object);
}

void PyTorchJobCache::PutPodGroup(const Json& object) {
  auto group = ReadPodGroup(object);
  if (!group.ok()) return SayUnreadable("PodGroup", group.status());
  const std::string key = KeyOf(group->meta.ns, group->meta.name);
  families_[key].seen.pod_group = *std::move(group);
  Wake(key);
}

void PyTorchJobCache::PutPodEvent(ObservedPodEvent event) {
  const auto owner = pod_owners_.find(KeyOf(event.meta.ns, event.pod));
  if (owner == pod_owners_.end()) return;
  Family& family = families_[owner->second];
  if (family.places.Note(std::move(event), &family.seen.pods)) Wake(owner->second);
}

void PyTorchJobCache::Gone(const Resource& resource, const GoneObject& gone) {
  deletions_.Note(resource, gone);
  Forget(resource, gone);
}

void PyTorchJobCache::Forget(const Resource& resource, const GoneObject& gone) {
  if (resource == kAutoscalers) return objects_.Remove(kAutoscalerKind, gone);
  const std::string object = KeyOf(gone.ns, gone.name);
  if (resource == kPyTorchJobs) {
    const auto job = jobs_.find(object);
    if (job == jobs_.end() || !IsGone(job->second.job.meta, gone)) return;
    jobs_.erase(job);
    return events_.gone(object);
  }
  std::string key = object;
  if (resource == kPods || resource == kServices) {
    auto& owners = resource == kPods ? pod_owners_ : service_owners_;
    const auto owner = owners.find(object);
    if (owner == owners.end()) return;
    key = owner->second;
  }
  const auto family = families_.find(key);
  if (family == families_.end()) return;
  ObservedReplicas& seen = family->second.seen;
  if (resource == kPods) {
    if (!family->second.places.Remove(gone, &seen.pods)) return;
    pod_owners_.erase(object);
  } else if (resource == kServices) {
    const auto count = std::erase_if(seen.services, [&gone](const ObservedService& service) {
      return service.meta.name == gone.name && IsGone(service.meta, gone);
    });
    if (count == 0) return;
    service_owners_.erase(object);
  } else {
    seen.pod_group.reset();
  }
  if (seen.pods.empty() && seen.services.empty() && !seen.pod_group) families_.erase(family);
  Wake(key);
}

void PyTorchJobCache::Wake(const std::string& key) {
  if (synced() && jobs_.contains(key)) events_.changed(key);
}

}  // namespace muster::controller
