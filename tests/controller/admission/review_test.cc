// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"
#include "tests/controller/admission/requests.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

constexpr char kWhole[] = R"({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
  "uid": "u-1", "kind": {"kind": "TrainJob"}, "resource": {"group": "g", "resource": "trainjobs"}, "subResource": "scale",
  "operation": "UPDATE", "namespace": "ns", "name": "train", "userInfo": {"username": "a"},
  "object": {"spec": {"replicas": 2}}, "oldObject": {"spec": {"replicas": 1}}}})";

Json Changed(std::string_view patch) {
  Json review = Json::parse(kWhole);
  review.merge_patch(YamlOf(patch));
  return review;
}

TEST(Review, IsRead) {
  const auto request = ReadReview(kWhole);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->uid, "u-1");
  EXPECT_EQ(request->operation, "UPDATE");
  EXPECT_EQ(request->resource, "trainjobs");
  EXPECT_EQ(request->subresource, "scale");
  EXPECT_EQ(request->ns, "ns");
  EXPECT_EQ(request->name, "train");
  EXPECT_EQ(request->object, Json::parse(R"({"spec": {"replicas": 2}})"));
  EXPECT_EQ(request->old_object, Json::parse(R"({"spec": {"replicas": 1}})"));
}

TEST(Review, GarbageIsRefused) {
  struct Row {
    std::string body, message;
  };
  for (const Row& row : std::vector<Row>{
           {"", ""},
           {"]", ""},
           {"[]", "a list"},
           {"\xff\xfe", ""},
           {std::string(100'000, '['), ""},
           {WriteJson(Changed("{apiVersion: admission.k8s.io/v1beta1}")), "admission.k8s.io/v1beta1"},
           {WriteJson(Changed("{kind: Review}")), "'Review'"},
           {WriteJson(Changed("{kind: null}")), "kind"},
           {WriteJson(Changed("{request: null}")), "request: it is missing"},
           {WriteJson(Changed("{request: {uid: null}}")), "request.uid"},
           {WriteJson(Changed("{request: {uid: 5}}")), "request.uid"},
           {WriteJson(Changed("{request: {resource: [a]}}")), "request.resource"},
           {WriteJson(Changed("{request: {object: text}}")), "request.object"},
           {WriteJson(Changed("{request: {object: null}}")), "request.object: it is missing"},
           {WriteJson(Changed("{request: {oldObject: null}}")), "request.oldObject: it is missing"},
       }) {
    const auto request = ReadReview(row.body);
    EXPECT_TRUE(absl::IsInvalidArgument(request.status())) << row.body.substr(0, 100);
    EXPECT_THAT(std::string(Message(request.status())), HasSubstr(row.message));
  }
  // A DELETE has no object, a CREATE no oldObject.
  EXPECT_TRUE(ReadReview(WriteJson(Changed("{request: {operation: DELETE, object: null}}"))).ok());
  EXPECT_TRUE(ReadReview(WriteJson(Changed("{request: {operation: CREATE, oldObject: null}}"))).ok());
}

Json Response(const Verdict& verdict) {
  const Json review = Json::parse(WriteReview("u-1", verdict));
  EXPECT_EQ(review["apiVersion"], "admission.k8s.io/v1");
  EXPECT_EQ(review["kind"], "AdmissionReview");
  EXPECT_EQ(review["response"]["uid"], "u-1");
  return review["response"];
}

TEST(Review, TheAnswerIsWritten) {
  EXPECT_EQ(Response({}), Json::parse(R"({"uid": "u-1", "allowed": true})"));

  Verdict patched;
  patched.patch = Json::diff(YamlOf("{a: 1}"), YamlOf("{a: 2}"));
  patched.warnings = {"w"};
  const Json response = Response(patched);
  EXPECT_EQ(response["allowed"], true);
  EXPECT_EQ(response["warnings"], Json::array({"w"}));
  EXPECT_EQ(response["patchType"], "JSONPatch");
  EXPECT_EQ(Json::parse(*FromBase64(response["patch"].get<std::string>())),
            Json::parse(R"([{"op": "replace", "path": "/a", "value": 2}])"));

  Verdict refused = patched;
  refused.Refuse(kInvalid, "one");
  refused.Refuse(kForbidden, "two");
  const Json refusal = Response(refused);
  EXPECT_EQ(refusal["allowed"], false);
  EXPECT_EQ(refusal["status"],
            Json::parse(R"({"status": "Failure", "code": 422, "reason": "Invalid", "message": "one; two"})"));
  EXPECT_FALSE(refusal.contains("patch"));

  Verdict unavailable;
  unavailable.Refuse(kUnavailable, "later");
  EXPECT_EQ(Response(unavailable)["status"]["reason"], "ServiceUnavailable");
}

}  // namespace
}  // namespace muster::controller
