// SPDX-License-Identifier: Apache-2.0
// Carries out actions on objects in memory.
#include "local/cluster/carry_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/plan/elastic.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::local {

using namespace controller;

namespace {

using ::testing::HasSubstr;
using Kind = Action::Kind;
using IfThere = PlannedObject::IfThere;

constexpr WallTime kNow{std::chrono::seconds(1'800'000'000)};

class CarryOutTest : public testing::Test {
 protected:
  CarryOutTest() {
    Make("{apiVersion: t/v1, kind: TrainJob, metadata: {name: t, namespace: ns}}");
    const auto owner = ReadMeta(*world_.Find("TrainJob", "t"));
    if (owner.ok()) owner_ = *owner;
  }

  void Make(std::string_view yaml) {
    const auto made = world_.Create(YamlOf(yaml), kNow);
    if (!made.ok()) ADD_FAILURE() << made.status();
  }

  Status Do(const Action& action) { return CarryOut(action, "TrainJob", owner_, kNow, &world_); }

  // An object of this kind, with this `data`, that the owner controls.
  Json Owned(const char* kind, const char* name, const char* data = "planned") const {
    Json object = {{"apiVersion", "v1"}, {"kind", kind}, {"metadata", OwnedMetadata("t/v1", "TrainJob", owner_, name)}};
    object["data"]["is"] = data;
    return object;
  }

  static std::function<Json()> Making(Json object) {
    return [object = std::move(object)] { return object; };
  }

  std::string UidOf(const char* kind, const char* name) const {
    const Json* object = world_.Find(kind, name);
    return object == nullptr ? "" : TextField(PartOf(*object, "metadata"), "uid");
  }

  World world_;
  Meta owner_;
};

TEST_F(CarryOutTest, ObjectsAreMadeOnce) {
  for (const auto& [kind, made] : {std::pair(Kind::kCreateService, "Service"), std::pair(Kind::kCreateJob, "Job"),
                                   std::pair(Kind::kCreatePod, "Pod"), std::pair(Kind::kCreateObject, "ConfigMap")}) {
    const Action action{.kind = kind, .name = "a", .object = Making(Owned(made, "a"))};
    EXPECT_TRUE(Do(action).ok()) << made;
    const std::string uid = UidOf(made, "a");
    EXPECT_NE(uid, "");
    const uint64_t before = world_.version();
    EXPECT_TRUE(Do(action).ok()) << made;
    EXPECT_EQ(UidOf(made, "a"), uid);
    EXPECT_EQ(world_.version(), before);
  }
}

TEST_F(CarryOutTest, OneOfTheNameThatIsThere) {
  struct Row {
    IfThere if_there;
    bool owned;
    const char* is;  // the object's data afterwards; empty: FailedPrecondition
  };
  for (const Row& row : std::vector<Row>{{IfThere::kBelongs, true, "old"},
                                         {IfThere::kUpdate, true, "planned"},
                                         {IfThere::kUse, true, "old"},
                                         {IfThere::kBelongs, false, ""},
                                         {IfThere::kUpdate, false, ""},
                                         {IfThere::kUse, false, "old"}}) {
    SCOPED_TRACE(fmt::format("{} {}", static_cast<int>(row.if_there), row.owned));
    Json old = Owned("ConfigMap", "c", "old");
    if (!row.owned) old["metadata"].erase("ownerReferences");
    ASSERT_TRUE(world_.Create(old, kNow).ok());
    const std::string uid = UidOf("ConfigMap", "c");
    const Status done = Do({.kind = Kind::kCreateObject,
                            .name = "c",
                            .object = Making(Owned("ConfigMap", "c")),
                            .if_there = row.if_there});
    if (row.is == std::string()) {
      EXPECT_TRUE(absl::IsFailedPrecondition(done)) << done;
      EXPECT_THAT(std::string(Message(done)), HasSubstr("the job creates a ConfigMap c"));
    } else {
      EXPECT_TRUE(done.ok()) << done;
      EXPECT_EQ(world_.Find("ConfigMap", "c")->at("data")["is"], row.is);
    }
    EXPECT_EQ(UidOf("ConfigMap", "c"), uid);
    world_.Delete("ConfigMap", "c", "", kNow);
  }
}

TEST_F(CarryOutTest, ATokenIsMade) {
  const Json secret = {{"apiVersion", "v1"}, {"kind", "Secret"}, {"metadata", {{"name", "s"}}}};
  ASSERT_TRUE(
      Do({.kind = Kind::kCreateObject, .name = "s", .object = Making(secret), .fill = PlannedObject::Fill::kToken})
          .ok());
  EXPECT_NE(
      PartOf(*world_.Find("Secret", "s"), "data").size() + PartOf(*world_.Find("Secret", "s"), "stringData").size(), 0);
}

TEST_F(CarryOutTest, JobsAndPodsAreChanged) {
  Make("{kind: Job, metadata: {name: j}, spec: {parallelism: 1, completions: 1, backoffLimit: 3}}");
  Make("{kind: Pod, metadata: {name: p}}");
  EXPECT_TRUE(Do({.kind = Kind::kScaleJob, .name = "j", .uid = UidOf("Job", "j"), .pods = 4}).ok());
  EXPECT_TRUE(Do({.kind = Kind::kSuspendJob, .name = "j", .uid = UidOf("Job", "j")}).ok());
  EXPECT_TRUE(Do({.kind = Kind::kAnnotatePod, .name = "p", .uid = UidOf("Pod", "p"), .pods = 4}).ok());
  EXPECT_EQ(world_.Find("Job", "j")->at("spec"),
            YamlOf("{parallelism: 4, completions: 4, backoffLimit: 3, suspend: true}"));
  EXPECT_EQ(PartOf(*world_.Find("Pod", "p"), "metadata", "annotations"), Json({{kNodesAnnotation, "4"}}));
}

TEST_F(CarryOutTest, ADeletedOrRecreatedObjectIsLeftAlone) {
  Make("{kind: Job, metadata: {name: j}, spec: {parallelism: 1}}");
  Make("{kind: Pod, metadata: {name: p}, status: {phase: Failed}}");
  Make("{kind: Service, metadata: {name: s}}");
  const uint64_t before = world_.version();
  for (const Kind kind : {Kind::kScaleJob, Kind::kSuspendJob, Kind::kAnnotatePod, Kind::kDeleteJob, Kind::kDeletePod,
                          Kind::kDropPod, Kind::kDeleteService, Kind::kDeleteObject, Kind::kDeleteOwner}) {
    for (const char* name : {"j", "p", "s", "t", "none"}) {
      const Action action{
          .kind = kind, .name = name, .uid = "older", .object = Making({{"kind", "Service"}}), .pods = 2};
      EXPECT_TRUE(Do(action).ok()) << static_cast<int>(kind) << name;
    }
  }
  EXPECT_EQ(world_.version(), before);
}

TEST_F(CarryOutTest, ObjectsAreDeleted) {
  struct Row {
    Kind action;
    const char* kind;
  };
  for (const Row& row : std::vector<Row>{{Kind::kDeleteJob, "Job"},
                                         {Kind::kDeletePod, "Pod"},
                                         {Kind::kDropPod, "Pod"},
                                         {Kind::kDeleteService, "Service"},
                                         {Kind::kDeleteObject, "ConfigMap"},
                                         {Kind::kDeleteOwner, "TrainJob"}}) {
    Make(fmt::format("{{kind: {}, metadata: {{name: gone}}, status: {{phase: Failed}}}}", row.kind));
    const Action action{
        .kind = row.action, .name = "gone", .uid = UidOf(row.kind, "gone"), .object = Making({{"kind", row.kind}})};
    EXPECT_TRUE(Do(action).ok());
    EXPECT_EQ(world_.Find(row.kind, "gone"), nullptr) << row.kind;
  }
  EXPECT_NE(world_.Find("TrainJob", "t"), nullptr);
}

TEST_F(CarryOutTest, APodOfAJobIsMadeFromItsTemplate) {
  Make(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns}, "
      "spec: {template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}}}");
  Action action{.kind = Kind::kCreatePodOfJob, .name = "j-2-x", .uid = UidOf("Job", "j"), .job = "j", .index = 2};
  ASSERT_TRUE(Do(action).ok());
  const Json* pod = world_.Find("Pod", "j-2-x");
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(TextField(PartOf(*pod, "metadata", "labels"), "a"), "b");
  EXPECT_EQ(world_.ControlledBy("Pod", action.uid).size(), 1);
  const uint64_t before = world_.version();
  EXPECT_TRUE(Do(action).ok()) << "it is there";
  action.name = "j-2-y";
  action.uid = "older";
  EXPECT_TRUE(Do(action).ok()) << "the Job has been recreated";
  action.job = "none";
  EXPECT_TRUE(Do(action).ok()) << "the Job has gone";
  EXPECT_EQ(world_.version(), before);
}

TEST_F(CarryOutTest, NoneOfAJobThatIsBeingDeleted) {
  Make("{apiVersion: batch/v1, kind: Job, metadata: {name: j, finalizers: [x/y]}, spec: {template: {spec: {}}}}");
  world_.Delete("Job", "j", "", kNow);
  EXPECT_TRUE(Do({.kind = Kind::kCreatePodOfJob, .name = "p", .uid = UidOf("Job", "j"), .job = "j"}).ok());
  EXPECT_EQ(world_.Find("Pod", "p"), nullptr);
}

TEST_F(CarryOutTest, ActionsOnOtherControllersObjectsAreRefused) {
  for (const Kind kind : {Kind::kAdoptPod, Kind::kSuspendJobSet, Kind::kResumeJobSet, Kind::kDeleteJobSet}) {
    EXPECT_TRUE(absl::IsInternal(Do({.kind = kind, .name = "t"})));
  }
}

}  // namespace
}  // namespace muster::local
