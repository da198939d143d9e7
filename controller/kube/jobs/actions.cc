// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/actions.h"

#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/kube/client/answer.h"
#include "controller/plan/native_gang.h"
#include "controller/plan/placement.h"
#include "controller/plan/pod_object.h"
#include "controller/reconcile/repair.h"
#include "controller/reconcile/written.h"

namespace muster::controller {
namespace {

namespace asio = boost::asio;

// The labels of `planned` that watches select by, and that `found` lacks or has with another value.
Json LostLabels(const Json& planned, const Json& found) {
  Json lost = Json::object();
  const Json& labels = MapField(PartOf(found, "metadata"), "labels");
  for (const auto& [name, value] : MapField(PartOf(planned, "metadata"), "labels").items()) {
    const bool selects = name == kJobSetNameLabel || name.starts_with("training.kubeflow.org/");
    if (selects && Json(TextField(labels, name.c_str())) != value) lost[name] = value;
  }
  return lost;
}

// True if the answer to a deletion is a pod that its node has to end first, or that has finalizers.
bool IsEnding(const Json& deleted) {
  const Json& meta = PartOf(deleted, "metadata");
  return TextField(deleted, "kind") == "Pod" &&
         (CountField(meta, "deletionGracePeriodSeconds") > 0 || !ListField(meta, "finalizers").empty());
}

// Carries out the actions for one job.
class Executor {
 public:
  Executor(ApiClient& client, MasterKey& master_key, ObjectCache& cache, const ActionOwner& job)
      : client_(client), master_key_(master_key), cache_(cache), job_(job) {}

  // Creates a Job or a Service.
  asio::awaitable<Status> Create(const Resource& resource, const Action& action) {
    auto made = co_await Post(resource, action.object);
    if (absl::IsAlreadyExists(made.status())) {
      made = co_await GetOwn(resource, action.name);
      if (!made.ok()) co_return made.status();
      if (const Json lost = LostLabels(action.object(), *made); !lost.empty()) {
        // Without these labels the watch does not see the object, so they are put back.
        const Json patch = {{"metadata", {{"labels", lost}}}};
        made = co_await Merge(resource, action.name, patch);
      }
    }
    if (made.ok()) cache_.Put(resource, *made);
    co_return made.status();
  }

  // Creates a pod of a PyTorchJob. OK if the job's own pod of that name is still ending: the watch will report its end.
  asio::awaitable<Status> CreatePod(const Action& action) {
    auto made = co_await Post(kPods, action.object);
    if (made.ok()) cache_.Put(kPods, *made);
    if (!absl::IsAlreadyExists(made.status())) co_return made.status();
    auto found = co_await Get(kPods, action.name);
    if (absl::IsNotFound(found.status()))
      co_return absl::AbortedError(fmt::format("pod {} has just gone", action.name));
    if (!found.ok()) co_return found.status();
    auto meta = ReadMeta(*found);
    if (!meta.ok()) co_return meta.status();
    if (meta->deleted && meta->IsControlledBy(job_.meta)) co_return absl::OkStatus();
    const Status own = CheckOwner(kPods, *found);
    if (!own.ok()) co_return own;
    if (LostLabels(action.object(), *found).empty()) {
      cache_.Put(kPods, *found);
      co_return absl::OkStatus();
    }
    // The job's labels were removed from its pod. The pod is released: it gets no owner.
    const Json patch = {{"metadata", {{"uid", meta->uid}, {"ownerReferences", nullptr}}}};
    const auto released = co_await Merge(kPods, action.name, patch);
    if (!released.ok()) co_return released.status();
    co_return absl::FailedPreconditionError(
        fmt::format("pod {}/{} lost the labels of the job and was released; its replacement needs the name: delete it",
                    job_.meta.ns, action.name));
  }

  asio::awaitable<Status> AdoptPod(const Action& action) {
    const Json owner = OwnerReferenceTo(job_.resource.api, job_.kind, job_.meta);
    const Json patch = {{"metadata", {{"uid", action.uid}, {"ownerReferences", Json::array({owner})}}}};
    auto adopted = co_await Merge(kPods, action.name, patch);
    if (adopted.ok()) cache_.Put(kPods, *adopted);
    co_return absl::IsNotFound(adopted.status()) ? absl::OkStatus() : adopted.status();
  }

  // One of TrainJobPlan::objects, by its `if_there`.
  asio::awaitable<Status> CreateObject(const Action& action) {
    Json planned = action.object();
    auto resource = ResourceOf(planned);
    if (!resource.ok()) co_return resource.status();
    std::string key;
    if (action.fill != PlannedObject::Fill::kNothing) {
      auto read = co_await master_key_.Get();
      if (!read.ok()) co_return read.status();
      key = *std::move(read);
    }
    const auto filled = Filled(action, job_.meta.uid, key);
    if (!filled.ok()) co_return filled.status();
    const std::function<Json()> make = [&filled] { return *filled; };
    auto made = co_await Post(*resource, make);
    const bool of_gang = resource->api == kGangPodGroups.api;
    if (of_gang && !absl::IsAlreadyExists(made.status())) {
      const Status served = CheckGangAnswer(planned, made);
      if (!served.ok()) co_return served;
    }
    if (!of_gang && absl::IsNotFound(made.status()) && resource->plural == kPodGroups.plural) {
      co_return absl::FailedPreconditionError(fmt::format(
          "the cluster knows no PodGroup of {}: install its scheduler with the CustomResourceDefinition {}.{}, or take "
          "podGroupPolicy out of the runtime ({})",
          resource->api, resource->plural, resource->api.substr(0, resource->api.find('/')), Message(made.status())));
    }
    if (absl::IsAlreadyExists(made.status())) {
      if (action.if_there == PlannedObject::IfThere::kUse) co_return absl::OkStatus();
      made = co_await GetOwn(*resource, action.name);
      if (made.ok() && action.if_there == PlannedObject::IfThere::kUpdate && !Holds(*made, planned)) {
        planned["metadata"].erase("ownerReferences");  // the job is one of the owners
        made = co_await Merge(*resource, action.name, planned);
      }
      if (made.ok() && action.if_there == PlannedObject::IfThere::kReplace && !HoldsGang(*made, planned)) {
        Action deletion = action;
        deletion.uid = UidOf(*made);
        const Status deleted = co_await Delete(*resource, deletion);
        if (!deleted.ok()) co_return deleted;
        made = co_await Post(*resource, make);
        const Status served = CheckGangAnswer(planned, made);
        // Pods that have not ended hold the deleted one.
        if (absl::IsAlreadyExists(served)) co_return absl::AbortedError(fmt::format("{} is ending", action.name));
        if (!served.ok()) co_return served;
      } else if (made.ok() && of_gang) {
        const Status served = CheckGangAnswer(planned, made);
        if (!served.ok()) co_return served;
      }
    }
    if (made.ok()) cache_.Put(*resource, *made);
    co_return made.status();
  }

  // Creates a pod from the template of the Job on the API server. OK without a pod if that Job is gone or replaced.
  asio::awaitable<Status> CreatePodOfJob(const Action& action) {
    auto owner = co_await Get(kJobs, action.job);
    if (absl::IsNotFound(owner.status())) co_return absl::OkStatus();
    if (!owner.ok()) co_return owner.status();
    auto meta = ReadMeta(*owner);
    if (!meta.ok()) co_return meta.status();
    if (meta->uid != action.uid || meta->deleted) co_return absl::OkStatus();
    auto pod = PodOfJob(*owner, action.index, action.name);
    if (!pod.ok()) co_return pod.status();
    if (!action.not_on.empty()) ExcludeNode(action.not_on, &*pod);
    const std::function<Json()> make = [&pod] { return *pod; };
    auto made = co_await Post(kPods, make);
    if (absl::IsAlreadyExists(made.status())) co_return absl::OkStatus();  // the watch will report it
    if (made.ok()) cache_.Put(kPods, *made);
    co_return made.status();
  }

  // Patches an object. OK if it does not exist any more.
  asio::awaitable<Status> Change(const Resource& resource, const Action& action) {
    const Json patch = PatchOf(action);
    auto patched = co_await Merge(resource, action.name, patch);
    if (patched.ok()) cache_.Put(resource, *patched);
    co_return absl::IsNotFound(patched.status()) ? absl::OkStatus() : patched.status();
  }

  // OK also if the object is gone, or another one (uid) has its name.
  asio::awaitable<Status> Delete(const Resource& resource, const Action& action,
                                 ApiClient::Grace grace = ApiClient::Grace::kOwn) {
    auto gone = co_await Answer([&](ApiClient::Done done) {
      return client_.Delete(resource, job_.meta.ns, action.name, action.uid, grace, std::move(done));
    });
    if (gone.ok() && IsEnding(*gone)) {
      cache_.Put(resource, *gone);
    } else if (gone.ok() || absl::IsNotFound(gone.status())) {
      cache_.Remove(resource, job_.meta.ns, action.name);
    }
    const bool is_done = gone.ok() || absl::IsNotFound(gone.status()) || absl::IsAborted(gone.status());
    co_return is_done ? absl::OkStatus() : gone.status();
  }

  // Deletes one of TrainJobPlan::objects. OK if the cluster does not know its kind, or the job does not own it.
  asio::awaitable<Status> DeleteObject(const Action& action) {
    auto resource = ResourceOf(action.object());
    if (!resource.ok()) co_return resource.status();
    const auto found = co_await Get(*resource, action.name);
    if (absl::IsNotFound(found.status())) co_return absl::OkStatus();
    if (!found.ok()) co_return found.status();
    const auto meta = ReadMeta(*found);
    if (!meta.ok()) co_return meta.status();
    if (meta->deleted || !meta->IsControlledBy(job_.meta)) co_return absl::OkStatus();
    Action deletion = action;
    deletion.uid = meta->uid;
    co_return co_await Delete(*resource, deletion);
  }

 private:
  // The object that `make` makes exists only until it is written as text.
  asio::awaitable<StatusOr<Json>> Post(const Resource& resource, const std::function<Json()>& make) {
    return Answer([this, &resource, &make](ApiClient::Done done) {
      return client_.Create(resource, job_.meta.ns, make(), std::move(done));
    });
  }

  asio::awaitable<StatusOr<Json>> Get(const Resource& resource, const std::string& name) {
    return Answer([this, &resource, &name](ApiClient::Done done) {
      return client_.Get(resource, job_.meta.ns, name, std::move(done));
    });
  }

  // Reads an object that the job owns. Errors as for CarryOut, if it belongs to another owner.
  asio::awaitable<StatusOr<Json>> GetOwn(const Resource& resource, const std::string& name) {
    auto found = co_await Get(resource, name);
    if (absl::IsNotFound(found.status())) co_return absl::AbortedError(fmt::format("{} has just gone", name));
    if (!found.ok()) co_return found;
    const Status own = CheckOwner(resource, *found);
    if (!own.ok()) co_return own;
    co_return found;
  }

  asio::awaitable<StatusOr<Json>> Merge(const Resource& resource, const std::string& name, const Json& patch) {
    return Answer([this, &resource, &name, &patch](ApiClient::Done done) {
      return client_.Merge(resource, job_.meta.ns, name, "", patch, std::move(done));
    });
  }

  Status CheckOwner(const Resource& resource, const Json& object) const {
    auto meta = ReadMeta(object);
    if (!meta.ok()) return meta.status();
    const OwnerReference* owner = meta->Controller();
    const bool of_that_name = owner != nullptr && owner->kind == job_.kind && owner->name == job_.meta.name;
    if (meta->deleted || (of_that_name && owner->uid != job_.meta.uid)) {
      return absl::AbortedError(
          fmt::format("{} {} of an earlier job of that name is being deleted", resource.plural, meta->name));
    }
    if (meta->IsControlledBy(job_.meta)) return absl::OkStatus();
    return absl::FailedPreconditionError(fmt::format(
        "{} {}/{} is needed, and belongs to {}; delete it, or give the {} another name", resource.plural, job_.meta.ns,
        meta->name, owner == nullptr ? std::string("nobody") : fmt::format("{} {}", owner->kind, owner->name),
        job_.kind));
  }

  ApiClient& client_;
  MasterKey& master_key_;
  ObjectCache& cache_;
  const ActionOwner& job_;
};

}  // namespace

asio::awaitable<Status> CarryOut(ApiClient& client, MasterKey& master_key, ObjectCache& cache, const ActionOwner& job,
                                 const Action& action) {
  using Kind = Action::Kind;
  Executor executor(client, master_key, cache, job);
  switch (action.kind) {
    case Kind::kCreateService:
      co_return co_await executor.Create(kServices, action);
    case Kind::kCreateObject:
      co_return co_await executor.CreateObject(action);
    case Kind::kCreateJob:
      co_return co_await executor.Create(kJobs, action);
    case Kind::kCreatePod:
      co_return co_await executor.CreatePod(action);
    case Kind::kCreatePodOfJob:
      co_return co_await executor.CreatePodOfJob(action);
    case Kind::kAdoptPod:
      co_return co_await executor.AdoptPod(action);
    case Kind::kScaleJob:
    case Kind::kSuspendJob:
      co_return co_await executor.Change(kJobs, action);
    case Kind::kAnnotatePod:
    case Kind::kEndPod:
      co_return co_await executor.Change(kPods, action);
    case Kind::kSuspendJobSet:
    case Kind::kResumeJobSet:
      co_return co_await executor.Change(kJobSets, action);
    case Kind::kDeleteJobSet:
      co_return co_await executor.Delete(kJobSets, action);
    case Kind::kDeleteJob:
      co_return co_await executor.Delete(kJobs, action);
    case Kind::kDeletePod:
      co_return co_await executor.Delete(kPods, action);
    case Kind::kDropPod:
      co_return co_await executor.Delete(kPods, action, ApiClient::Grace::kNone);
    case Kind::kDeleteService:
      co_return co_await executor.Delete(kServices, action);
    case Kind::kDeleteObject:
      co_return co_await executor.DeleteObject(action);
    case Kind::kDeleteOwner:
      co_return co_await executor.Delete(job.resource, action);
  }
  co_return absl::InternalError("an action of no kind");
}

}  // namespace muster::controller
