#include "controller/kube/train_jobs.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"
#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/runtime.h"
#include "controller/kube/children.h"
#include "controller/kube/informer.h"
#include "controller/reconcile/decide.h"
#include "http/conversation.h"

namespace muster::controller {
namespace {

namespace asio = boost::asio;

const Resource kTrainJobs{kTrainerApi, "trainjobs", true};
const Resource kTrainingRuntimes{kTrainerApi, "trainingruntimes", true};
const Resource kClusterTrainingRuntimes{kTrainerApi, "clustertrainingruntimes", false};
const Resource kJobs{"batch/v1", "jobs", true};
const Resource kPods{"v1", "pods", true};
const Resource kServices{"v1", "services", true};
const Resource kConfigMaps{"v1", "configmaps", true};

// The answer to one call of the client, as a coroutine waits for it.
template <class Call>
asio::awaitable<StatusOr<Json>> Answer(Call call) {
  StatusOr<Json> answer = absl::UnknownError("not yet");
  // The loop holds what waits on it, and lets go of it however it ends.
  asio::steady_timer answered(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  const ApiClient::Handle handle = call([&answer, &answered](StatusOr<Json> its) {
    answer = std::move(its);
    answered.cancel();
  });
  co_await answered.async_wait(asio::as_tuple(asio::use_awaitable));
  http::ThrowIfCancelled(co_await asio::this_coro::cancellation_state);
  co_return answer;
}

}  // namespace

class TrainJobs::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Means means, Options options)
      : means_(std::move(means)),
        options_(std::move(options)),
        queue_(means_.loop, options_.queue,
               [this](const std::string& key, auto done) { Begin(key, std::move(done)); }) {}

  void Watch() {
    Informed(
        kTrainingRuntimes, "", [this](const Json& object) { PutRuntime(object); },
        [this](const std::string& ns, const std::string& name) { runtimes_.erase(KeyOf(ns, name)); });
    Informed(
        kClusterTrainingRuntimes, "", [this](const Json& object) { PutRuntime(object); },
        [this](const std::string&, const std::string& name) { runtimes_.erase(KeyOf("", name)); });
    Informed(
        kJobs, kJobSetNameLabel, [this](const Json& object) { PutChild(ReadJob(object)); },
        [this](const std::string& ns, const std::string& name) { Wake(children_.RemoveJob(ns, name)); });
    Informed(
        kPods, kJobSetNameLabel, [this](const Json& object) { PutChild(ReadPod(object)); },
        [this](const std::string& ns, const std::string& name) { Wake(children_.RemovePod(ns, name)); });
    Informed(
        kServices, kJobSetNameLabel, [this](const Json& object) { PutService(object); },
        [this](const std::string& ns, const std::string& name) { Wake(children_.RemoveService(ns, name)); });
    Informed(
        kTrainJobs, "", [this](const Json& object) { PutJob(object); },
        [this](const std::string& ns, const std::string& name) { DropJob(KeyOf(ns, name)); });
    for (const auto& informer : informers_) informer->Begin();
  }

  bool synced() const { return unsynced_ == 0; }

  Counts counts() const {
    Counts counts = counts_;
    for (const auto& [key, known] : jobs_) ++counts.jobs_by_state[known.job.status.state];
    return counts;
  }

 private:
  struct Known {
    TrainJob job;
    Status unreadable;                 // why its spec cannot be read; then `job` has metadata and status only
    std::shared_ptr<const Plan> plan;  // null: not made yet, or not needed any more
    int64_t planned_generation = -1;
  };
  using Put = std::function<void(const Json&)>;
  using Gone = std::function<void(const std::string& ns, const std::string& name)>;

  void Informed(const Resource& resource, const std::string& selector, Put put, Gone gone) {
    ++unsynced_;
    Informer::Events events;
    events.put = std::move(put);
    events.gone = std::move(gone);
    events.synced = [this] {
      if (--unsynced_ > 0) return;
      for (const auto& [key, known] : jobs_) queue_.Add(key);
    };
    events.say = [](const std::string& text) { log::Warning(text); };
    informers_.push_back(std::make_unique<Informer>(
        means_.loop, means_.client, resource, resource.namespaced ? options_.ns : "", selector, std::move(events)));
  }

  // --- what the watches bring

  void PutRuntime(const Json& object) {
    auto meta = ReadMeta(object);
    if (!meta.ok()) return;
    Json kept = object;
    kept["metadata"].erase("managedFields");
    kept["metadata"].erase("resourceVersion");
    runtimes_[KeyOf(meta->ns, meta->name)] = std::move(kept);
    for (const auto& [key, known] : jobs_) {  // those that wait for it
      if (!known.plan && known.job.runtime.name == meta->name) Wake(key);
    }
  }

  template <class Object>
  void PutChild(StatusOr<Object> child) {
    if (!child.ok()) return log::Warning(fmt::format("an object cannot be read: {}", Message(child.status())));
    const std::string owner = OwnerKeyOf(child->meta);
    if (children_.Put(*std::move(child))) Wake(owner);
  }

  void PutService(const Json& object) {
    auto meta = ReadMeta(object);
    if (!meta.ok()) return;
    children_.PutService(*meta);
    Wake(OwnerKeyOf(*meta));
  }

  void PutJob(const Json& object) {
    auto meta = ReadMeta(object);
    if (!meta.ok()) return;
    const std::string key = KeyOf(meta->ns, meta->name);
    if (!IsManagedByMuster(object)) return DropJob(key);
    auto job = ReadTrainJob(object);
    const Status unreadable = job.status();
    if (!job.ok()) {
      job = TrainJob();
      job->meta = *std::move(meta);
      if (const Json* status = FindField(object, "status")) job->status = ReadStatus(*status);
    }
    Known& known = jobs_[key];
    if (known.job.meta.uid == job->meta.uid && IsOlder(job->meta, known.job.meta)) return;
    if (known.job.meta.uid != job->meta.uid) known.plan = nullptr;
    known.job = *std::move(job);
    known.unreadable = unreadable;
    if (known.job.status.Finished()) known.plan = nullptr;
    Wake(key);
  }

  void DropJob(const std::string& key) {
    jobs_.erase(key);
    queue_.Forget(key);
  }

  void Wake(const std::string& key) {
    if (!key.empty() && synced() && jobs_.contains(key)) queue_.Add(key);
  }

  // --- a pass

  void Begin(const std::string& key, std::function<void(WorkQueue::Outcome)> done) {
    passes_[key] = http::Converse(means_.loop, Pass(key, std::move(done)));
  }

  asio::awaitable<void> Pass(std::string key, std::function<void(WorkQueue::Outcome)> done) {
    ++counts_.passes;
    const Status status = co_await Reconcile(key);
    if (!status.ok()) {
      ++counts_.failed_passes;
      log::Warning(fmt::format("TrainJob {}: {}", key, Message(status)));
    }
    // The queue may begin the next pass at once, which ends what keeps this one.
    asio::post(means_.loop, [done = std::move(done), ok = status.ok()] {
      done(ok ? WorkQueue::Outcome::kDone : WorkQueue::Outcome::kAgain);
    });
  }

  asio::awaitable<Status> Reconcile(std::string key) {
    auto found = jobs_.find(key);
    if (found == jobs_.end()) co_return absl::OkStatus();
    const TrainJob job = found->second.job;
    if (job.meta.deleted) co_return absl::OkStatus();
    if (job.status.Finished())
      co_return co_await CarryOut(job, DecideFinished(job, children_.Of(job.meta, ""), WallNow()));
    if (const Status why = found->second.unreadable; !why.ok()) {
      co_return co_await CarryOut(job, DecideWithoutPlan(job, why, WallNow()));
    }
    auto plan = co_await PlanOf(key, job);
    if (!plan.ok()) {
      const Status written = co_await CarryOut(job, DecideWithoutPlan(job, plan.status(), WallNow()));
      // What waits for the user is woken by what he does; what the server failed at is tried again.
      co_return absl::IsUnavailable(plan.status()) || absl::IsAborted(plan.status()) ? plan.status() : written;
    }
    const Decision decision = Decide(job, **plan, children_.Of(job.meta, (*plan)->subdomain), WallNow());
    const Status status = co_await CarryOut(job, decision);
    if (status.ok() || absl::IsUnavailable(status) || absl::IsAborted(status)) co_return status;
    const Status told = co_await CarryOut(job, DecideWithoutPlan(job, status, WallNow()));
    co_return told.ok() ? status : told;
  }

  // By the snapshot that the first pass has made of the runtime.
  asio::awaitable<StatusOr<std::shared_ptr<const Plan>>> PlanOf(std::string key, const TrainJob& job) {
    if (auto known = jobs_.find(key);
        known != jobs_.end() && known->second.plan && known->second.planned_generation == job.meta.generation) {
      co_return known->second.plan;
    }
    auto runtime = co_await RuntimeOf(job);
    if (!runtime.ok()) co_return runtime.status();
    auto read = ReadRuntime(*runtime);
    if (!read.ok()) co_return Annotate(read.status(), fmt::format("{} {}", job.runtime.kind, job.runtime.name));
    auto plan = MakePlan(job, *read, options_.plan);
    if (!plan.ok()) co_return plan.status();
    for (const Notice& notice : plan->notices) {
      means_.events.Record(kTrainerApi, "TrainJob", job.meta, false, notice.reason, notice.message, WallNow());
    }
    auto shared = std::make_shared<const Plan>(*std::move(plan));
    auto known = jobs_.find(key);
    if (known != jobs_.end() && known->second.job.meta.uid == job.meta.uid) {
      known->second.plan = shared;
      known->second.planned_generation = job.meta.generation;
    }
    co_return shared;
  }

  asio::awaitable<StatusOr<Json>> RuntimeOf(const TrainJob& job) {
    const std::string name = SnapshotName(job);
    auto snapshot = co_await Answer(
        [&](ApiClient::Done done) { return means_.client.Get(kConfigMaps, job.meta.ns, name, std::move(done)); });
    if (!absl::IsNotFound(snapshot.status())) {
      if (!snapshot.ok()) co_return snapshot.status();
      co_return ReadSnapshot(job, *snapshot);
    }
    const bool of_cluster = job.runtime.kind == "ClusterTrainingRuntime";
    if (job.runtime.api_group != kTrainerGroup || (!of_cluster && job.runtime.kind != "TrainingRuntime")) {
      co_return absl::InvalidArgumentError(
          fmt::format("spec.runtimeRef: unsupported runtime: {}.{}; want "
                      "ClusterTrainingRuntime or TrainingRuntime of {}",
                      job.runtime.kind, job.runtime.api_group, kTrainerGroup));
    }
    const auto found = runtimes_.find(KeyOf(of_cluster ? "" : job.meta.ns, job.runtime.name));
    if (found == runtimes_.end()) {
      co_return absl::NotFoundError(fmt::format("spec.runtimeRef: there is no {} {}; it starts once that is created",
                                                job.runtime.kind, job.runtime.name));
    }
    const Json runtime = found->second;
    const Json made = MakeSnapshot(job, runtime);
    auto created = co_await Answer(
        [&](ApiClient::Done done) { return means_.client.Create(kConfigMaps, job.meta.ns, made, std::move(done)); });
    if (absl::IsAlreadyExists(created.status())) co_return absl::AbortedError("the snapshot has just been made");
    if (!created.ok()) co_return created.status();
    co_return runtime;
  }

  asio::awaitable<Status> CarryOut(const TrainJob& job, Decision decision) {
    const std::string key = KeyOf(job.meta.ns, job.meta.name);
    if (!decision.reason.empty()) log::Debug(fmt::format("TrainJob {}: {}", key, decision.reason));
    const bool changed = !(decision.status == job.status);
    if (changed && decision.status_first) {
      const Status written = co_await Write(job, decision);
      if (!written.ok()) co_return written;
    }
    for (const Action& action : decision.actions) {
      if (!means_.may_act()) co_return absl::AbortedError("another controller leads now");
      const Status done = co_await Do(job, action);
      if (!done.ok()) co_return done;
    }
    if (changed && !decision.status_first) {
      const Status written = co_await Write(job, decision);
      if (!written.ok()) co_return written;
    }
    if (decision.again) queue_.AddAfter(key, std::max(Duration::zero(), Duration(*decision.again - WallNow())));
    co_return absl::OkStatus();
  }

  // The status, then the events about it.
  asio::awaitable<Status> Write(const TrainJob& job, const Decision& decision) {
    if (!means_.may_act()) co_return absl::AbortedError("another controller leads now");
    const Json object = {{"apiVersion", kTrainerApi},
                         {"kind", "TrainJob"},
                         {"metadata", {{"name", job.meta.name}, {"namespace", job.meta.ns}, {"uid", job.meta.uid}}},
                         {"status", WriteStatus(decision.status)}};
    auto written = co_await Answer([&](ApiClient::Done done) {
      return means_.client.Apply(kTrainJobs, job.meta.ns, job.meta.name, "status", object, std::move(done));
    });
    if (absl::IsNotFound(written.status())) co_return absl::OkStatus();
    if (!written.ok()) co_return written.status();
    for (const EventText& event : decision.events) {
      means_.events.Record(kTrainerApi, "TrainJob", job.meta, event.warning, event.reason, event.message, WallNow());
    }
    PutJob(*written);
    co_return absl::OkStatus();
  }

  asio::awaitable<Status> Do(const TrainJob& job, const Action& action) {
    using Kind = Action::Kind;
    switch (action.kind) {
      case Kind::kCreateService:
        co_return co_await Create(job, kServices, action);
      case Kind::kCreateJob:
        co_return co_await Create(job, kJobs, action);
      case Kind::kSuspendJob: {
        const Json patch = {{"metadata", {{"uid", action.uid}}}, {"spec", {{"suspend", true}}}};
        auto patched = co_await Answer([&](ApiClient::Done done) {
          return means_.client.Merge(kJobs, job.meta.ns, action.name, "", patch, std::move(done));
        });
        if (patched.ok()) PutChild(ReadJob(*patched));
        co_return absl::IsNotFound(patched.status()) ? absl::OkStatus() : patched.status();
      }
      case Kind::kDeleteJob:
        co_return co_await Delete(job, kJobs, action);
      case Kind::kDeletePod:
        co_return co_await Delete(job, kPods, action);
      case Kind::kDeleteTrainJob:
        co_return co_await Delete(job, kTrainJobs, action);
    }
    co_return absl::InternalError("an action of no kind");
  }

  asio::awaitable<Status> Create(const TrainJob& job, const Resource& resource, const Action& action) {
    auto made = co_await Answer([&](ApiClient::Done done) {
      return means_.client.Create(resource, job.meta.ns, action.object, std::move(done));
    });
    if (absl::IsAlreadyExists(made.status())) {
      made = co_await Answer(
          [&](ApiClient::Done done) { return means_.client.Get(resource, job.meta.ns, action.name, std::move(done)); });
      if (absl::IsNotFound(made.status())) co_return absl::AbortedError(fmt::format("{} has just gone", action.name));
      if (!made.ok()) co_return made.status();
      auto meta = ReadMeta(*made);
      if (!meta.ok()) co_return meta.status();
      const OwnerReference* owner = meta->Controller();
      if (meta->deleted || (owner != nullptr && owner->kind == "TrainJob" && owner->name == job.meta.name &&
                            owner->uid != job.meta.uid)) {
        co_return absl::AbortedError(
            fmt::format("{} {} of an earlier job of that name is being deleted", resource.plural, action.name));
      }
      if (owner == nullptr || owner->uid != job.meta.uid) {
        co_return absl::FailedPreconditionError(
            fmt::format("{} {}/{} is needed, and belongs to {}; delete it, or give the TrainJob another name",
                        resource.plural, job.meta.ns, action.name,
                        owner == nullptr ? std::string("nobody") : fmt::format("{} {}", owner->kind, owner->name)));
      }
    }
    if (!made.ok()) co_return made.status();
    if (resource == kJobs) {
      PutChild(ReadJob(*made));
    } else {
      PutService(*made);
    }
    co_return absl::OkStatus();
  }

  // What has gone, or been made anew, is not to be deleted any more.
  asio::awaitable<Status> Delete(const TrainJob& job, const Resource& resource, const Action& action) {
    auto gone = co_await Answer([&](ApiClient::Done done) {
      return means_.client.Delete(resource, job.meta.ns, action.name, action.uid, std::move(done));
    });
    const bool is_done = gone.ok() || absl::IsNotFound(gone.status()) || absl::IsAborted(gone.status());
    if (is_done && resource == kJobs) children_.RemoveJob(job.meta.ns, action.name);
    co_return is_done ? absl::OkStatus() : gone.status();
  }

  const Means means_;
  const Options options_;
  Children children_;
  std::map<std::string, Json> runtimes_;  // by key; "/name": of the cluster
  std::map<std::string, Known> jobs_;     // by key
  std::vector<std::unique_ptr<Informer>> informers_;
  int unsynced_ = 0;
  Counts counts_;
  std::map<std::string, std::shared_ptr<void>> passes_;
  WorkQueue queue_;
};

TrainJobs::TrainJobs(Means means, Options options)
    : impl_(std::make_shared<Impl>(std::move(means), std::move(options))) {}
TrainJobs::~TrainJobs() = default;
void TrainJobs::Begin() { impl_->Watch(); }
bool TrainJobs::synced() const { return impl_->synced(); }
TrainJobs::Counts TrainJobs::counts() const { return impl_->counts(); }

}  // namespace muster::controller
