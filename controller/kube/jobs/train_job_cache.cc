#include "controller/kube/jobs/train_job_cache.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/reconcile/repair.h"

namespace muster::controller {
namespace {

// Drops what only the plan needs: a job may have a megabyte of patches.
void Trim(TrainJob* job) {
  job->dataset.reset();
  job->model.reset();
  job->trainer.reset();
  job->patches.clear();
  job->meta.labels.clear();
  std::erase_if(job->meta.annotations, [](const auto& one) { return one.first != kAfterAnnotation; });
}

PackedJson WithoutStatus(Json object) {
  object.erase("status");
  return PackedJson(object);
}

}  // namespace

TrainJobCache::TrainJobCache(boost::asio::io_context& loop, ApiClient& client, RuntimeCache& runtimes, std::string ns,
                             Events events)
    : loop_(loop),
      client_(client),
      runtimes_(runtimes),
      ns_(std::move(ns)),
      events_(std::move(events)),
      objects_(OwnerKeyOf, [this](const std::string& key) { Wake(key); }),
      pod_events_(loop, client, ns_, [this](ObservedPodEvent event) { Wake(children_.Put(std::move(event))); }) {}

void TrainJobCache::Begin() {
  if (!runtimes_.synced()) ++unsynced_;
  runtimes_.Listen({.changed =
                        [this](const Meta& meta) {
                          for (const auto& [key, known] : jobs_) {  // wakes the jobs that wait for this runtime
                            if (!known.plan && known.job.runtime.name == meta.name) Wake(key);
                          }
                        },
                    .synced = [this] { Synced(); }});
  runtimes_.Begin();
  Watch(kJobs, kJobSetNameLabel, [this](const GoneObject& gone) { Wake(children_.RemoveJob(gone)); });
  Watch(kPods, kJobSetNameLabel, [this](const GoneObject& gone) { Wake(children_.RemovePod(gone)); });
  Watch(kServices, kJobSetNameLabel, [this](const GoneObject& gone) { Wake(children_.RemoveService(gone)); });
  Watch(kConfigMaps, kJobSetNameLabel, [this](const GoneObject& gone) { objects_.Remove(kConfigMapKind, gone); });
  Watch(kAutoscalers, kJobSetNameLabel, [this](const GoneObject& gone) { objects_.Remove(kAutoscalerKind, gone); });
  Watch(kJobSets, "", [this](const GoneObject& gone) {
    const std::string key = KeyOf(gone.ns, gone.name);
    const auto found = job_sets_.find(key);
    if (found == job_sets_.end() || !IsGone(found->second.meta, gone)) return;
    job_sets_.erase(found);
    Wake(key);
  });
  Watch(kTrainJobs, "", [this](const GoneObject& gone) { Drop(KeyOf(gone.ns, gone.name)); });
  WatchRefusals();
  for (const auto& informer : informers_) informer->Begin();
}

// synced() does not wait for this list: the controller works without the right to read events, too.
void TrainJobCache::WatchRefusals() {
  Informer::Events events;
  events.put = [this](const Json& event) { PutRefusal(event); };
  events.gone = [this](const GoneObject& gone) { children_.RemoveRefusal(gone); };
  events.synced = [] {};
  events.say = [](const std::string& text) { log::Warning(text); };
  informers_.push_back(std::make_unique<Informer>(loop_, client_, kEvents, ns_, "", std::move(events),
                                                  "involvedObject.kind=Job,reason=FailedCreate"));
}

void TrainJobCache::Watch(const Resource& resource, const std::string& selector, Gone gone) {
  ++unsynced_;
  Informer::Events events;
  events.put = [this, resource](const Json& object) { Keep(resource, object); };
  events.gone = [this, resource, gone = std::move(gone)](const GoneObject& told) {
    deletions_.Note(resource, told);
    gone(told);
  };
  events.synced = [this] { Synced(); };
  events.say = [](const std::string& text) { log::Warning(text); };
  informers_.push_back(std::make_unique<Informer>(loop_, client_, resource, resource.namespaced ? ns_ : "", selector,
                                                  std::move(events)));
}

KnownTrainJob* TrainJobCache::Find(const std::string& key) {
  const auto found = jobs_.find(key);
  return found == jobs_.end() ? nullptr : &found->second;
}

void TrainJobCache::Synced() {
  if (--unsynced_ > 0) return;
  for (const auto& [key, known] : jobs_) events_.changed(key);
  pod_events_.Begin();
}

template <class Object>
void TrainJobCache::PutChild(StatusOr<Object> child) {
  if (!child.ok()) return log::Warning(fmt::format("an object cannot be read: {}", Message(child.status())));
  const std::string owner = OwnerKeyOf(child->meta);
  if (children_.Put(*std::move(child))) Wake(owner);
}

void TrainJobCache::Put(const Resource& resource, const Json& object) {
  if (!deletions_.Cover(resource, object)) Keep(resource, object);
}

void TrainJobCache::Keep(const Resource& resource, const Json& object) {
  if (resource == kTrainJobs) PutTrainJob(object);
  if (resource == kJobs) PutChild(ReadJob(object));
  if (resource == kPods) PutChild(ReadPod(object));
  if (resource == kServices) PutService(object);
  if (resource == kConfigMaps || resource == kAutoscalers) objects_.Put(object);
  if (resource == kJobSets) PutJobSet(object);
}

void TrainJobCache::Remove(const Resource& resource, const std::string& ns, const std::string& name) {
  if (resource == kJobs) children_.RemoveJob({ns, name, ""});
}

void TrainJobCache::PutJobSet(const Json& object) {
  auto job_set = ReadJobSet(object);
  if (!job_set.ok()) return log::Warning(fmt::format("a JobSet cannot be read: {}", Message(job_set.status())));
  const std::string key = KeyOf(job_set->meta.ns, job_set->meta.name);
  const auto [known, added] = job_sets_.try_emplace(key);
  if (!added && IsOlder(job_set->meta, known->second.meta)) return;
  known->second = *std::move(job_set);
  Wake(key);
}

const ObservedJobSet* TrainJobCache::JobSetOf(const TrainJob& job) const {
  const auto found = job_sets_.find(KeyOf(job.meta.ns, job.meta.name));
  return found != job_sets_.end() && IsOf(found->second, job) ? &found->second : nullptr;
}

bool TrainJobCache::HasSnapshot(const TrainJob& job) const {
  const auto& objects = objects_.Of(KeyOf(job.meta.ns, job.meta.name));
  return std::any_of(objects.begin(), objects.end(), [name = SnapshotName(job)](const ObservedObject& object) {
    return object.kind == kConfigMapKind && object.meta.name == name;
  });
}

void TrainJobCache::PutService(const Json& object) {
  auto service = ReadService(object);
  if (!service.ok()) return;
  children_.PutService(service->meta);
  Wake(OwnerKeyOf(service->meta));
}

void TrainJobCache::PutRefusal(const Json& event) {
  auto refusal = ReadRefusal(event);
  if (refusal.ok()) Wake(children_.Put(*std::move(refusal)));
}

void TrainJobCache::PutTrainJob(const Json& object) {
  auto meta = ReadMeta(object);
  if (!meta.ok()) return;
  const std::string key = KeyOf(meta->ns, meta->name);
  if (!IsManagedByMuster(object)) return Drop(key);
  auto job = ReadTrainJob(object);
  const Status unreadable = job.status();
  if (!job.ok()) {
    job = TrainJob();
    job->meta = *std::move(meta);
    job->status = ReadStatus(PartOf(object, "status"));
  }
  KnownTrainJob& known = jobs_[key];
  const bool same = known.job.meta.uid == job->meta.uid;
  // Drops older states, also of an earlier job of that name, and the known one: an apply that changes nothing returns
  // it, and a pass would apply the same again, without end.
  if (!IsNews(job->meta, known.job.meta)) return;
  // Changes that other jobs may wait for, or that may close or break a cycle.
  const bool tells = !same || known.job.status.Finished() != job->status.Finished() ||
                     known.job.meta.Annotation(kAfterAnnotation) != job->meta.Annotation(kAfterAnnotation);
  if (!same) known.plan = nullptr, known.runtime = {};
  known.job = *std::move(job);
  known.unreadable = unreadable;
  if (known.job.status.Finished()) known.plan = nullptr, known.runtime = {};
  const bool is_planned = known.plan != nullptr && known.planned_generation == known.job.meta.generation;
  const bool is_needed = !is_planned && !known.job.status.Finished() && unreadable.ok();
  known.whole = is_needed ? WithoutStatus(object) : PackedJson();
  Trim(&known.job);
  NoteWaits(key, known.job);
  Wake(key);
  if (tells) WakeWaiting(key);
}

void TrainJobCache::Drop(const std::string& key) {
  if (jobs_.erase(key) == 0) return;
  events_.gone(key);
  WakeWaiting(key);
}

const Observed& TrainJobCache::Of(const TrainJob& job, const std::string& subdomain) {
  Observed& observed = children_.Of(job.meta, subdomain);
  const std::string key = KeyOf(job.meta.ns, job.meta.name);
  observed.objects = &objects_.Of(key);
  const auto known = jobs_.find(key);
  observed.agents = known == jobs_.end() ? std::nullopt : known->second.agents;
  observed.hold = HoldOf(job, [&](const std::string& name) {
    const auto found = jobs_.find(KeyOf(job.meta.ns, name));
    return found == jobs_.end() ? nullptr : &found->second.job;
  });
  return observed;
}

void TrainJobCache::NoteWaits(const std::string& key, const TrainJob& job) {
  if (job.status.start_time) return;
  const auto awaited = ReadAfter(job);
  if (!awaited.ok()) return;
  for (const Awaited& each : *awaited) waiting_[KeyOf(job.meta.ns, each.job)].insert(key);
}

// Forgets jobs that have begun or are gone.
void TrainJobCache::WakeWaiting(const std::string& key) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  std::erase_if(found->second, [this](const std::string& waits) {
    const auto job = jobs_.find(waits);
    return job == jobs_.end() || job->second.job.status.start_time;
  });
  for (const std::string& waits : found->second) Wake(waits);
  if (found->second.empty()) waiting_.erase(found);
}

void TrainJobCache::Wake(const std::string& key) {
  if (!key.empty() && synced() && jobs_.contains(key)) events_.changed(key);
}

}  // namespace muster::controller
