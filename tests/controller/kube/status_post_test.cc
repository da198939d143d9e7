// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/webhook/status_post.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::controller {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

constexpr char kPath[] = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/train/status";
constexpr char kAudience[] = "trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/train/status";
const StatusPost kPost{"team", "train", "abc"};

TEST(ReadStatusPost, WantsThePathAndOneToken) {
  const struct {
    const char* path;
    const char* authorization;
    StatusCode code;
  } rows[] = {
      {kPath, "Bearer abc", StatusCode::kOk},
      {kPath, "bEARER   abc ", StatusCode::kOk},
      {kPath, "", StatusCode::kPermissionDenied},
      {kPath, "Bearer", StatusCode::kPermissionDenied},
      {kPath, "Bearer ", StatusCode::kPermissionDenied},
      {kPath, "Bearer a b", StatusCode::kPermissionDenied},
      {kPath, "Bearer a,b", StatusCode::kPermissionDenied},
      {kPath, "Bearer a\x01", StatusCode::kPermissionDenied},
      {kPath, "Basic abc", StatusCode::kPermissionDenied},
      {"/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/train", "Bearer abc", StatusCode::kNotFound},
      {"/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/jobs/train/status", "Bearer abc", StatusCode::kNotFound},
      {"/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/train/scale", "Bearer abc",
       StatusCode::kNotFound},
      {"/apis/trainer.kubeflow.org/v1alpha1/namespaces//trainjobs/train/status", "Bearer abc", StatusCode::kNotFound},
      {"/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/%2e%2e/status", "Bearer abc",
       StatusCode::kNotFound},
      {"/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/train/status/more", "Bearer abc",
       StatusCode::kNotFound},
      {"/apis", "Bearer abc", StatusCode::kNotFound},
  };
  for (const auto& row : rows) {
    const auto post = ReadStatusPost(row.path, row.authorization);
    EXPECT_EQ(post.status().code(), row.code) << row.path << " " << row.authorization;
    if (!post.ok()) continue;
    EXPECT_EQ(post->ns, "team");
    EXPECT_EQ(post->name, "train");
    EXPECT_EQ(post->token, "abc");
  }
}

TEST(ReadTrainerStatus, TakesTheFieldsThatThereAre) {
  const struct {
    const char* body;
    const char* status;  // "": refused
  } rows[] = {
      {R"({"trainerStatus": {"progressPercentage": 40, "metrics": [{"name": "loss", "value": "1"}], "more": 1}})",
       R"({"progressPercentage": 40, "metrics": [{"name": "loss", "value": "1"}]})"},
      {R"({"trainerStatus": {"progressPercentage": 101, "lastUpdatedTime": "late"}})",
       R"({"progressPercentage": 101, "lastUpdatedTime": "late"})"},
      {R"({"trainerStatus": {"progressPercentage": "far"}})", ""},
      {R"({"trainerStatus": {"estimatedRemainingSeconds": 0.5}})", ""},
      {R"({"trainerStatus": {"lastUpdatedTime": 1}})", ""},
      {R"({"trainerStatus": {"metrics": {"loss": 1}}})", ""},
      {R"({"trainerStatus": {"metrics": [{"name": "loss", "value": 1}]}})", ""},
      {R"({"trainerStatus": {}})", "{}"},
      {R"({"trainerStatus": null})", "null"},
      {"{}", "null"},
      {R"({"trainerStatus": [1]})", ""},
      {"[]", ""},
      {"", ""},
      {"{\"trainerStatus\"", ""},
      {R"({"trainerStatus": {"metrics": [[[[[[[[[[[1]]]]]]]]]]]}})", ""},
  };
  for (const auto& row : rows) {
    const auto status = ReadTrainerStatus(row.body);
    EXPECT_EQ(status.ok() ? WriteJson(*status) : "", *row.status == 0 ? "" : WriteJson(Json::parse(row.status)))
        << row.body;
    if (!status.ok()) {
      EXPECT_THAT(std::string(Message(status.status())), HasSubstr("Invalid payload"));
    }
  }
}

TEST(JudgeToken, WantsATokenOfAPodForThisJob) {
  const std::string user =
      "user: {username: 'system:serviceaccount:team:default', extra: {authentication.kubernetes.io/pod-name: [p], "
      "authentication.kubernetes.io/pod-uid: [u]}}";
  const struct {
    std::string status;
    const char* why;  // "": accepted
  } rows[] = {
      {fmt::format("{{authenticated: true, audiences: [{}], {}}}", kAudience, user), ""},
      {fmt::format("{{authenticated: false, audiences: [{}], {}}}", kAudience, user), "not valid"},
      {"{error: token expired}", "not valid"},
      {"{}", "not valid"},
      {"{authenticated: null}", "not valid"},
      {fmt::format("{{authenticated: true, {}}}", user), "not meant"},
      {fmt::format("{{authenticated: true, audiences: [other], {}}}", user), "not meant"},
      {fmt::format("{{authenticated: true, audiences: [{}]}}", kAudience), "no service account"},
      {fmt::format("{{authenticated: true, audiences: [{}], user: {{username: 'system:serviceaccount:teams:x'}}}}",
                   kAudience),
       "no service account"},
      {fmt::format("{{authenticated: true, audiences: [{}], user: {{username: 'system:serviceaccount:team:x'}}}}",
                   kAudience),
       "bound to no pod"},
      {fmt::format("{{authenticated: true, audiences: [{}], user: {{username: 'system:serviceaccount:team:x', extra: "
                   "{{authentication.kubernetes.io/pod-name: p}}}}}}",
                   kAudience),
       "bound to no pod"},
  };
  for (const auto& row : rows) {
    Json review;
    review["status"] = YamlOf(row.status);
    const auto pod = JudgeToken(kPost, review);
    if (*row.why == 0) {
      ASSERT_TRUE(pod.ok()) << pod.status();
      EXPECT_EQ(pod->name + "/" + pod->uid, "p/u");
    } else {
      EXPECT_EQ(pod.status().code(), StatusCode::kPermissionDenied) << row.status;
      EXPECT_THAT(std::string(Message(pod.status())), HasSubstr(row.why)) << row.status;
    }
  }
}

TEST(CheckPod, IsOneOfTheJob) {
  const char* label = "jobset.sigs.k8s.io/jobset-name";
  const struct {
    std::string pod;
    const char* why;
  } rows[] = {
      {fmt::format("{{metadata: {{name: p, uid: u, labels: {{{}: train}}}}}}", label), ""},
      {fmt::format("{{metadata: {{name: p, uid: v, labels: {{{}: train}}}}}}", label), "has gone"},
      {fmt::format("{{metadata: {{name: p, uid: u, labels: {{{}: other}}}}}}", label), "none of TrainJob team/train"},
      {"{metadata: {name: p, uid: u}}", "none of TrainJob"},
      {"{metadata: null}", "has gone"},
  };
  for (const auto& row : rows) {
    const Status status = CheckPod(kPost, {"p", "u"}, YamlOf(row.pod));
    EXPECT_EQ(status.ok(), *row.why == 0) << row.pod;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(row.why)) << row.pod;
  }
}

TEST(AnswerOf, IsAStatusWithUpstreamsCode) {
  const struct {
    Status error;
    int code;
    const char* reason;
  } rows[] = {
      {absl::NotFoundError("x"), 404, "NotFound"},           {absl::PermissionDeniedError("x"), 403, "Forbidden"},
      {absl::InvalidArgumentError("x"), 422, "Invalid"},     {absl::UnavailableError("secret"), 500, "InternalError"},
      {absl::InternalError("secret"), 500, "InternalError"},
  };
  for (const auto& row : rows) {
    const StatusAnswer answer = AnswerOf(row.error);
    const Json body = Json::parse(answer.body);
    EXPECT_EQ(answer.code, row.code);
    EXPECT_EQ(body["kind"], "Status");
    EXPECT_EQ(body["reason"], row.reason);
    EXPECT_EQ(body["code"], row.code);
    EXPECT_EQ(answer.body.find("secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace muster::controller
