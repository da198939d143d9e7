// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/webhook/webhooks.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <type_traits>

#include "base/text.h"
#include "controller/admission/meaning.h"
#include "controller/admission/mutate.h"
#include "controller/admission/validate_pytorch_job.h"
#include "controller/admission/validate_runtime.h"
#include "controller/admission/validate_train_job.h"
#include "controller/api/fields.h"
#include "controller/api/lenient.h"
#include "controller/kube/client/answer.h"
#include "controller/kube/client/token_bucket.h"
#include "controller/kube/jobs/children.h"
#include "controller/kube/webhook/large_reviews.h"
#include "controller/plan/native_gang.h"
#include "http/conversation.h"
#include "http/percent.h"

namespace muster::controller {

namespace asio = boost::asio;

namespace {

// A review contains two objects, which etcd limits to 1.5 MiB each, as JSON.
constexpr size_t kLongestReview = size_t{6} << 20;
// An API server handles at most 200 writes at the same time, by its default.
constexpr size_t kConnections = 512;
constexpr size_t kMemory = size_t{64} << 20;  // bytes of all reviews together
constexpr int kPage = 100;                    // TrainJobs
// Limits for clients that may be anybody: look-ups a second, and at the same time; lists of TrainJobs a second.
constexpr double kLookUps = 50, kLists = 1;
constexpr int kLookUpBurst = 100, kListBurst = 5, kLookUpsAtOnce = 16;

}  // namespace

class Webhooks::Reviews {
 public:
  using Judged = asio::awaitable<StatusOr<Verdict>>;
  using Judge = Judged (Reviews::*)(AdmissionRequest, bool large);

  Reviews(Context context, PyTorchOptions options)
      : context_(context), options_(std::move(options)), under_way_(context.loop) {}

  http::Server::Routes Routes() {
    http::Server::Routes routes;
    const auto add = [&](const char* path, const char* resource, Judge judge) {
      routes[path] = {
          [this, judge, resource](const http::Server::Request& request, const http::Server::Answer& answer) {
            Review(request, resource, judge, answer);
          },
          true, kLongestReview};
    };
    add("/mutate-trainer-kubeflow-org-v1alpha1-trainjob", "trainjobs", &Reviews::Mutate);
    add("/validate-trainer-kubeflow-org-v1alpha1-trainjob", "trainjobs", &Reviews::Validate);
    add("/validate-trainer-kubeflow-org-v1alpha1-trainingruntime", "trainingruntimes", &Reviews::ValidateTheRuntime);
    add("/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime", "clustertrainingruntimes",
        &Reviews::ValidateTheRuntime);
    add("/validate-kubeflow-org-v1-pytorchjob", "pytorchjobs", &Reviews::ValidateThePyTorchJob);
    return routes;
  }

 private:
  void Review(const http::Server::Request& asked, const char* resource, Judge judge,
              const http::Server::Answer& answer) {
    if (asked.body.size() <= LargeReviews::kLarge) {
      return under_way_.Begin(Answered(asked.body, resource, judge, answer, [] {}));
    }
    const ReviewHead head = HeadOfReview(asked.body);
    const auto begin = [this, resource, judge, answer](std::string body) {
      under_way_.Begin(Answered(std::move(body), resource, judge, answer, [this] {
        judging_large_ = false;
        JudgeNextLarge();
      }));
    };
    if (large_.Push(head.ns, {.body = asked.body, .judge = begin, .since = MonotonicClock::now()})) {
      return JudgeNextLarge();
    }
    Verdict verdict;
    verdict.Refuse(kUnavailable, "muster-controller has too many large objects to review at the moment; try again");
    answer({.content_type = "application/json", .body = WriteReview(head.uid, verdict)});
  }

  void JudgeNextLarge() {
    if (judging_large_) return;
    auto next = large_.Pop(MonotonicClock::now());
    if (!next.judge) return;
    judging_large_ = true;
    next.judge(std::move(next.body));
  }

  // Answers the review, then calls `done`.
  asio::awaitable<void> Answered(std::string body, const char* resource, Judge judge, http::Server::Answer answer,
                                 std::function<void()> done) {
    const bool large = body.size() > LargeReviews::kLarge;
    auto request = co_await Computed(large, [&body] { return ReadReview(body); });
    Status wrong = request.status();
    // The user who wrote an object that is too deep, or has too many values, hears why from the verdict alone.
    if (const ReviewHead head = wrong.ok() ? ReviewHead() : HeadOfReview(body); !head.uid.empty()) {
      Verdict verdict;
      verdict.Refuse(kInvalid,
                     fmt::format("the review of the object {}; give large data as a file or a volume", Message(wrong)));
      answer({.content_type = "application/json", .body = WriteReview(head.uid, verdict)});
      co_return done();
    }
    if (request.ok() && request->resource != resource) {
      wrong = absl::InvalidArgumentError(fmt::format(
          "request.resource: this path reviews {}, and {} came; correct the rules of the webhook's configuration",
          resource, request->resource));
    }
    if (!wrong.ok()) {
      answer({.status = 400, .body = fmt::format("{}\n", Message(wrong))});
      co_return done();
    }
    const std::string uid = request->uid, ns = request->ns;
    auto verdict = co_await (this->*judge)(*std::move(request), large);
    if (verdict.ok() && verdict->refusals.empty() && !verdict->asks.is_null()) {
      verdict = co_await AskedCluster(ns, *std::move(verdict));
    }
    if (!verdict.ok()) {
      const std::string why(Message(verdict.status()));
      verdict.emplace();
      verdict->Refuse(
          kUnavailable,
          fmt::format("muster-controller could not read an object that the review needs: {}; try again", why));
    }
    std::string text = co_await Computed(large, [&] { return WriteReview(uid, *verdict); });
    answer({.content_type = "application/json", .body = std::move(text)});
    done();
  }

  // The result of `work`, which uses only what this coroutine owns and what never changes. Work on a large review takes
  // up to some 300 ms, and is done on the other thread, so that the loop serves everything else meanwhile.
  template <class Work>
  asio::awaitable<std::invoke_result_t<Work>> Computed(bool large, Work work) {
    if (!large) co_return work();
    struct Shared {
      std::optional<std::invoke_result_t<Work>> result;
      asio::steady_timer over;  // never fires; cancelling it resumes the coroutine
    };
    auto shared = std::make_shared<Shared>(std::nullopt, asio::steady_timer(context_.loop, TimePoint::max()));
    asio::post(thread_, [shared, &work, &loop = context_.loop]() mutable {
      shared->result.emplace(work());
      asio::post(loop, [shared = std::move(shared)] { shared->over.cancel(); });
    });
    co_await shared->over.async_wait(asio::as_tuple(asio::use_awaitable));
    http::ThrowIfCancelled(co_await asio::this_coro::cancellation_state);
    co_return *std::move(shared->result);
  }

  // Reads an object from the API server. JSON null: it does not exist.
  asio::awaitable<StatusOr<Json>> Look(const Resource& resource, std::string ns, std::string name) {
    if (IsTooMuch()) co_return Json();
    ++looking_;
    auto found =
        co_await Answer([&](ApiClient::Done done) { return context_.client.Get(resource, ns, name, std::move(done)); });
    --looking_;
    if (absl::IsNotFound(found.status())) co_return Json();
    co_return found;
  }

  // True: this look-up is one more than a client that may be anybody gets at the moment.
  bool IsTooMuch() { return by_anybody() && (looking_ >= kLookUpsAtOnce || !look_ups_.TryTake(MonotonicClock::now())); }

  // `verdict`, with a refusal if the API server would not store the Workload that it asks for.
  Judged AskedCluster(std::string ns, Verdict verdict) {
    if (IsTooMuch()) co_return verdict;
    ++looking_;
    const auto answer = co_await Answer(
        [&](ApiClient::Done done) { return context_.client.TryCreate(kWorkloads, ns, verdict.asks, std::move(done)); });
    --looking_;
    const Status accepted = CheckGangAnswer(verdict.asks, answer);
    if (accepted.ok() || absl::IsAlreadyExists(accepted)) co_return verdict;
    if (absl::IsUnavailable(accepted)) co_return accepted;
    // Such a refusal may come from a quota of the namespace.
    if (by_anybody() && absl::IsPermissionDenied(accepted)) co_return verdict;
    verdict.Refuse(kForbidden, std::string(Message(accepted)));
    co_return verdict;
  }

  bool by_anybody() const { return context_.clients == Context::Clients::kAnybody; }

  // Whether the client may learn of the object that `request` changes: it names its uid.
  asio::awaitable<StatusOr<bool>> MayKnow(const Resource& resource, const AdmissionRequest& request) {
    if (!by_anybody()) co_return true;
    const std::string uid = TextField(PartOf(request.old_object, "metadata"), "uid");
    if (uid.empty()) co_return false;
    const std::string ns = resource.namespaced ? request.ns : "";
    const auto found = co_await Look(resource, ns, request.name);
    if (!found.ok()) co_return found.status();
    co_return TextField(PartOf(*found, "metadata"), "uid") == uid;
  }

  asio::awaitable<StatusOr<bool>> MayKnowRuntime(const AdmissionRequest& request) {
    if (RuntimeResource(RuntimeRefOf(request.object)) == &kClusterTrainingRuntimes) co_return true;
    co_return co_await MayKnow(kTrainJobs, request);
  }

  asio::awaitable<StatusOr<Json>> LookAtRuntime(const AdmissionRequest& request) {
    const RuntimeRef ref = RuntimeRefOf(request.object);
    const Resource* resource = RuntimeResource(ref);
    if (resource == nullptr || !IsDnsName(ref.name)) co_return Json();
    // GCC 12 destroys a temporary of "?:" in a co_await twice.
    const std::string ns = resource->namespaced ? request.ns : "";
    co_return co_await Look(*resource, ns, ref.name);
  }

  std::optional<Json> KnownRuntime(const AdmissionRequest& request) const {
    return context_.runtimes.Find(RuntimeRefOf(request.object), request.ns);
  }

  // Whether `job`, the object of a request for /scale, exists and the client may learn of it.
  bool IsTold(const Json& job, const AdmissionRequest& request) const {
    if (job.is_null() || !by_anybody()) return !job.is_null();
    const std::string uid = TextField(PartOf(job, "metadata"), "uid");
    return !uid.empty() && uid == TextField(PartOf(request.old_object, "metadata"), "uid");
  }

  Judged Mutate(AdmissionRequest request, bool large) {
    std::optional<Json> runtime;
    if (MutationNeedsRuntime(request)) {
      const auto may_know = co_await MayKnowRuntime(request);
      if (!may_know.ok()) co_return may_know.status();
      if (*may_know) runtime = KnownRuntime(request);
      if (*may_know && !runtime) {
        auto found = co_await LookAtRuntime(request);
        if (!found.ok()) co_return found.status();
        if (!found->is_null()) runtime = *std::move(found);
      }
    }
    co_return co_await Computed(large,
                                [&] { return MutateTrainJob(request, runtime ? &*runtime : nullptr, WallNow()); });
  }

  Judged Validate(AdmissionRequest request, bool large) {
    if (request.subresource == "scale") {
      const auto job = co_await Look(kTrainJobs, request.ns, request.name);
      if (!job.ok()) co_return job.status();
      if (!IsTold(*job, request)) co_return Verdict();  // the API server refuses it itself
      request = UpdateByScale(request, *job);
    }
    TrainJobFacts facts;
    const auto judge = [&] { return ValidateTrainJob(request, facts, options_.agent); };
    if (!ValidationNeedsFacts(request)) co_return co_await Computed(large, judge);
    const bool create = request.operation == "CREATE";
    // GCC 12 destroys a temporary of "?:" in a co_await twice.
    StatusOr<bool> may_know = false;
    if (create) may_know = co_await MayKnowRuntime(request);
    if (!create) may_know = co_await MayKnow(kTrainJobs, request);
    if (!may_know.ok()) co_return may_know.status();
    facts.known = *may_know;
    if (!facts.known) co_return co_await Computed(large, judge);
    StatusOr<Json> snapshot = Json();
    if (!create) {
      TrainJob named;
      named.meta.name = request.name;
      const std::string name = SnapshotName(named);
      snapshot = co_await Look(kConfigMaps, request.ns, name);
      if (!snapshot.ok()) co_return snapshot.status();
      if (!snapshot->is_null()) facts.snapshot = &*snapshot;
    }
    const std::optional<Json> known = KnownRuntime(request);
    facts.runtime = known ? &*known : nullptr;
    if (facts.runtime != nullptr || facts.snapshot != nullptr) {
      Verdict verdict = co_await Computed(large, judge);
      if (verdict.refusals.empty() || facts.snapshot != nullptr) co_return verdict;
    }
    const auto runtime = co_await LookAtRuntime(request);
    if (!runtime.ok()) co_return runtime.status();
    facts.runtime = runtime->is_null() ? nullptr : &*runtime;
    co_return co_await Computed(large, judge);
  }

  Judged ValidateThePyTorchJob(AdmissionRequest request, bool large) {
    if (request.subresource == "scale") {
      const auto job = co_await Look(kPyTorchJobs, request.ns, request.name);
      if (!job.ok()) co_return job.status();
      if (!IsTold(*job, request)) co_return Verdict();  // the API server refuses it itself
      request = PyTorchUpdateByScale(request, *job);
    }
    co_return co_await Computed(large, [&] { return ValidatePyTorchJob(request, options_); });
  }

  Judged ValidateTheRuntime(AdmissionRequest request, bool large) {
    if (!IsProtected(request)) {
      co_return co_await Computed(large, [&] { return ValidateRuntime(request, options_.agent); });
    }
    const bool of_cluster = request.resource == kClusterTrainingRuntimes.plural;
    const auto may_know = co_await MayKnow(of_cluster ? kClusterTrainingRuntimes : kTrainingRuntimes, request);
    if (!may_know.ok()) co_return may_know.status();
    if (!*may_know) co_return Verdict();
    if (by_anybody() && !lists_.TryTake(MonotonicClock::now())) {
      co_return absl::UnavailableError("whether a TrainJob uses the runtime was asked too often");
    }
    for (std::string next;;) {
      const std::string query =
          fmt::format("limit={}{}", kPage, next.empty() ? "" : fmt::format("&continue={}", http::PercentEncode(next)));
      const auto page = co_await Answer(
          [&](ApiClient::Done done) { return context_.client.List(kTrainJobs, request.ns, query, std::move(done)); });
      if (!page.ok()) co_return page.status();
      for (const Json& job : page->value("items", Json::array())) {
        if (!UsesRuntime(job, request)) continue;
        const auto meta = ReadMeta(job);
        const bool tells = meta.ok() && !(by_anybody() && of_cluster);
        co_return RefuseDelete(request, tells ? KeyOf(meta->ns, meta->name) : "");
      }
      const Json* metadata = FindField(*page, "metadata");
      next = metadata == nullptr ? "" : TextField(*metadata, "continue");
      if (next.empty()) co_return Verdict();
    }
  }

  const Context context_;
  const PyTorchOptions options_;                                              // include those for TrainJobs
  TokenBucket look_ups_{kLookUps, kLookUpBurst}, lists_{kLists, kListBurst};  // by_anybody()
  int looking_ = 0;
  LargeReviews large_;
  bool judging_large_ = false;
  // Judges large reviews. Its destructor waits for the one under way, whose coroutine the loop destroys later.
  asio::thread_pool thread_{1};
  http::Conversations under_way_;
};

StatusOr<std::unique_ptr<Webhooks>> Webhooks::Listen(Context context, PyTorchOptions options, const std::string& host,
                                                     uint16_t port, std::shared_ptr<http::ServerStreams> tls) {
  std::unique_ptr<Webhooks> webhooks(new Webhooks());
  webhooks->reviews_ = std::make_unique<Reviews>(context, std::move(options));
  MUSTER_ASSIGN_OR_RETURN(
      webhooks->server_, http::Server::Listen(context.loop, host, port, webhooks->reviews_->Routes(),
                                              {.connections = kConnections, .memory = kMemory, .tls = std::move(tls)}));
  return webhooks;
}

Webhooks::~Webhooks() = default;

}  // namespace muster::controller
