// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/api_error.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "controller/kube/client/resource.h"

namespace muster::controller {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

TEST(ErrorOf, HasTheCodeAndTheServersWords) {
  const struct {
    int http_status;
    std::string_view reason;
    StatusCode code;
  } rows[] = {
      {400, "BadRequest", StatusCode::kInvalidArgument},
      {401, "Unauthorized", StatusCode::kUnauthenticated},
      {403, "Forbidden", StatusCode::kPermissionDenied},
      {404, "NotFound", StatusCode::kNotFound},
      {405, "MethodNotAllowed", StatusCode::kUnimplemented},
      {406, "NotAcceptable", StatusCode::kUnimplemented},
      {408, "Timeout", StatusCode::kUnavailable},
      {409, "AlreadyExists", StatusCode::kAlreadyExists},
      {409, "Conflict", StatusCode::kAborted},
      {410, "Expired", StatusCode::kOutOfRange},
      {410, "Gone", StatusCode::kOutOfRange},
      {413, "RequestEntityTooLarge", StatusCode::kResourceExhausted},
      {415, "UnsupportedMediaType", StatusCode::kUnimplemented},
      {422, "Invalid", StatusCode::kInvalidArgument},
      {429, "TooManyRequests", StatusCode::kUnavailable},
      {500, "InternalError", StatusCode::kUnavailable},
      {501, "", StatusCode::kUnimplemented},
      {503, "ServiceUnavailable", StatusCode::kUnavailable},
      {504, "Timeout", StatusCode::kUnavailable},
      {302, "", StatusCode::kFailedPrecondition},
      {418, "", StatusCode::kFailedPrecondition},
  };
  for (const auto& row : rows) {
    const std::string body =
        fmt::format(R"({{"kind":"Status","apiVersion":"v1","message":"it is so","reason":"{}","code":{}}})", row.reason,
                    row.http_status);
    const Status status = ErrorOf(row.http_status, body, "GET /api/v1/pods");
    EXPECT_EQ(status.code(), row.code) << row.http_status << row.reason;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(fmt::format("GET /api/v1/pods: {}", row.http_status)));
    EXPECT_THAT(std::string(Message(status)), HasSubstr("'it is so'"));
  }
}

TEST(ErrorOf, ShowsWhateverCame) {
  const struct {
    int http_status;
    std::string body, message;
  } rows[] = {
      {409, R"({"kind":"Status","reason":"AlreadyExists","message":"jobs \"a\" already exists"})",
       R"(X: 409 'AlreadyExists': 'jobs "a" already exists')"},
      {404, "404 page not found\n", "X: 404: '404 page not found'"},
      {500, "", "X: 500"},
      {500, "{", "X: 500: '{'"},
      {500, R"({"kind":"Status","message":7,"reason":[]})", "X: 500"},
      {502, "<html>\x01\n</html>", "X: 502: '<html>\\x01\\x0a</html>'"},
      {401, R"({"kind":"Status","reason":"Unauthorized","message":"Unauthorized"})",
       "X: 401 'Unauthorized': 'Unauthorized'; the credentials are refused: log in again, or renew the token"},
      {302, "", "X: 302; an API server does not redirect: check its address"},
      {403, std::string("\0\xff", 2), "X: 403: '\\x00\\xff'"},
  };
  for (const auto& row : rows) EXPECT_EQ(Message(ErrorOf(row.http_status, row.body, "X")), row.message);
  const std::string huge(1 << 20, 'x');
  EXPECT_LT(ErrorOf(500, huge, "X").message().size(), 300U);
  EXPECT_LT(ErrorOf(500, R"({"kind":"Status","message":")" + huge + "\"}", "X").message().size(), 2100U);
}

TEST(PathOf, NamesOneObjectOrAll) {
  const Resource pods{"v1", "pods"}, jobs{"batch/v1", "jobs"};
  const Resource runtimes{"trainer.kubeflow.org/v1alpha1", "clustertrainingruntimes", false};
  EXPECT_EQ(PathOf(pods, ""), "/api/v1/pods");
  EXPECT_EQ(PathOf(pods, "team"), "/api/v1/namespaces/team/pods");
  EXPECT_EQ(PathOf(jobs, "team", "train", "status"), "/apis/batch/v1/namespaces/team/jobs/train/status");
  EXPECT_EQ(PathOf(runtimes, "team", "torch"), "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/torch");
  EXPECT_EQ(PathOf(pods, "a/../b", "c?d#e"), "/api/v1/namespaces/a%2F..%2Fb/pods/c%3Fd%23e");
}

}  // namespace
}  // namespace muster::controller
