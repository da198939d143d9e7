// What the API server asks of a webhook (AdmissionReview of admission.k8s.io/v1), and the answer. Pure; outside bytes.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

struct AdmissionRequest {
  std::string uid;
  std::string operation;    // CREATE, UPDATE, DELETE
  std::string resource;     // trainjobs, trainingruntimes, clustertrainingruntimes, pytorchjobs
  std::string subresource;  // "scale"; empty: the object itself
  std::string ns, name;
  Json object, old_object;  // null: the operation has none
};

// Codes of refusals, and so the reasons: 422 (Invalid) where Kubeflow Trainer's definitions refuse by CEL, which is the
// form of an object and fields that are immutable; 403 (Forbidden) where its webhooks refuse: what does not fit the
// runtime, patches at the wrong time; 503 (ServiceUnavailable) where Muster could not look something up.
inline constexpr int kInvalid = 422, kForbidden = 403, kUnavailable = 503;

struct Refusal {
  int code = kForbidden;
  std::string why;  // path, value, remedy
};

struct Verdict {
  std::vector<Refusal> refusals;  // none: it is allowed
  std::vector<std::string> warnings;
  Json patch = Json::array();  // RFC 6902; empty: the object stays as it is

  void Refuse(int code, std::string why) { refusals.push_back({code, std::move(why)}); }
};

// InvalidArgument (HTTP 400): it is no AdmissionReview of v1, or lacks what each one has.
StatusOr<AdmissionRequest> ReadReview(std::string_view body);

// A request about /scale (autoscaling/v1 Scale) as the UPDATE of the object that it comes to. `now`: that object;
// `path`: where its number of replicas is.
AdmissionRequest UpdateByScale(const AdmissionRequest& request, const Json& now,
                               std::initializer_list<const char*> path);

// The AdmissionReview that answers the request `uid`. All refusals are in its message; the code is the first one's.
std::string WriteReview(std::string_view uid, const Verdict& verdict);

}  // namespace muster::controller
