// SPDX-License-Identifier: Apache-2.0
// AdmissionReview (admission.k8s.io/v1): requests of the API server to a webhook, and answers. Pure; untrusted input.
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

// HTTP codes of refusals. 422 (Invalid): the form of an object, or a change of an immutable field; in Kubeflow Trainer,
// CEL in the definitions refuses these. 403 (Forbidden): a job that does not fit its runtime, or a patch at the wrong
// time; in Kubeflow Trainer, webhooks refuse these. 503 (ServiceUnavailable): Muster could not look something up.
inline constexpr int kInvalid = 422, kForbidden = 403, kUnavailable = 503;

struct Refusal {
  int code = kForbidden;
  std::string why;  // path, value, remedy
};

struct Verdict {
  std::vector<Refusal> refusals;  // none: it is allowed
  std::vector<std::string> warnings;
  Json patch = Json::array();  // RFC 6902; empty: the object stays as it is
  Json asks;                   // the Workload that the cluster must accept (plan/native_gang.h); null: none

  void Refuse(int code, std::string why) { refusals.push_back({code, std::move(why)}); }
};

// InvalidArgument (HTTP 400): `body` is not an AdmissionReview of v1, or lacks a required field. ResourceExhausted: its
// objects have too many values.
StatusOr<AdmissionRequest> ReadReview(std::string_view body);

// Converts a request for /scale (autoscaling/v1 Scale) to an UPDATE of the object that is scaled. `now`: that object as
// it is; `path`: the path of its number of replicas.
AdmissionRequest UpdateByScale(const AdmissionRequest& request, const Json& now,
                               std::initializer_list<const char*> path);

// The AdmissionReview that answers the request `uid`. Its message has all refusals; its code is that of the first one.
std::string WriteReview(std::string_view uid, const Verdict& verdict);

}  // namespace muster::controller
