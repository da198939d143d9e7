// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/webhook/metrics_server.h"

#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <vector>

#include "http/ask.h"
#include "tests/controller/kube/script_server.h"

namespace muster::controller {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

constexpr char kTokenReview[] = "POST /apis/authentication.k8s.io/v1/tokenreviews?fieldManager=muster";
constexpr char kAccessReview[] = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews?fieldManager=muster";

// An API server that knows the tokens "reader" and "other" of users with these names; the first one may read.
class MetricsServerTest : public testing::Test {
 protected:
  MetricsServerTest() {
    auto metrics = MetricsServer::Listen(loop_, server_.access(), "127.0.0.1", 0, nullptr, [this] {
      ++pages_;
      return http::Server::Response{.body = "muster_controller_leads 1\n"};
    });
    EXPECT_TRUE(metrics.ok()) << metrics.status();
    metrics_ = *std::move(metrics);
  }

  ScriptServer::Reply Reply(const ScriptServer::Asked& asked) {
    if (refusal_) return *refusal_;
    if (silent_) return {.then = ScriptServer::Reply::Then::kStay};
    Json review = asked.json();
    if (review["kind"] == "TokenReview") {
      const std::string token = review["spec"]["token"];
      review["status"] = {{"authenticated", token == "reader" || token == "other"}, {"user", {{"username", token}}}};
      review["status"]["user"]["groups"] = Json::array({"system:authenticated"});
    } else {
      review["status"] = {{"allowed", review["spec"]["user"] == "reader"}};
    }
    return ScriptServer::Of(201, review);
  }

  // Sends a request, whose answer comes into `answers_`.
  void Send(const std::string& authorization, const std::string& method = "GET", const std::string& path = "/metrics") {
    http::Request request{
        .method = method, .url = fmt::format("http://127.0.0.1:{}{}", metrics_->port(), path), .headers = {}};
    if (!authorization.empty()) request.headers.emplace_back("Authorization", authorization);
    asking_.push_back(
        http::Ask(http_, request, {}, 4 << 20, [this](http::Answer its) { answers_.push_back(std::move(its)); }));
  }
  http::Answer Asked(const std::string& authorization, const std::string& method = "GET",
                     const std::string& path = "/metrics") {
    answers_.clear();
    Send(authorization, method, path);
    EXPECT_TRUE(RunUntil(loop_, [&] { return !answers_.empty(); }));
    return answers_.empty() ? http::Answer() : answers_.front();
  }
  std::vector<int> Codes() const {
    std::vector<int> codes;
    for (const http::Answer& answer : answers_) codes.push_back(answer.head.status);
    return codes;
  }

  boost::asio::io_context loop_;
  std::optional<ScriptServer::Reply> refusal_;
  bool silent_ = false;
  int pages_ = 0;
  ScriptServer server_{loop_, [this](const ScriptServer::Asked& asked) { return Reply(asked); }};
  http::Client http_{loop_, {}};
  std::unique_ptr<MetricsServer> metrics_;
  std::vector<std::shared_ptr<void>> asking_;
  std::vector<http::Answer> answers_;
};

TEST_F(MetricsServerTest, AReaderGetsTheMetricsAndIsAskedForOnce) {
  for (int i = 0; i < 3; ++i) {
    const http::Answer answer = Asked("Bearer reader");
    EXPECT_EQ(answer.head.status, 200);
    EXPECT_EQ(answer.body, "muster_controller_leads 1\n");
  }
  EXPECT_EQ(pages_, 3);
  ASSERT_THAT(server_.lines(), ElementsAre(kTokenReview, kAccessReview));
  EXPECT_EQ(server_.asked()[0].json()["spec"], (Json{{"token", "reader"}}));
  EXPECT_EQ(server_.asked()[1].json()["spec"],
            (Json{{"user", "reader"},
                  {"groups", {"system:authenticated"}},
                  {"nonResourceAttributes", {{"path", "/metrics"}, {"verb", "get"}}}}));
}

TEST_F(MetricsServerTest, HeadNeedsTheSameRight) {
  EXPECT_EQ(Asked("Bearer reader", "HEAD").head.status, 200);
  EXPECT_EQ(Asked("Bearer other", "HEAD").head.status, 403);
}

TEST_F(MetricsServerTest, AUserWithoutTheRightIsRefused) {
  for (int i = 0; i < 2; ++i) {
    const http::Answer answer = Asked("Bearer other");
    EXPECT_EQ(answer.head.status, 403);
    EXPECT_EQ(answer.body, "Authorization denied for user other\n");
  }
  EXPECT_EQ(pages_, 0);
  EXPECT_THAT(server_.lines(), ElementsAre(kTokenReview, kAccessReview));
}

TEST_F(MetricsServerTest, AWrongTokenIsRefused) {
  for (int i = 0; i < 2; ++i) {
    const http::Answer answer = Asked("Bearer stranger");
    EXPECT_EQ(answer.head.status, 401);
    EXPECT_EQ(answer.body, "Unauthorized\n");
    EXPECT_THAT(answer.head.headers, Contains(Pair("www-authenticate", "Bearer")));
  }
  EXPECT_THAT(server_.lines(), ElementsAre(kTokenReview));
}

TEST_F(MetricsServerTest, WithoutATokenNobodyIsAsked) {
  for (const char* header : {"", "Bearer", "Bearer ", "Bearer a b", "Basic cmVhZGVy", "reader"}) {
    EXPECT_EQ(Asked(header).head.status, 401) << header;
  }
  EXPECT_EQ(Asked("Bearer reader", "GET", "/").head.status, 404);
  EXPECT_EQ(Asked("Bearer reader", "GET", "/healthz").head.status, 404);
  EXPECT_EQ(Asked("Bearer reader", "POST").head.status, 405);
  EXPECT_THAT(server_.lines(), IsEmpty());
}

TEST_F(MetricsServerTest, AnApiServerThatRefusesIsAskedAgain) {
  refusal_ = ScriptServer::Refusal(403, "Forbidden");
  const http::Answer answer = Asked("Bearer reader");
  EXPECT_EQ(answer.head.status, 500);
  EXPECT_THAT(answer.body, HasSubstr("log says why"));
  EXPECT_THAT(answer.body, Not(HasSubstr("reader")));
  refusal_.reset();
  EXPECT_EQ(Asked("Bearer reader").head.status, 200);
}

TEST_F(MetricsServerTest, RequestsWithOneTokenWaitForOneQuestion) {
  for (int i = 0; i < 5; ++i) Send("Bearer reader");
  EXPECT_TRUE(RunUntil(loop_, [&] { return answers_.size() == 5; }));
  EXPECT_THAT(Codes(), Each(200));
  EXPECT_THAT(server_.lines(), ElementsAre(kTokenReview, kAccessReview));
}

TEST_F(MetricsServerTest, StrangersAreBoundedAndAReaderIsStillAnswered) {
  EXPECT_EQ(Asked("Bearer reader").head.status, 200);
  answers_.clear();
  silent_ = true;
  for (int i = 0; i < 20; ++i) Send(fmt::format("Bearer stranger-{}", i));
  EXPECT_TRUE(RunUntil(loop_, [&] { return answers_.size() == 4; }));
  EXPECT_THAT(Codes(), ElementsAre(503, 503, 503, 503));
  for (const http::Answer& answer : answers_) EXPECT_THAT(answer.head.headers, Contains(Pair("retry-after", "1")));
  EXPECT_TRUE(RunUntil(loop_, [&] { return server_.lines().size() == 18; }));  // the reader's two, and 16
  EXPECT_EQ(Asked("Bearer reader").head.status, 200);
}

TEST_F(MetricsServerTest, ItMayEndWhileItAsks) {
  silent_ = true;
  Send("Bearer reader");
  EXPECT_TRUE(RunUntil(loop_, [&] { return server_.asked().size() == 1; }));
  metrics_.reset();
  EXPECT_TRUE(RunUntil(loop_, [&] { return answers_.size() == 1; }));
  EXPECT_EQ(pages_, 0);
}

}  // namespace
}  // namespace muster::controller
