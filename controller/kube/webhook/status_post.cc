// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/webhook/status_post.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/api/meta.h"
#include "controller/plan/trainer_status.h"

namespace muster::controller {
namespace {

constexpr int kDeepest = 8;  // levels of a body; a correct one has 3
constexpr char kPodName[] = "authentication.kubernetes.io/pod-name", kPodUid[] = "authentication.kubernetes.io/pod-uid";

Status Forbidden(std::string_view why) { return absl::PermissionDeniedError(fmt::format("Forbidden: {}", why)); }

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-' || letter == '.';
  });
}

// The first string of the list `name` in the review's user.extra.
std::string Extra(const Json& user, const char* name) {
  const Json& texts = ListField(PartOf(user, "extra"), name);
  return !texts.empty() && texts.front().is_string() ? texts.front().get<std::string>() : "";
}

}  // namespace

StatusOr<std::string> ReadBearerToken(std::string_view authorization) {
  const size_t space = std::min(authorization.find(' '), authorization.size());
  if (Lower(authorization.substr(0, space)) != "bearer")
    return Forbidden("want the header Authorization: Bearer TOKEN");
  std::string token(Strip(authorization.substr(space)));
  if (token.empty() || !IsVisible(token) || token.find(',') != std::string::npos) {
    return Forbidden("the header Authorization has not one token");
  }
  return token;
}

StatusOr<StatusPost> ReadStatusPost(std::string_view path, std::string_view authorization) {
  StatusPost post;
  std::vector<std::string_view> parts;
  if (path.starts_with(kStatusPosts)) parts = Split(path.substr(std::string_view(kStatusPosts).size()), '/');
  if (parts.size() != 4 || !IsName(parts[0]) || parts[1] != "trainjobs" || !IsName(parts[2]) || parts[3] != "status") {
    return absl::NotFoundError(fmt::format("Not found: want {}NAMESPACE/trainjobs/NAME/status", kStatusPosts));
  }
  post.ns = parts[0];
  post.name = parts[2];
  MUSTER_ASSIGN_OR_RETURN(post.token, ReadBearerToken(authorization));
  return post;
}

StatusOr<Json> ReadTrainerStatus(std::string_view body) {
  const auto json = ReadJson(body, kDeepest);
  if (!json.ok()) return absl::InvalidArgumentError(fmt::format("Invalid payload: {}", Message(json.status())));
  Complaints complaints;
  Fields root(&*json, "", &complaints);
  if (!root) root.Wrong("trainerStatus", "it is missing");
  Fields status = root.Object("trainerStatus");
  Json known = status ? Json::object() : Json();
  for (const char* field : {"progressPercentage", "estimatedRemainingSeconds"}) {
    if (const auto number = status.Int(field, std::numeric_limits<int>::min())) known[field] = *number;
  }
  if (std::string time = status.Text("lastUpdatedTime"); !time.empty()) known["lastUpdatedTime"] = std::move(time);
  for (Fields& metric : status.Objects("metrics")) {
    known["metrics"].push_back({{"name", metric.Text("name")}, {"value", metric.Text("value")}});
  }
  MUSTER_RETURN_IF_ERROR(Annotate(complaints.status(), "Invalid payload"));
  return known;
}

Json TokenReviewOf(const StatusPost& post) {
  const Json audiences = Json::array({TrainerStatusAudience(post.ns, post.name)});
  return {{"apiVersion", "authentication.k8s.io/v1"},
          {"kind", "TokenReview"},
          {"spec", {{"token", post.token}, {"audiences", audiences}}}};
}

StatusOr<TokenPod> JudgeToken(const StatusPost& post, const Json& review) {
  const std::string audience = TrainerStatusAudience(post.ns, post.name);
  const Json& status = PartOf(review, "status");
  if (!FlagField(status, "authenticated", false)) {
    return Forbidden(fmt::format("the token is not valid, has expired, or is not meant for the audience {}", audience));
  }
  // An API server without support for audiences leaves them out, and has not checked for whom the token is.
  const Json& audiences = ListField(status, "audiences");
  if (std::find(audiences.begin(), audiences.end(), Json(audience)) == audiences.end()) {
    return Forbidden(fmt::format("the token is not meant for the audience {}", audience));
  }
  const Json& user = PartOf(status, "user");
  if (!TextField(user, "username").starts_with(fmt::format("system:serviceaccount:{}:", post.ns))) {
    return Forbidden(fmt::format("the token is of no service account of namespace {}", post.ns));
  }
  TokenPod pod{Extra(user, kPodName), Extra(user, kPodUid)};
  if (pod.name.empty() || pod.uid.empty()) return Forbidden("the token is bound to no pod");
  return pod;
}

Status CheckPod(const StatusPost& post, const TokenPod& of, const Json& pod) {
  const auto meta = ReadMeta(pod);
  if (!meta.ok() || meta->uid != of.uid) return Forbidden(fmt::format("pod {} of the token has gone", of.name));
  if (meta->Label(kJobSetNameLabel) == post.name) return absl::OkStatus();
  return Forbidden(fmt::format("pod {} is none of TrainJob {}/{}", of.name, post.ns, post.name));
}

Json StatusWith(const StatusPost& post, const Json& trainer_status) {
  return {{"apiVersion", kTrainerApi},
          {"kind", "TrainJob"},
          {"metadata", {{"name", post.name}, {"namespace", post.ns}}},
          {"status", {{"trainerStatus", trainer_status}}}};
}

StatusAnswer AnswerOf(const Status& error) {
  StatusAnswer answer{500, ""};
  std::string reason = "InternalError", message(Message(error));
  switch (error.code()) {
    case absl::StatusCode::kNotFound:
      answer.code = 404;
      reason = "NotFound";
      break;
    case absl::StatusCode::kPermissionDenied:
      answer.code = 403;
      reason = "Forbidden";
      break;
    case absl::StatusCode::kInvalidArgument:
      answer.code = 422;
      reason = "Invalid";
      break;
    default:
      message = "Internal error: muster-controller could not ask the API server, and its log says why; try again";
  }
  answer.body = WriteJson(Json{{"kind", "Status"},
                               {"apiVersion", "v1"},
                               {"metadata", Json::object()},
                               {"status", "Failure"},
                               {"message", message},
                               {"reason", reason},
                               {"code", answer.code}});
  return answer;
}

}  // namespace muster::controller
