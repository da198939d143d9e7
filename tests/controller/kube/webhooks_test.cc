#include "controller/kube/webhooks.h"

#include <gmock/gmock.h>

#include <optional>

#include "http/ask.h"
#include "tests/controller/kube/script_server.h"

namespace muster::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kOfPyTorchJobs[] = "/validate-kubeflow-org-v1-pytorchjob";

Json PyTorchJobOf(const Json& workers) {
  const Json pod = {{"spec", {{"containers", {{{"name", "pytorch"}, {"image", "x"}}}}}}};
  return {{"apiVersion", "kubeflow.org/v1"},
          {"kind", "PyTorchJob"},
          {"metadata", {{"name", "train"}, {"namespace", "ns"}}},
          {"spec", {{"pytorchReplicaSpecs", {{"Worker", {{"replicas", workers}, {"template", pod}}}}}}}};
}

Json ReviewOf(const std::string& operation, const std::string& resource, const Json& object) {
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"request",
           {{"uid", "uid-1"},
            {"operation", operation},
            {"resource", {{"resource", resource}}},
            {"namespace", "ns"},
            {"name", "train"},
            {"object", object}}}};
}

class WebhooksTest : public testing::Test {
 protected:
  WebhooksTest() {
    auto webhooks = Webhooks::Listen({loop_, api_, runtimes_}, {}, "127.0.0.1", 0, nullptr);
    EXPECT_TRUE(webhooks.ok()) << webhooks.status();
    webhooks_ = *std::move(webhooks);
  }

  // The HTTP status and the body of the answer to `review`.
  std::pair<int, std::string> Asked(const std::string& path, const Json& review) {
    std::optional<http::Answer> answer;
    const http::Request request{.method = "POST",
                                .url = fmt::format("http://127.0.0.1:{}{}", webhooks_->port(), path),
                                .body = WriteJson(review)};
    const auto asking = http::Ask(http_, request, {}, 1 << 20, [&](http::Answer its) { answer = std::move(its); });
    EXPECT_TRUE(RunUntil(loop_, [&] { return answer.has_value(); }));
    return answer ? std::pair(answer->head.status, answer->body) : std::pair(0, std::string());
  }
  Json Response(const std::string& path, const Json& review) {
    const auto [status, body] = Asked(path, review);
    EXPECT_EQ(status, 200) << body;
    const Json answer = Json::parse(body, nullptr, false);
    return answer.is_object() ? answer.value("response", Json::object()) : Json::object();
  }

  boost::asio::io_context loop_;
  ScriptServer server_{loop_, [this](const ScriptServer::Asked&) { return reply_; }};
  ScriptServer::Reply reply_ = ScriptServer::Refusal(404, "NotFound");
  ApiClient api_{loop_, server_.access(), {}};
  RuntimeCache runtimes_{loop_, api_, ""};
  http::Client http_{loop_, {}};
  std::unique_ptr<Webhooks> webhooks_;
};

TEST_F(WebhooksTest, JudgesPyTorchJobs) {
  EXPECT_EQ(Response(kOfPyTorchJobs, ReviewOf("CREATE", "pytorchjobs", PyTorchJobOf(2))),
            (Json{{"uid", "uid-1"}, {"allowed", true}}));
  const Json refused = Response(kOfPyTorchJobs, ReviewOf("CREATE", "pytorchjobs", PyTorchJobOf(0)));
  EXPECT_EQ(refused["allowed"], false);
  EXPECT_EQ(refused["status"]["code"], 403);
  EXPECT_THAT(refused["status"]["message"], HasSubstr("spec.pytorchReplicaSpecs[Worker].replicas: Forbidden"));
  EXPECT_THAT(server_.lines(), IsEmpty());
}

TEST_F(WebhooksTest, JudgesTheScaleOfAPyTorchJob) {
  const auto scaled = [&](int replicas) {
    Json review = ReviewOf("UPDATE", "pytorchjobs", {{"kind", "Scale"}, {"spec", {{"replicas", replicas}}}});
    review["request"]["subResource"] = "scale";
    review["request"]["oldObject"] = {{"kind", "Scale"}, {"spec", {{"replicas", 2}}}};
    return Response(kOfPyTorchJobs, review);
  };
  EXPECT_EQ(scaled(0)["allowed"], true);  // there is no such job
  reply_ = ScriptServer::Of(200, PyTorchJobOf(2));
  EXPECT_EQ(scaled(3)["allowed"], true);
  EXPECT_EQ(scaled(0)["status"]["code"], 403);
  reply_ = ScriptServer::Refusal(403, "Forbidden");
  EXPECT_EQ(scaled(3)["status"]["code"], 503);
  const std::string get = "GET /apis/kubeflow.org/v1/namespaces/ns/pytorchjobs/train";
  EXPECT_THAT(server_.lines(), ElementsAre(get, get, get, get));
}

TEST_F(WebhooksTest, EachPathHasItsResource) {
  const std::pair<std::string, std::string> paths[] = {
      {"/mutate-trainer-kubeflow-org-v1alpha1-trainjob", "trainjobs"},
      {"/validate-trainer-kubeflow-org-v1alpha1-trainjob", "trainjobs"},
      {"/validate-trainer-kubeflow-org-v1alpha1-trainingruntime", "trainingruntimes"},
      {"/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime", "clustertrainingruntimes"},
      {kOfPyTorchJobs, "pytorchjobs"},
  };
  for (const auto& [path, resource] : paths) {
    const auto [status, body] = Asked(path, ReviewOf("CREATE", "pods", Json::object()));
    EXPECT_EQ(status, 400) << path;
    EXPECT_EQ(
        body,
        fmt::format(
            "request.resource: this path reviews {}, and pods came; correct the rules of the webhook's configuration\n",
            resource));
  }
  EXPECT_EQ(Asked("/validate-kubeflow-org-v1-tfjob", ReviewOf("CREATE", "tfjobs", Json::object())).first, 404);
}

}  // namespace
}  // namespace muster::controller
