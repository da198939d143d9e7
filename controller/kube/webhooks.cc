#include "controller/kube/webhooks.h"

#include <boost/asio/post.hpp>
#include <map>

#include "base/text.h"
#include "controller/admission/meaning.h"
#include "controller/admission/mutate.h"
#include "controller/admission/validate_pytorch_job.h"
#include "controller/admission/validate_runtime.h"
#include "controller/admission/validate_train_job.h"
#include "controller/api/fields.h"
#include "controller/api/lenient.h"
#include "controller/kube/answer.h"
#include "controller/kube/children.h"
#include "controller/kube/large_reviews.h"
#include "controller/kube/token_bucket.h"
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
constexpr int kPage = 500;                    // TrainJobs
// Limits for clients that may be anybody: look-ups a second, and at the same time; lists of TrainJobs a second.
constexpr double kLookUps = 50, kLists = 1;
constexpr int kLookUpBurst = 100, kListBurst = 5, kLookUpsAtOnce = 16;

}  // namespace

class Webhooks::Reviews {
 public:
  using Judged = asio::awaitable<StatusOr<Verdict>>;
  using Judge = Judged (Reviews::*)(AdmissionRequest);

  Reviews(Means means, PyTorchOptions options) : means_(means), options_(std::move(options)), under_way_(means.loop) {}

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
    if (asked.body.size() <= LargeReviews::kLarge) return Begin(asked.body, resource, judge, answer, [] {});
    const ReviewHead head = HeadOfReview(asked.body);
    const auto begin = [this, resource, judge, answer](const std::string& body) {
      Begin(body, resource, judge, answer, [this] {
        judging_large_ = false;
        JudgeNextLarge();
      });
    };
    if (large_.Push(head.ns, {.body = asked.body, .judge = begin, .since = MonotonicClock::now()})) {
      return JudgeNextLarge();
    }
    Verdict verdict;
    verdict.Refuse(kUnavailable, "muster-controller has too many large objects to review at the moment; try again");
    answer({.content_type = "application/json", .body = WriteReview(head.uid, verdict)});
  }

  // In a later turn of the loop, so that short reviews and everything else go on between two large ones.
  void JudgeNextLarge() {
    if (judging_large_) return;
    auto next = large_.Pop(MonotonicClock::now());
    if (!next.judge) return;
    judging_large_ = true;
    asio::post(means_.loop, [next = std::move(next), alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) next.judge(next.body);
    });
  }

  // Calls `done` when the review is answered.
  void Begin(const std::string& body, const char* resource, Judge judge, const http::Server::Answer& answer,
             std::function<void()> done) {
    auto request = ReadReview(body);
    Status wrong = request.status();
    // The user who wrote an object that is too deep, or has too many values, hears why from the verdict alone.
    if (const ReviewHead head = wrong.ok() ? ReviewHead() : HeadOfReview(body); !head.uid.empty()) {
      Verdict verdict;
      verdict.Refuse(kInvalid,
                     fmt::format("the review of the object {}; give large data as a file or a volume", Message(wrong)));
      answer({.content_type = "application/json", .body = WriteReview(head.uid, verdict)});
      return done();
    }
    if (request.ok() && request->resource != resource) {
      wrong = absl::InvalidArgumentError(fmt::format(
          "request.resource: this path reviews {}, and {} came; correct the rules of the webhook's configuration",
          resource, request->resource));
    }
    if (wrong.ok()) return under_way_.Begin(Answered(*std::move(request), judge, answer, std::move(done)));
    answer({.status = 400, .body = fmt::format("{}\n", Message(wrong))});
    done();
  }

  asio::awaitable<void> Answered(AdmissionRequest request, Judge judge, http::Server::Answer answer,
                                 std::function<void()> done) {
    const std::string uid = request.uid;
    auto verdict = co_await (this->*judge)(std::move(request));
    if (!verdict.ok()) {
      const std::string why(Message(verdict.status()));
      verdict.emplace();
      verdict->Refuse(
          kUnavailable,
          fmt::format("muster-controller could not read an object that the review needs: {}; try again", why));
    }
    answer({.content_type = "application/json", .body = WriteReview(uid, *verdict)});
    done();
  }

  // Reads an object from the API server. JSON null: it does not exist.
  asio::awaitable<StatusOr<Json>> Look(const Resource& resource, std::string ns, std::string name) {
    const bool limited = by_anybody();
    if (limited && (looking_ >= kLookUpsAtOnce || !look_ups_.TryTake(MonotonicClock::now()))) co_return Json();
    ++looking_;
    auto found =
        co_await Answer([&](ApiClient::Done done) { return means_.client.Get(resource, ns, name, std::move(done)); });
    --looking_;
    if (absl::IsNotFound(found.status())) co_return Json();
    co_return found;
  }

  bool by_anybody() const { return means_.clients == Means::Clients::kAnybody; }

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
    return means_.runtimes.Find(RuntimeRefOf(request.object), request.ns);
  }

  // Whether `job`, the object of a request for /scale, exists and the client may learn of it.
  bool IsTold(const Json& job, const AdmissionRequest& request) const {
    if (job.is_null() || !by_anybody()) return !job.is_null();
    const std::string uid = TextField(PartOf(job, "metadata"), "uid");
    return !uid.empty() && uid == TextField(PartOf(request.old_object, "metadata"), "uid");
  }

  Judged Mutate(AdmissionRequest request) {
    if (!MutationNeedsRuntime(request)) co_return MutateTrainJob(request, nullptr, WallNow());
    const auto may_know = co_await MayKnowRuntime(request);
    if (!may_know.ok()) co_return may_know.status();
    if (!*may_know) co_return MutateTrainJob(request, nullptr, WallNow());
    const std::optional<Json> known = KnownRuntime(request);
    if (known) co_return MutateTrainJob(request, &*known, WallNow());
    const auto runtime = co_await LookAtRuntime(request);
    if (!runtime.ok()) co_return runtime.status();
    co_return MutateTrainJob(request, runtime->is_null() ? nullptr : &*runtime, WallNow());
  }

  Judged Validate(AdmissionRequest request) {
    if (request.subresource == "scale") {
      const auto job = co_await Look(kTrainJobs, request.ns, request.name);
      if (!job.ok()) co_return job.status();
      if (!IsTold(*job, request)) co_return Verdict();  // the API server refuses it itself
      request = UpdateByScale(request, *job);
    }
    TrainJobFacts facts;
    if (!ValidationNeedsFacts(request)) co_return ValidateTrainJob(request, facts, options_.agent);
    const bool create = request.operation == "CREATE";
    // GCC 12 destroys a temporary of "?:" in a co_await twice.
    StatusOr<bool> may_know = false;
    if (create) may_know = co_await MayKnowRuntime(request);
    if (!create) may_know = co_await MayKnow(kTrainJobs, request);
    if (!may_know.ok()) co_return may_know.status();
    facts.known = *may_know;
    if (!facts.known) co_return ValidateTrainJob(request, facts, options_.agent);
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
      Verdict verdict = ValidateTrainJob(request, facts, options_.agent);
      if (verdict.refusals.empty() || facts.snapshot != nullptr) co_return verdict;
    }
    const auto runtime = co_await LookAtRuntime(request);
    if (!runtime.ok()) co_return runtime.status();
    facts.runtime = runtime->is_null() ? nullptr : &*runtime;
    co_return ValidateTrainJob(request, facts, options_.agent);
  }

  Judged ValidateThePyTorchJob(AdmissionRequest request) {
    if (request.subresource == "scale") {
      const auto job = co_await Look(kPyTorchJobs, request.ns, request.name);
      if (!job.ok()) co_return job.status();
      if (!IsTold(*job, request)) co_return Verdict();  // the API server refuses it itself
      request = PyTorchUpdateByScale(request, *job);
    }
    co_return ValidatePyTorchJob(request, options_);
  }

  Judged ValidateTheRuntime(AdmissionRequest request) {
    if (!IsProtected(request)) co_return ValidateRuntime(request, options_.agent);
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
          [&](ApiClient::Done done) { return means_.client.List(kTrainJobs, request.ns, query, std::move(done)); });
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

  const Means means_;
  const PyTorchOptions options_;                                              // include those for TrainJobs
  TokenBucket look_ups_{kLookUps, kLookUpBurst}, lists_{kLists, kListBurst};  // by_anybody()
  int looking_ = 0;
  LargeReviews large_;
  bool judging_large_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  http::Conversations under_way_;
};

StatusOr<std::unique_ptr<Webhooks>> Webhooks::Listen(Means means, PyTorchOptions options, const std::string& host,
                                                     uint16_t port, std::shared_ptr<http::ServerStreams> tls) {
  std::unique_ptr<Webhooks> webhooks(new Webhooks());
  webhooks->reviews_ = std::make_unique<Reviews>(means, std::move(options));
  MUSTER_ASSIGN_OR_RETURN(
      webhooks->server_, http::Server::Listen(means.loop, host, port, webhooks->reviews_->Routes(),
                                              {.connections = kConnections, .memory = kMemory, .tls = std::move(tls)}));
  return webhooks;
}

Webhooks::~Webhooks() = default;

}  // namespace muster::controller
