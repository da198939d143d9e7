// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/webhook/webhooks.h"

#include <gmock/gmock.h>

#include <ctime>
#include <map>
#include <optional>
#include <vector>

#include "controller/admission/validate_runtime.h"
#include "controller/kube/webhook/large_reviews.h"
#include "http/ask.h"
#include "tests/controller/kube/script_server.h"

namespace muster::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kOfTrainJobs[] = "/validate-trainer-kubeflow-org-v1alpha1-trainjob";
constexpr char kMutating[] = "/mutate-trainer-kubeflow-org-v1alpha1-trainjob";
constexpr char kOfPyTorchJobs[] = "/validate-kubeflow-org-v1-pytorchjob";

Json PyTorchJobOf(const Json& workers) {
  const Json pod = {{"spec", {{"containers", {{{"name", "pytorch"}, {"image", "x"}}}}}}};
  return {{"apiVersion", "kubeflow.org/v1"},
          {"kind", "PyTorchJob"},
          {"metadata", {{"name", "train"}, {"namespace", "ns"}}},
          {"spec", {{"pytorchReplicaSpecs", {{"Worker", {{"replicas", workers}, {"template", pod}}}}}}}};
}

Json TrainJobOf(const std::string& runtime_kind, const std::string& runtime) {
  return {{"apiVersion", "trainer.kubeflow.org/v1alpha1"},
          {"kind", "TrainJob"},
          {"metadata", {{"name", "train"}, {"namespace", "ns"}}},
          {"spec", {{"runtimeRef", {{"kind", runtime_kind}, {"name", runtime}}}}}};
}

Json RuntimeOf(const std::string& kind) {
  const Json pod = {{"spec", {{"restartPolicy", "Never"}, {"containers", {{{"name", "node"}, {"image", "x"}}}}}}};
  const Json job = {{"name", "node"},
                    {"template",
                     {{"metadata", {{"labels", {{"trainer.kubeflow.org/trainjob-ancestor-step", "trainer"}}}}},
                      {"spec", {{"template", pod}}}}}};
  return {
      {"apiVersion", "trainer.kubeflow.org/v1alpha1"},
      {"kind", kind},
      {"metadata", {{"name", "train"}, {"namespace", "ns"}}},
      {"spec", {{"mlPolicy", {{"numNodes", 2}}}, {"template", {{"spec", {{"replicatedJobs", Json::array({job})}}}}}}}};
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
  using Clients = Webhooks::Context::Clients;
  explicit WebhooksTest(Clients clients = Clients::kApiServers) {
    auto webhooks = Webhooks::Listen({loop_, api_, runtimes_, clients}, {}, "127.0.0.1", 0, nullptr);
    EXPECT_TRUE(webhooks.ok()) << webhooks.status();
    webhooks_ = *std::move(webhooks);
  }

  // The HTTP status and the body of the answer to `review`.
  std::pair<int, std::string> Asked(const std::string& path, const Json& review) {
    return AskedText(path, WriteJson(review));
  }
  std::pair<int, std::string> AskedText(const std::string& path, const std::string& review) {
    std::optional<http::Answer> answer;
    const http::Request request{
        .method = "POST", .url = fmt::format("http://127.0.0.1:{}{}", webhooks_->port(), path), .body = review};
    const auto asking = http::Ask(http_, request, {}, 4 << 20, [&](http::Answer its) { answer = std::move(its); });
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
  ScriptServer server_{loop_, [this](const ScriptServer::Asked& asked) {
                         const auto own = replies_.find(asked.target.substr(asked.target.rfind('/') + 1));
                         return own == replies_.end() ? reply_ : own->second;
                       }};
  std::map<std::string, ScriptServer::Reply> replies_;  // by name of the object
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

double CpuSeconds(clockid_t of) {
  timespec time{};
  clock_gettime(of, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The loop serves others meanwhile. What counts is where the work was done, so the load of the machine does not matter.
TEST_F(WebhooksTest, ALargeReviewIsJudgedByAnotherThread) {
  Json job = TrainJobOf("TrainingRuntime", "train");
  Json& patches = job["spec"]["runtimePatches"] = Json::array();
  for (int i = 0; i < 4000; ++i) patches.push_back({{"manager", "a.b/c"}, {"trainingRuntimeSpec", Json::object()}});
  const std::string review = WriteJson(ReviewOf("CREATE", "trainjobs", job));
  ASSERT_GT(review.size(), 2 * LargeReviews::kLarge);
  const double own = CpuSeconds(CLOCK_THREAD_CPUTIME_ID), all = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
  const auto [status, body] = AskedText(kMutating, review);
  const double of_loop = CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - own;
  EXPECT_LT(of_loop, CpuSeconds(CLOCK_PROCESS_CPUTIME_ID) - all - of_loop);
  EXPECT_EQ(status, 200);
  EXPECT_EQ(Json::parse(body)["response"]["allowed"], true);
}

// The thread's work uses what the coroutine owns, which lives until the thread has ended it.
TEST_F(WebhooksTest, TheyMayEndWhileALargeReviewIsJudged) {
  Json job = TrainJobOf("TrainingRuntime", "train");
  job["spec"]["trainer"]["args"] = Json::array({std::string(1'000'000, 'x')});
  const std::string review = WriteJson(ReviewOf("CREATE", "trainjobs", job));
  for (int turns = 1; turns < 4096; turns *= 2) {
    auto webhooks = Webhooks::Listen({loop_, api_, runtimes_, Clients::kApiServers}, {}, "127.0.0.1", 0, nullptr);
    ASSERT_TRUE(webhooks.ok()) << webhooks.status();
    const http::Request request{
        .method = "POST", .url = fmt::format("http://127.0.0.1:{}{}", (*webhooks)->port(), kMutating), .body = review};
    std::optional<http::Answer> answer;
    const auto asking = http::Ask(http_, request, {}, 4 << 20, [&](http::Answer its) { answer = std::move(its); });
    for (int turn = 0; turn < turns && !answer; ++turn) loop_.run_one_for(std::chrono::milliseconds(1));
    webhooks->reset();
    EXPECT_TRUE(RunUntil(loop_, [&] { return answer.has_value(); }));
  }
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

TEST_F(WebhooksTest, RefusesANameThatNoRuntimeCanHave) {
  for (const char* name : {"a/b", "../pods", "A", "a..b", "-a", "a b", "a%2Fb"}) {
    const Json refused = Response(kOfTrainJobs, ReviewOf("CREATE", "trainjobs", TrainJobOf("TrainingRuntime", name)));
    EXPECT_EQ(refused["status"]["code"], 422) << name;
    EXPECT_THAT(refused["status"]["message"], HasSubstr("spec.runtimeRef.name: ")) << name;
    Response(kMutating, ReviewOf("CREATE", "trainjobs", TrainJobOf("TrainingRuntime", name)));
  }
  EXPECT_THAT(server_.lines(), IsEmpty());
}

class WebhooksForAnybody : public WebhooksTest {
 protected:
  WebhooksForAnybody() : WebhooksTest(Clients::kAnybody) {}

  static Json Update(const std::string& uid, int nodes) {
    Json job = TrainJobOf("TrainingRuntime", "mine");
    job["metadata"]["uid"] = uid;
    job["spec"]["trainer"] = {{"numNodes", nodes}};
    Json review = ReviewOf("UPDATE", "trainjobs", job);
    job["spec"]["trainer"] = {{"numNodes", 2}};
    review["request"]["oldObject"] = job;
    return review;
  }
};

TEST_F(WebhooksForAnybody, ACreateTellsNothingOfARuntimeOfANamespace) {
  std::vector<Json> answers;
  for (const auto& reply :
       {ScriptServer::Refusal(404, "NotFound"), ScriptServer::Of(200, RuntimeOf("TrainingRuntime"))}) {
    reply_ = reply;
    const Json job = TrainJobOf("TrainingRuntime", "mine");
    answers.push_back(Response(kOfTrainJobs, ReviewOf("CREATE", "trainjobs", job)));
    answers.push_back(Response(kMutating, ReviewOf("CREATE", "trainjobs", job)));
  }
  EXPECT_EQ(answers[0], (Json{{"uid", "uid-1"}, {"allowed", true}}));
  EXPECT_EQ(answers[0], answers[2]);
  EXPECT_EQ(answers[1], answers[3]);
  EXPECT_THAT(server_.lines(), IsEmpty());  // nor does it ask
}

TEST_F(WebhooksForAnybody, AnyUserMayReadAClusterTrainingRuntime) {
  const Json review = ReviewOf("CREATE", "trainjobs", TrainJobOf("ClusterTrainingRuntime", "torch"));
  EXPECT_THAT(Response(kOfTrainJobs, review)["status"]["message"], HasSubstr("must be created before the TrainJob"));
  reply_ = ScriptServer::Of(200, RuntimeOf("ClusterTrainingRuntime"));
  EXPECT_EQ(Response(kOfTrainJobs, review)["allowed"], true);
}

TEST_F(WebhooksForAnybody, AnUpdateIsJudgedByTheRuntimeOnlyIfItNamesTheJobsUid) {
  Json job = TrainJobOf("TrainingRuntime", "mine");
  job["metadata"]["uid"] = "right";
  replies_["train"] = ScriptServer::Of(200, job);
  replies_["mine"] = ScriptServer::Of(200, RuntimeOf("TrainingRuntime"));
  EXPECT_EQ(Response(kOfTrainJobs, Update("wrong", 3))["allowed"], true);
  EXPECT_EQ(Response(kOfTrainJobs, Update("", 3))["allowed"], true);
  EXPECT_THAT(server_.lines(), ElementsAre(HasSubstr("/trainjobs/train")));  // for the first one
  EXPECT_THAT(Response(kOfTrainJobs, Update("right", 3))["status"]["message"],
              HasSubstr("spec.trainer.numNodes: field is immutable while the job runs"));
}

TEST_F(WebhooksForAnybody, ARequestForScaleHasToNameTheUid) {
  Json job = PyTorchJobOf(2);
  job["metadata"]["uid"] = "right";
  reply_ = ScriptServer::Of(200, job);
  const auto scaled = [&](const std::string& uid) {
    const Json scale = {{"kind", "Scale"}, {"metadata", {{"uid", uid}}}, {"spec", {{"replicas", 0}}}};
    Json review = ReviewOf("UPDATE", "pytorchjobs", scale);
    review["request"]["subResource"] = "scale";
    review["request"]["oldObject"] = scale;
    return Response(kOfPyTorchJobs, review);
  };
  EXPECT_EQ(scaled("wrong")["allowed"], true);
  EXPECT_EQ(scaled("")["allowed"], true);
  EXPECT_EQ(scaled("right")["status"]["code"], 403);
}

TEST_F(WebhooksForAnybody, AProtectedRuntimeIsToldOfByItsUid) {
  const auto deleted = [&](const std::string& resource, const std::string& kind, const std::string& uid) {
    Json runtime = RuntimeOf(kind);
    runtime["metadata"]["labels"] = {{kProtectedLabel, "true"}};
    runtime["metadata"]["uid"] = "right";
    replies_["train"] = ScriptServer::Of(200, runtime);
    runtime["metadata"]["uid"] = uid;
    Json review = ReviewOf("DELETE", resource, nullptr);
    review["request"]["oldObject"] = runtime;
    return Response("/validate-trainer-kubeflow-org-v1alpha1-" + resource.substr(0, resource.size() - 1), review);
  };
  Json used = TrainJobOf("TrainingRuntime", "train");
  Json used_by_all = TrainJobOf("ClusterTrainingRuntime", "train");
  used["metadata"]["name"] = used_by_all["metadata"]["name"] = "secret";
  reply_ = ScriptServer::Of(200, {{"items", {used, used_by_all}}, {"metadata", Json::object()}});
  EXPECT_EQ(deleted("trainingruntimes", "TrainingRuntime", "wrong")["allowed"], true);
  EXPECT_THAT(WriteJson(deleted("trainingruntimes", "TrainingRuntime", "right")), HasSubstr("ns/secret"));
  // Any user can read the uid of a ClusterTrainingRuntime, so it proves nothing about the jobs.
  const std::string refused = WriteJson(deleted("clustertrainingruntimes", "ClusterTrainingRuntime", "right"));
  EXPECT_THAT(refused, HasSubstr("a TrainJob (kubectl get trainjobs -A) uses it"));
  EXPECT_EQ(refused.find("secret"), std::string::npos);
}

TEST_F(WebhooksForAnybody, LookUpsAreLimited) {
  const Json review = ReviewOf("CREATE", "trainjobs", TrainJobOf("ClusterTrainingRuntime", "none"));
  const TimePoint begin = MonotonicClock::now();
  for (int i = 0; i < 400; ++i) {
    EXPECT_THAT(Response(kOfTrainJobs, review)["status"]["message"], HasSubstr("must be created"));
  }
  const auto seconds = std::chrono::duration<double>(MonotonicClock::now() - begin).count();
  EXPECT_LE(static_cast<double>(server_.lines().size()), 101 + 50 * seconds);
}

}  // namespace
}  // namespace muster::controller
