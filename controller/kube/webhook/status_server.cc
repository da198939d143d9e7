// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/webhook/status_server.h"

#include "base/log.h"
#include "base/text.h"
#include "controller/kube/client/answer.h"
#include "controller/kube/webhook/status_post.h"
#include "controller/plan/trainer_status.h"
#include "http/conversation.h"

namespace muster::controller {

namespace asio = boost::asio;

namespace {

constexpr size_t kLongestPost = size_t{64} << 10;  // Kubeflow Trainer's limit
constexpr size_t kConnections = 512;
constexpr double kWritesPerSecond = 50;  // a post needs two: the TokenReview and the status
constexpr int kBurst = 100;
constexpr Duration kPatience = std::chrono::seconds(5);  // a request has 10 s

}  // namespace

class StatusServer::Posts {
 public:
  Posts(asio::io_context& loop, ClusterAccess access)
      : client_(loop, std::move(access),
                {.writes_per_second = kWritesPerSecond,
                 .burst = kBurst,
                 .patience = kPatience,
                 .field_owner = kFieldOwner}),
        under_way_(loop) {}

  http::Server::Routes Routes() {
    return {{kStatusPosts,
             {[this](const http::Server::Request& request, const http::Server::Answer& answer) {
                const auto authorization = request.Find("authorization");
                auto post = ReadStatusPost(request.path, authorization.value_or(""));
                if (!post.ok()) return Refuse(post.status(), answer);
                under_way_.Begin(Answered(*std::move(post), request.body, answer));
              },
              true, kLongestPost}}};
  }

 private:
  static constexpr char kFieldOwner[] = "trainer-status";  // Kubeflow Trainer's

  static void Refuse(const Status& why, const http::Server::Answer& answer) {
    StatusAnswer refusal = AnswerOf(why);
    answer({.status = refusal.code, .content_type = "application/json", .body = std::move(refusal.body)});
  }

  asio::awaitable<void> Answered(StatusPost post, std::string body, http::Server::Answer answer) {
    const Status done = co_await Apply(post, body);
    if (done.ok()) {
      answer({.content_type = "application/json", .body = std::move(body)});
    } else {
      if (AnswerOf(done).code == 500) {
        log::Warning(
            fmt::format("TrainJob {}/{}: a posted status was not written: {}", post.ns, post.name, Message(done)));
      }
      Refuse(done, answer);
    }
  }

  asio::awaitable<Status> Apply(const StatusPost& post, const std::string& body) {
    const Json question = TokenReviewOf(post);
    const auto review = co_await Answer(
        [&](ApiClient::Done done) { return client_.Create(kTokenReviews, "", question, std::move(done)); });
    if (!review.ok()) co_return Internal(review.status());
    const auto token_pod = JudgeToken(post, *review);
    if (!token_pod.ok()) co_return token_pod.status();
    const auto pod = co_await Answer(
        [&](ApiClient::Done done) { return client_.Get(kPods, post.ns, token_pod->name, std::move(done)); });
    if (!pod.ok() && !absl::IsNotFound(pod.status())) co_return Internal(pod.status());
    const Json none;
    const Status own = CheckPod(post, *token_pod, pod.ok() ? *pod : none);
    if (!own.ok()) co_return own;
    const auto status = ReadTrainerStatus(body);
    if (!status.ok()) co_return status.status();
    if (status->is_null()) co_return absl::OkStatus();
    const Json object = StatusWith(post, *status);
    const auto applied = co_await Answer([&](ApiClient::Done done) {
      return client_.Apply(kTrainJobs, post.ns, post.name, "status", object, std::move(done));
    });
    if (absl::IsNotFound(applied.status())) co_return absl::NotFoundError("Train job not found");
    if (absl::IsInvalidArgument(applied.status()) || applied.ok()) co_return applied.status();
    co_return Internal(applied.status());
  }

  // A refusal of the controller itself is not a fault of the pod: 500, not 403.
  static Status Internal(const Status& status) { return absl::UnavailableError(fmt::format("{}", Message(status))); }

  ApiClient client_;
  http::Conversations under_way_;
};

StatusOr<std::unique_ptr<StatusServer>> StatusServer::Listen(asio::io_context& loop, ClusterAccess access,
                                                             const std::string& host, uint16_t port,
                                                             std::shared_ptr<http::ServerStreams> tls) {
  std::unique_ptr<StatusServer> server(new StatusServer());
  server->posts_ = std::make_unique<Posts>(loop, std::move(access));
  MUSTER_ASSIGN_OR_RETURN(server->server_, http::Server::Listen(loop, host, port, server->posts_->Routes(),
                                                                {.connections = kConnections, .tls = std::move(tls)}));
  return server;
}

StatusServer::~StatusServer() = default;

}  // namespace muster::controller
