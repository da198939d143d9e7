// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/webhook/metrics_server.h"

#include <openssl/sha.h>

#include <map>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "controller/kube/client/answer.h"
#include "controller/kube/webhook/metrics_access.h"
#include "controller/kube/webhook/status_post.h"
#include "http/conversation.h"

namespace muster::controller {

namespace asio = boost::asio;

namespace {

constexpr size_t kConnections = 512;     // more than the requests of all questions that may be under way
constexpr double kWritesPerSecond = 20;  // a token needs two: the TokenReview and the SubjectAccessReview
constexpr int kBurst = 40;
constexpr Duration kPatience = std::chrono::seconds(5);  // a request has 10 s

std::string DigestOf(const std::string& token) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

}  // namespace

class MetricsServer::Guard {
 public:
  Guard(asio::io_context& loop, ClusterAccess access, Page page)
      : page_(std::move(page)),
        client_(loop, std::move(access),
                {.writes_per_second = kWritesPerSecond, .burst = kBurst, .patience = kPatience}),
        under_way_(loop) {}

  http::Server::Routes Routes() {
    return {{"/metrics", {[this](const http::Server::Request& request, http::Server::Answer answer) {
               const auto token = ReadBearerToken(request.Find("authorization").value_or(""));
               if (!token.ok()) return Tell(Unauthorized(), answer);
               const std::string digest = DigestOf(*token);
               const JudgedTokens::Next next = tokens_.Look(digest, MonotonicClock::now());
               switch (next.step) {
                 case JudgedTokens::Step::kAnswer:
                   return Tell(next.answer, answer);
                 case JudgedTokens::Step::kAsk:
                   waiting_[digest].push_back(std::move(answer));
                   return under_way_.Begin(Judged(digest, *token));
                 case JudgedTokens::Step::kWait:
                   waiting_[digest].push_back(std::move(answer));
                   return;
                 case JudgedTokens::Step::kBusy:
                   return answer({.status = 503,
                                  .body = "too many clients ask at a time; try again in a second\n",
                                  .headers = {{"Retry-After", "1"}}});
               }
             }}}};
  }

 private:
  void Tell(const MetricsAnswer& what, const http::Server::Answer& answer) const {
    if (what.code == 200) return answer(page_());
    http::Server::Response response{.status = what.code, .body = what.text + "\n"};
    if (what.code == 401) response.headers = {{"WWW-Authenticate", "Bearer"}};
    answer(std::move(response));
  }

  asio::awaitable<void> Judged(std::string digest, std::string token) {
    const auto judged = co_await Ask(token);
    if (!judged.ok()) {
      log::Warning(fmt::format("whether a client may read /metrics could not be asked: {}{}", Message(judged.status()),
                               absl::IsPermissionDenied(judged.status())
                                   ? "; the component metrics-tls has the rights that the controller needs"
                                   : ""));
    }
    const MetricsAnswer what =
        judged.ok() ? *judged : MetricsAnswer{500, "the API server could not be asked; the controller's log says why"};
    tokens_.End(digest, what, MonotonicClock::now());
    const auto told = waiting_.extract(digest);
    for (const http::Server::Answer& answer : told.mapped()) Tell(what, answer);
  }

  asio::awaitable<StatusOr<MetricsAnswer>> Ask(const std::string& token) {
    const Json whose = TokenReviewFor(token);
    const auto review = co_await Answer(
        [&](ApiClient::Done done) { return client_.Create(kTokenReviews, "", whose, std::move(done)); });
    if (!review.ok()) co_return review.status();
    const auto user = UserOf(*review);
    if (!user) co_return Unauthorized();
    const Json may = AccessReviewFor(*user);
    const auto access =
        co_await Answer([&](ApiClient::Done done) { return client_.Create(kAccessReviews, "", may, std::move(done)); });
    if (!access.ok()) co_return access.status();
    co_return JudgeAccess(*user, *access);
  }

  const Page page_;
  ApiClient client_;
  JudgedTokens tokens_{JudgedTokens::Rules{}};
  std::map<std::string, std::vector<http::Server::Answer>> waiting_;  // by the token's digest
  http::Conversations under_way_;
};

StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Listen(asio::io_context& loop, ClusterAccess access,
                                                               const std::string& host, uint16_t port,
                                                               std::shared_ptr<http::ServerStreams> tls, Page page) {
  std::unique_ptr<MetricsServer> server(new MetricsServer());
  server->guard_ = std::make_unique<Guard>(loop, std::move(access), std::move(page));
  MUSTER_ASSIGN_OR_RETURN(server->server_, http::Server::Listen(loop, host, port, server->guard_->Routes(),
                                                                {.connections = kConnections, .tls = std::move(tls)}));
  return server;
}

MetricsServer::~MetricsServer() = default;

}  // namespace muster::controller
