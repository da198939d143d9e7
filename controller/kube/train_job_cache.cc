#include "controller/kube/train_job_cache.h"

#include "base/log.h"
#include "base/text.h"
#include "controller/api/labels.h"

namespace muster::controller {

TrainJobCache::TrainJobCache(boost::asio::io_context& loop, ApiClient& client, RuntimeCache& runtimes, std::string ns,
                             Events events)
    : loop_(loop), client_(client), runtimes_(runtimes), ns_(std::move(ns)), events_(std::move(events)) {}

void TrainJobCache::Begin() {
  if (!runtimes_.synced()) ++unsynced_;
  runtimes_.Listen({.changed =
                        [this](const Meta& meta) {
                          for (const auto& [key, known] : jobs_) {  // those that wait for it
                            if (!known.plan && known.job.runtime.name == meta.name) Wake(key);
                          }
                        },
                    .synced = [this] { Synced(); }});
  runtimes_.Begin();
  Watch(kJobs, kJobSetNameLabel, &TrainJobCache::PutJob,
        [this](const std::string& ns, const std::string& name) { Wake(children_.RemoveJob(ns, name)); });
  Watch(kPods, kJobSetNameLabel, &TrainJobCache::PutPod,
        [this](const std::string& ns, const std::string& name) { Wake(children_.RemovePod(ns, name)); });
  Watch(kServices, kJobSetNameLabel, &TrainJobCache::PutService,
        [this](const std::string& ns, const std::string& name) { Wake(children_.RemoveService(ns, name)); });
  Watch(kTrainJobs, "", &TrainJobCache::PutTrainJob,
        [this](const std::string& ns, const std::string& name) { Drop(KeyOf(ns, name)); });
  for (const auto& informer : informers_) informer->Begin();
}

void TrainJobCache::Watch(const Resource& resource, const std::string& selector, Put put, Gone gone) {
  ++unsynced_;
  Informer::Events events;
  events.put = [this, put](const Json& object) { (this->*put)(object); };
  events.gone = std::move(gone);
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
}

template <class Object>
void TrainJobCache::PutChild(StatusOr<Object> child) {
  if (!child.ok()) return log::Warning(fmt::format("an object cannot be read: {}", Message(child.status())));
  const std::string owner = OwnerKeyOf(child->meta);
  if (children_.Put(*std::move(child))) Wake(owner);
}

void TrainJobCache::PutJob(const Json& object) { PutChild(ReadJob(object)); }
void TrainJobCache::PutPod(const Json& object) { PutChild(ReadPod(object)); }

void TrainJobCache::PutService(const Json& object) {
  auto meta = ReadMeta(object);
  if (!meta.ok()) return;
  children_.PutService(*meta);
  Wake(OwnerKeyOf(*meta));
}

void TrainJobCache::RemoveJob(const std::string& ns, const std::string& name) { children_.RemoveJob(ns, name); }

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
    if (const Json* status = FindField(object, "status")) job->status = ReadStatus(*status);
  }
  KnownTrainJob& known = jobs_[key];
  if (known.job.meta.uid == job->meta.uid && IsOlder(job->meta, known.job.meta)) return;
  if (known.job.meta.uid != job->meta.uid) known.plan = nullptr;
  known.job = *std::move(job);
  known.unreadable = unreadable;
  if (known.job.status.Finished()) known.plan = nullptr;
  Wake(key);
}

void TrainJobCache::Drop(const std::string& key) {
  if (jobs_.erase(key) > 0) events_.gone(key);
}

void TrainJobCache::Wake(const std::string& key) {
  if (!key.empty() && synced() && jobs_.contains(key)) events_.changed(key);
}

}  // namespace muster::controller
