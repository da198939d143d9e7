// SPDX-License-Identifier: Apache-2.0
#include "controller/admission/review.h"

#include "base/base64.h"
#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/lenient.h"

namespace muster::controller {
namespace {

constexpr char kApi[] = "admission.k8s.io/v1";
constexpr char kKind[] = "AdmissionReview";
constexpr int kDeepest = 100;                     // levels of nesting; users' objects have about 30
constexpr size_t kMostMemory = size_t{16} << 20;  // bytes of both objects; users' objects take some hundred KiB

std::string_view ReasonOf(int code) {
  switch (code) {
    case kInvalid:
      return "Invalid";
    case kUnavailable:
      return "ServiceUnavailable";
    default:
      return "Forbidden";
  }
}

}  // namespace

StatusOr<AdmissionRequest> ReadReview(std::string_view body) {
  MUSTER_ASSIGN_OR_RETURN(Json review, ReadJson(body, kDeepest, kMostMemory));
  Complaints complaints;
  Fields root(&review, "", &complaints);
  root.Word("apiVersion", {kApi});
  root.Word("kind", {kKind});
  for (const char* name : {"apiVersion", "kind"}) root.NeedText(name);
  Fields fields = root.Object("request");
  if (!fields) root.Wrong("request", "it is missing");
  AdmissionRequest request;
  request.uid = fields.NeedText("uid");
  request.operation = fields.NeedText("operation");
  request.resource = fields.Object("resource").NeedText("resource");
  request.subresource = fields.Text("subResource");
  request.ns = fields.Text("namespace");
  request.name = fields.Text("name");
  fields.Object("object");
  fields.Object("oldObject");
  if (request.operation != "DELETE" && fields.Find("object") == nullptr) fields.Wrong("object", "it is missing");
  if (request.operation != "CREATE" && fields.Find("oldObject") == nullptr) fields.Wrong("oldObject", "it is missing");
  MUSTER_RETURN_IF_ERROR(Annotate(complaints.status(), "this is not an AdmissionReview of admission.k8s.io/v1"));
  Json& whole = review["request"];
  request.object = std::move(whole["object"]);
  request.old_object = std::move(whole["oldObject"]);
  return request;
}

AdmissionRequest UpdateByScale(const AdmissionRequest& request, const Json& now,
                               std::initializer_list<const char*> path) {
  AdmissionRequest update = request;
  update.subresource.clear();
  update.old_object = update.object = now;
  const Json& replicas = PartOf(request.object, "spec", "replicas");
  Json patch = replicas.is_null() ? Json(0) : replicas;
  for (auto name = std::rbegin(path); name != std::rend(path); ++name)
    patch = Json::object({{*name, std::move(patch)}});
  update.object.merge_patch(patch);
  return update;
}

std::string WriteReview(std::string_view uid, const Verdict& verdict) {
  Json response = {{"uid", uid}, {"allowed", verdict.refusals.empty()}};
  if (!verdict.warnings.empty()) response["warnings"] = verdict.warnings;
  if (!verdict.refusals.empty()) {
    std::vector<std::string> all;
    for (const Refusal& refusal : verdict.refusals) all.push_back(refusal.why);
    const int code = verdict.refusals.front().code;
    response["status"] = {
        {"status", "Failure"}, {"code", code}, {"reason", ReasonOf(code)}, {"message", Join(all, "; ")}};
  } else if (!verdict.patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = ToBase64(WriteJson(verdict.patch));
  }
  return WriteJson(Json{{"apiVersion", kApi}, {"kind", kKind}, {"response", std::move(response)}});
}

}  // namespace muster::controller
