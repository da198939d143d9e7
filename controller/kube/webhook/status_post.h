// SPDX-License-Identifier: Apache-2.0
// Reads and checks one POST of a pod to the status server. Pure; untrusted input.
//
// The error code decides the HTTP status: NotFound 404, PermissionDenied 403, InvalidArgument 422, others 500. Messages
// begin with the words of Kubeflow Trainer's messages, because its clients know them.
#pragma once

#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

// The token of the value "Bearer TOKEN" of a header Authorization; empty: no header. PermissionDenied: there is not
// exactly one. The message does not contain it.
StatusOr<std::string> ReadBearerToken(std::string_view authorization);

struct StatusPost {
  std::string ns, name;  // of the TrainJob
  std::string token;     // of the pod
};
// `authorization`: the header's value; empty: no header. NotFound: another path. PermissionDenied: no token.
StatusOr<StatusPost> ReadStatusPost(std::string_view path, std::string_view authorization);

// Reads {trainerStatus: {...}} and returns its known fields. JSON null: there is no trainerStatus, so nothing changes.
// The API server checks the values of the fields. InvalidArgument: `body` is not such an object, or a field has a wrong
// type. (For a wrong type the API server would answer with an internal error.)
StatusOr<Json> ReadTrainerStatus(std::string_view body);

// The TokenReview (authentication.k8s.io/v1) that asks whose the token is.
Json TokenReviewOf(const StatusPost& post);
// The pod that the answered TokenReview names. PermissionDenied: the token is not valid, was not issued for this
// TrainJob, or belongs to no pod of its namespace.
struct TokenPod {
  std::string name, uid;
};
StatusOr<TokenPod> JudgeToken(const StatusPost& post, const Json& review);
// Checks `pod`, the pod of the name that the token gives (null: there is none). PermissionDenied: the token's pod is
// gone, or it does not belong to the TrainJob.
Status CheckPod(const StatusPost& post, const TokenPod& of, const Json& pod);

// The object to apply to the TrainJob's status.
Json StatusWith(const StatusPost& post, const Json& trainer_status);

struct StatusAnswer {
  int code;
  std::string body;  // a Status object of v1
};
StatusAnswer AnswerOf(const Status& error);

}  // namespace muster::controller
