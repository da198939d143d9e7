// One post of a pod to the status server: what is asked, and by whom. Pure; outside bytes.
//
// Codes of errors are those of the answer: NotFound 404, PermissionDenied 403, InvalidArgument 422, all else 500. The
// messages begin with Kubeflow Trainer's own words, which its clients know.
#pragma once

#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

struct StatusPost {
  std::string ns, name;  // of the TrainJob
  std::string token;     // of the pod
};
// `authorization`: the header's value, empty where there is none. NotFound: another path; PermissionDenied: no token.
StatusOr<StatusPost> ReadStatusPost(std::string_view path, std::string_view authorization);

// {trainerStatus: {...}}: the fields of it that there are, null where it has none, so nothing is to be changed. Which
// values a field may have is the API server's to say. InvalidArgument: it is no such object, or a field is of a wrong
// type, which the API server would call an error of its own.
StatusOr<Json> ReadTrainerStatus(std::string_view body);

// The TokenReview (authentication.k8s.io/v1) that asks whose token it is.
Json TokenReviewOf(const StatusPost& post);
// The pod that the answered review names. PermissionDenied: the token is not good, not meant for this TrainJob, or of
// no pod of its namespace.
struct TokenPod {
  std::string name, uid;
};
StatusOr<TokenPod> JudgeToken(const StatusPost& post, const Json& review);
// PermissionDenied: `pod`, which has the name that the token says (null: there is none), is another pod by now, or none
// of the TrainJob.
Status CheckPod(const StatusPost& post, const TokenPod& of, const Json& pod);

// What the API server is to apply to the TrainJob's status.
Json StatusWith(const StatusPost& post, const Json& trainer_status);

struct StatusAnswer {
  int code;
  std::string body;  // a Status of v1
};
StatusAnswer AnswerOf(const Status& error);

}  // namespace muster::controller
