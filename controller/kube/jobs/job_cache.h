// SPDX-License-Identifier: Apache-2.0
// The jobs of one kind and what belongs to them, as watches and answers to writes bring them. Loop thread only.
//
// It is never older than Muster's own writes: the answer to a write counts as an event of a watch. Fields that no
// decision needs are dropped at once, so memory grows with the number of objects.
//
// A kind plugs in by a struct (TrainJobKind, PyTorchJobKind) with
//   Job, Plan, Decision          its types
//   Known                        a KnownJob<Job, Plan>, with what else is kept of a job
//   kName, kResource             "TrainJob"; where the API server has it
//   kKeepsWhole                  false: once a job is planned, the parts are dropped that only a plan needs
//   JobOf(meta)                  the key of the job that an object belongs to, by its labels; empty: to none
//   IsManaged(object)            false: another controller's
//   Read(object), ReadStatus(status), WriteStatus(status)
//   Trim(job)                    drops what only a plan needs
//   StateOf(job)                 its state, for metrics
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/packed_json.h"
#include "controller/kube/client/api_client.h"
#include "controller/kube/client/freshness.h"
#include "controller/kube/client/informer.h"
#include "controller/kube/jobs/actions.h"
#include "controller/kube/jobs/children.h"

namespace muster::controller {

template <class Job, class Plan>
struct KnownJob {
  Job job;                           // without the parts that only a plan needs
  PackedJson whole;                  // with them, without status; null: no plan is needed any more
  Status unreadable;                 // why the spec cannot be read; then `job` has metadata and status only
  std::shared_ptr<const Plan> plan;  // null: not made yet, or not needed any more
  int64_t planned_generation = -1;
  std::optional<AgentsSaid> agents;  // what they said last, of whichever pod was asked then

  bool IsPlanned() const { return plan != nullptr && planned_generation == job.meta.generation; }
  // True if the notices of a plan for this generation have not been recorded. Not if another leader has begun the job:
  // a new leader would write an event for each job that there is.
  bool HasNews() const {
    return planned_generation < 0 ? !job.status.start_time : planned_generation != job.meta.generation;
  }
};

// A kind of object that belongs to jobs, and the labels by which its objects are watched.
struct WatchedKind {
  Resource resource;
  std::string selector;  // empty: all objects
};

template <class Kind>
class JobCache : public ObjectCache {
 public:
  using Job = typename Kind::Job;
  using Known = typename Kind::Known;
  struct Events {
    std::function<void(const std::string& key)> changed;  // a job, or an object that belongs to it, has changed
    std::function<void(const std::string& key, const Meta& job)> gone;
  };
  // `ns`: empty: all namespaces. `client` must outlive the cache. When everything is listed, `changed` is called once
  // for each job, and from then on at each change.
  JobCache(boost::asio::io_context& loop, ApiClient& client, Events events, std::string ns,
           std::vector<WatchedKind> children)
      : loop_(loop),
        client_(client),
        ns_(std::move(ns)),
        events_(std::move(events)),
        watched_(std::move(children)),
        children_(Kind::JobOf, [this](const std::string& key) { Wake(key); }) {}
  virtual ~JobCache() = default;

  virtual void Begin() {
    for (const WatchedKind& kind : watched_) Watch(kind.resource, kind.selector);
    Watch(Kind::kResource, "");
    for (const auto& informer : informers_) informer->Begin();
  }
  bool synced() const { return unsynced_ == 0; }

  const std::map<std::string, Known>& jobs() const { return jobs_; }
  Known* Find(const std::string& key) {  // null: no such job, or another controller's
    const auto found = jobs_.find(key);
    return found == jobs_.end() ? nullptr : &found->second;
  }
  // What belongs to `job`, and what its agents say. Valid until the next call.
  const Observed& Of(const Job& job) {
    Observed& observed = children_.Of(job.meta);
    const Known* known = Find(KeyOf(job.meta.ns, job.meta.name));
    observed.agents = known == nullptr ? std::nullopt : known->agents;
    Complete(job, &observed);
    return observed;
  }

  void Put(const Resource& resource, const Json& object) override {
    if (!deletions_.Cover(resource, object)) Keep(resource, object);
  }
  void Remove(const Resource& resource, const std::string& ns, const std::string& name) override {
    children_.Remove(resource, {ns, name, ""});
  }
  void Gone(const Resource& resource, const GoneObject& gone) {  // a watch reports a deletion
    deletions_.Note(resource, gone);
    if (resource != Kind::kResource) return children_.Remove(resource, gone);
    const std::string key = KeyOf(gone.ns, gone.name);
    const Known* known = Find(key);
    if (known != nullptr && IsGone(known->job.meta, gone)) Drop(key);
  }

 protected:
  // Adds what only this kind observes.
  virtual void Complete(const Job& job, Observed* observed) = 0;
  // The job `key` has changed from `before`, which has no uid if it is new. Null `now`: it is gone.
  virtual void Changed(const std::string& key, const Job& before, const Job* now) = 0;

  // From now on synced() waits for a further list, until Synced() is called for it.
  void AwaitList() { ++unsynced_; }
  void Synced() {
    if (--unsynced_ > 0) return;
    for (const auto& [key, known] : jobs_) events_.changed(key);
    // The scheduler's Event about a preempted pod is of type Normal, and the only one that names the preemptor.
    FollowEvents("involvedObject.kind=Pod,type=Warning");
    FollowEvents("involvedObject.kind=Pod,reason=Preempted");
  }
  // synced() does not wait for the list of Events: the controller works without the right to read them, too.
  void FollowEvents(const std::string& fields) {
    Informer::Events events;
    events.put = [this](const ObjectView& event) { children_.Put(kEvents, event); };
    events.gone = [this](const GoneObject& gone) { children_.Remove(kEvents, gone); };
    events.synced = [] {};
    Follow(kEvents, "", std::move(events), fields);
    informers_.back()->Begin();
  }
  void Wake(const std::string& key) {
    if (synced() && jobs_.contains(key)) events_.changed(key);
  }

 private:
  void Follow(const Resource& resource, const std::string& selector, Informer::Events events,
              const std::string& fields = "") {
    events.say = [](const std::string& text) { log::Warning(text); };
    informers_.push_back(
        std::make_unique<Informer>(loop_, client_, resource, ns_, selector, std::move(events), fields));
  }

  void Watch(const Resource& resource, const std::string& selector) {
    AwaitList();
    Informer::Events events;
    events.put = [this, resource](const ObjectView& object) { Keep(resource, object); };
    events.gone = [this, resource](const GoneObject& gone) { Gone(resource, gone); };
    events.synced = [this] { Synced(); };
    Follow(resource, selector, std::move(events));
  }

  void Keep(const Resource& resource, const ObjectView& object) {
    if (resource == Kind::kResource) return PutJob(*object.json());
    for (const WatchedKind& kind : watched_) {
      if (kind.resource == resource) children_.Put(resource, object);
    }
  }

  void PutJob(const Json& object) {
    auto meta = ReadMeta(object);
    if (!meta.ok()) return log::Warning(fmt::format("a {} cannot be read: {}", Kind::kName, Message(meta.status())));
    const std::string key = KeyOf(meta->ns, meta->name);
    if (!Kind::IsManaged(object)) return Drop(key);
    auto job = Kind::Read(object);
    const Status unreadable = job.status();
    if (!job.ok()) {
      job = Job();
      job->meta = *std::move(meta);
      job->status = Kind::ReadStatus(PartOf(object, "status"));
    }
    Known& known = jobs_[key];
    // Drops older states, also of an earlier job of that name, and the known one: an apply that changes nothing returns
    // it, and a pass would apply the same again, without end.
    if (!IsNews(job->meta, known.job.meta)) return;
    const Job before = std::move(known.job);
    if (before.meta.uid != job->meta.uid || job->status.Finished()) known = Known();
    known.job = *std::move(job);
    known.unreadable = unreadable;
    const bool needs_plan = !known.job.status.Finished() && unreadable.ok();
    const bool keep_whole = needs_plan && (Kind::kKeepsWhole || !known.IsPlanned());
    known.whole = keep_whole ? WithoutStatus(object) : PackedJson();
    Kind::Trim(&known.job);
    Wake(key);
    Changed(key, before, &known.job);
  }

  static PackedJson WithoutStatus(Json object) {
    object.erase("status");
    return PackedJson(object);
  }

  void Drop(const std::string& key) {
    const auto found = jobs_.find(key);
    if (found == jobs_.end()) return;
    const Job before = std::move(found->second.job);
    jobs_.erase(found);
    events_.gone(key, before.meta);
    Changed(key, before, nullptr);
  }

  boost::asio::io_context& loop_;
  ApiClient& client_;
  const std::string ns_;
  const Events events_;
  const std::vector<WatchedKind> watched_;
  Children children_;
  ToldDeletions deletions_;
  std::map<std::string, Known> jobs_;  // by key
  std::vector<std::unique_ptr<Informer>> informers_;
  int unsynced_ = 0;
};

}  // namespace muster::controller
