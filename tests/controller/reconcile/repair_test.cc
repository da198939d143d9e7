// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/repair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/controller/api/yaml_of.h"
#include "tests/controller/reconcile/decided.h"
#include "tests/controller/reconcile/pytorch_world.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Json kMetric = {{"type", "External"}, {"external", {{"target", {{"averageValue", "2000m"}}}}}};

// The autoscaler of the plan of TrainJob `a`.
PlannedObject Scaler() {
  PlannedObject planned;
  planned.object = {{"apiVersion", "autoscaling/v2"},
                    {"kind", "HorizontalPodAutoscaler"},
                    {"metadata", {{"name", "a"}, {"labels", {{"jobset.sigs.k8s.io/jobset-name", "a"}}}}},
                    {"spec", {{"minReplicas", 1}, {"maxReplicas", 4}, {"metrics", {kMetric}}}}};
  planned.if_there = PlannedObject::IfThere::kUpdate;
  return planned;
}

PlannedObject Hosts() {
  PlannedObject planned;
  planned.object = {{"kind", "ConfigMap"}, {"metadata", {{"name", "a-hosts"}}}, {"data", {{"hostfile", "a-node-0"}}}};
  planned.if_there = PlannedObject::IfThere::kUpdate;
  return planned;
}

// `planned` as the API server shows it once it belongs to the job.
Json Stored(const PlannedObject& planned, const std::string& owner = "uid-a") {
  Json object = planned.object;
  object["metadata"]["ownerReferences"] =
      Json::array({{{"apiVersion", "v1"}, {"kind", "TrainJob"}, {"name", "a"}, {"uid", owner}, {"controller", true}}});
  return object;
}

TEST(Repair, AChangedFieldOfThePlanIsFound) {
  using Change = std::function<void(Json&)>;
  struct Row {
    const char* what;
    PlannedObject planned;
    Change change;  // of the stored object
    bool wrong;
  };
  const auto spec = [](const char* field, Json value) {
    return [field, value](Json& object) { object["spec"][field] = value; };
  };
  const Json more = {{"type", "Resource"}};
  Json same_amount = kMetric, other_amount = kMetric, default_added = kMetric;
  same_amount["external"]["target"]["averageValue"] = "2";
  other_amount["external"]["target"]["averageValue"] = "3";
  default_added["external"]["metric"] = {{"selector", nullptr}};
  PlannedObject fixed = Hosts();
  fixed.if_there = PlannedObject::IfThere::kBelongs;
  const Row rows[] = {
      {"as planned", Scaler(), [](Json&) {}, false},
      {"another limit", Scaler(), spec("maxReplicas", 9), true},
      {"no limit", Scaler(), [](Json& object) { object["spec"].erase("minReplicas"); }, true},
      {"a field that is not ours", Scaler(), spec("behavior", {{"scaleDown", {}}}), false},
      {"a label that is not ours", Scaler(), [](Json& object) { object["metadata"]["labels"]["team"] = "x"; }, false},
      {"a status", Scaler(),
       [](Json& object) {
         object["status"] = {{"currentReplicas", 3}};
       },
       false},
      {"another spelling", Scaler(), spec("metrics", {same_amount}), false},
      {"another amount", Scaler(), spec("metrics", {other_amount}), true},
      {"a default of the server", Scaler(), spec("metrics", {default_added}), false},
      {"one more metric", Scaler(), spec("metrics", {kMetric, more}), true},
      {"another's", Scaler(), [](Json& object) { object["metadata"]["ownerReferences"][0]["uid"] = "other"; }, true},
      {"being deleted", Scaler(),
       [&](Json& object) {
         object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
         object["spec"]["maxReplicas"] = 9;
       },
       false},
      {"another name", Scaler(), [](Json& object) { object["metadata"]["name"] = "b"; }, true},
      {"a ConfigMap as planned", Hosts(), [](Json&) {}, false},
      {"without its data", Hosts(), [](Json& object) { object.erase("data"); }, true},
      {"without a key", Hosts(), [](Json& object) { object["data"].erase("hostfile"); }, true},
      {"another value", Hosts(), [](Json& object) { object["data"]["hostfile"] = "a-node-1"; }, true},
      {"a key that is not ours", Hosts(), [](Json& object) { object["data"]["more"] = "x"; }, false},
      {"one that may not be changed", fixed, [](Json& object) { object.erase("data"); }, false},
  };
  for (const Row& row : rows) {
    Json object = Stored(row.planned);
    row.change(object);
    const auto read = ReadObject(object);
    ASSERT_TRUE(read.ok()) << row.what << ": " << read.status();
    const std::vector<ObservedObject> there = {*read};
    EXPECT_EQ(IsWrong(row.planned, Job().meta, &there), row.wrong) << row.what;
  }
}

TEST(Repair, AMissingObjectIsFoundIfItsKindIsFollowed) {
  const std::vector<ObservedObject> none;
  EXPECT_TRUE(IsWrong(Scaler(), Job().meta, &none));
  EXPECT_TRUE(IsWrong(Hosts(), Job().meta, &none));
  EXPECT_FALSE(IsWrong(Hosts(), Job().meta, nullptr)) << "nothing is followed";
  PlannedObject secret;
  secret.object = {{"kind", "Secret"}, {"metadata", {{"name", "a-token"}}}};
  EXPECT_FALSE(IsWrong(secret, Job().meta, &none)) << "Secrets are not followed";
}

// While Jobs run that need the object, and once in a pass.
TEST(Repair, HappensWhileJobsNeedTheObjectOnceInAPass) {
  TrainJobPlan plan = WithData();
  plan.objects = {Scaler(), Hosts()};
  plan.objects[1].for_initializers = true;
  std::vector<ObservedObject> there;
  Observed observed;
  observed.services = {HeadlessService()};
  observed.objects = &there;
  const auto actions = [&] { return Actions(Decide(Job(), plan, observed, kNow)); };

  observed.jobs = {There("a-dataset-initializer-0", 0, 1)};
  observed.pods = {Pod(observed.jobs[0], 0)};
  EXPECT_THAT(actions(), ElementsAre("object a-hosts")) << "the autoscaler comes with the trainer step";
  observed.jobs[0].complete = true;
  observed.pods[0].phase = "Succeeded";
  EXPECT_THAT(actions(), ElementsAre("object a-hosts", "object a", "create a-node-0"));
  observed.jobs.push_back(There("a-node-0"));
  EXPECT_THAT(actions(), ElementsAre("object a", "object a-hosts"));
  for (const PlannedObject& planned : plan.objects) there.push_back(*ReadObject(Stored(planned)));
  EXPECT_THAT(actions(), IsEmpty());
  there[0].meta.name = "gone";
  observed.jobs[1].complete = true;
  EXPECT_THAT(actions(), ::testing::Not(::testing::Contains("object a"))) << "it has ended";
}

// The controller reads no Secrets of jobs: the kubelet says that one is gone.
TEST(Repair, ASecretThatAPodMissesIsMadeAgainAndTheOtherPodsGoOn) {
  const std::string missing = "MountVolume.SetUp failed for volume \"muster-token\" : secret \"a-token\" not found";
  const struct {
    const char* what;
    std::string says;  // the kubelet, of pod 1
    bool ran;          // pod 1 has started since
    bool made;
  } rows[] = {
      {"it is gone", missing, false, true},
      {"it started in the end", missing, true, false},
      {"another one", Replaced(missing, "a-token", "keys"), false, false},
      {"a longer name", Replaced(missing, "a-token", "a-token2"), false, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    TrainJobPlan plan = TwoNodes();
    PlannedObject secret;
    secret.object = {{"kind", "Secret"}, {"metadata", {{"name", "a-token"}}}};
    secret.fill = PlannedObject::Fill::kToken;
    plan.objects = {secret};
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0")};
    observed.pods = {Pod(observed.jobs[0], 0), Pod(observed.jobs[0], 1)};
    observed.pods[0].ran = true;
    observed.pods[1].phase = "Pending";
    observed.pods[1].ran = row.ran;
    observed.pods[1].event = {.reason = "FailedMount", .message = row.says, .related = "", .last = kNow};
    const TrainJobDecision decision = Decide(Job(), plan, observed, kNow);
    EXPECT_EQ(Actions(decision), row.made ? std::vector<std::string>{"object a-token"} : std::vector<std::string>{});
    EXPECT_EQ(Reasons(decision), row.made ? std::vector<std::string>{"SecretLost"} : std::vector<std::string>{});
  }
}

// The names of the pods do not resolve by such a Service.
TEST(Repair, AServiceWhoseSelectorWasEditedIsDeletedAndMadeAgain) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.services[0].reaches_pods = false;
  observed.jobs = {There("a-node-0")};
  const auto actions = [&observed] { return Actions(Decide(Job(), TwoNodes(), observed, kNow)); };
  EXPECT_THAT(actions(), ElementsAre("delete service a"));
  observed.services[0].meta.deleted = kNow;
  EXPECT_THAT(actions(), IsEmpty());
  observed.services.clear();
  EXPECT_THAT(actions(), ElementsAre("service a"));

  PyTorchWorld world({.container = kTorchrun});
  world.Settle();
  ASSERT_FALSE(world.seen.services.empty());
  for (const ObservedService& service : world.seen.services) EXPECT_TRUE(service.reaches_pods) << service.meta.name;
  world.seen.services[0].reaches_pods = false;
  const std::string name = world.seen.services[0].meta.name;
  EXPECT_THAT(Actions(world.Pass()), ElementsAre("delete service " + name));
  EXPECT_THAT(Actions(world.Pass()), ElementsAre("service " + name));
}

// A controller that has just started does not know which objects it has made.
TEST(Repair, ASecretThatPodsHaveStartedWithIsNotMadeInPassing) {
  PyTorchParts parts;
  parts.container = kTorchrun;
  PyTorchWorld world(parts);
  world.Settle();
  const auto makes_secret = [&world] {
    const PyTorchDecision decision = world.Pass();
    return std::any_of(decision.actions.begin(), decision.actions.end(), [](const Action& action) {
      return action.kind == Action::Kind::kCreateObject && action.fill == PlannedObject::Fill::kToken;
    });
  };
  world.seen.has_objects = false;
  EXPECT_FALSE(makes_secret());
  for (ObservedPod& pod : world.seen.pods) pod.ran = false;
  world.seen.has_objects = false;
  EXPECT_TRUE(makes_secret());
}

}  // namespace
}  // namespace muster::controller
