// SPDX-License-Identifier: Apache-2.0
// The objects of one run, call by call.
#include "local/cluster/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "base/iso_time.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::local {

using namespace controller;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr WallTime kNow{std::chrono::seconds(1'800'000'000)};
constexpr WallTime kLater = kNow + std::chrono::seconds(7);

// Creates an object and returns it as stored.
Json Made(World* world, std::string_view yaml) {
  const auto made = world->Create(YamlOf(yaml), kNow);
  if (!made.ok()) {
    ADD_FAILURE() << made.status();
    return Json();
  }
  return **made;
}

std::string Uid(const Json& object) { return TextField(PartOf(object, "metadata"), "uid"); }

// {kind: <kind>, metadata: {name: <name>}} that `owner` controls.
Json OwnedBy(const Json& owner, std::string_view kind, std::string_view name, bool controller = true) {
  Json object = {{"kind", kind}, {"metadata", {{"name", name}}}};
  object["metadata"]["ownerReferences"] = Json::array({{{"uid", Uid(owner)}, {"controller", controller}}});
  return object;
}

std::vector<std::string> Names(const std::vector<const Json*>& objects) {
  std::vector<std::string> names;
  for (const Json* object : objects) names.push_back(TextField(PartOf(*object, "metadata"), "name"));
  return names;
}

TEST(World, WhatACreatedObjectGets) {
  World world;
  const Json job =
      Made(&world,
           "{kind: Job, metadata: {name: a, namespace: ns, uid: mine, resourceVersion: '9', generation: 5, "
           "deletionTimestamp: '2026-01-01T00:00:00Z', labels: {zone: a}}, spec: {completions: 3}}");
  const Json& metadata = job["metadata"];
  EXPECT_NE(Uid(job), "");
  EXPECT_NE(Uid(job), "mine");
  EXPECT_EQ(metadata["creationTimestamp"], IsoMicroTime(kNow));
  EXPECT_EQ(metadata["resourceVersion"], "1");
  EXPECT_EQ(metadata["generation"], 1);
  EXPECT_FALSE(metadata.contains("deletionTimestamp"));
  EXPECT_EQ(metadata["labels"], Json({{"zone", "a"}}));
  EXPECT_EQ(job["spec"], Json({{"completions", 3}}));
  EXPECT_FALSE(job.contains("status"));
  EXPECT_EQ(*world.Find("Job", "a"), job);
  EXPECT_EQ(Made(&world, "{kind: Pod, metadata: {name: a}}")["status"], Json({{"phase", "Pending"}}));
  EXPECT_EQ(Made(&world, "{kind: Pod, metadata: {name: b}, status: {phase: Running}}")["status"]["phase"], "Running");
}

TEST(World, PodsOfAJobHaveItsLabels) {
  World world;
  const Json job = Made(&world, "{kind: Job, metadata: {name: a}, spec: {template: {metadata: {labels: {zone: a}}}}}");
  const Json expected = {{"zone", "a"},
                         {"job-name", "a"},
                         {"batch.kubernetes.io/job-name", "a"},
                         {"controller-uid", Uid(job)},
                         {"batch.kubernetes.io/controller-uid", Uid(job)}};
  EXPECT_EQ(job["spec"]["template"]["metadata"]["labels"], expected);
}

TEST(World, WhatIsNotCreated) {
  World world;
  Made(&world, "{kind: Job, metadata: {name: a}}");
  struct Row {
    const char* object;
    absl::StatusCode code;
    const char* message;
  };
  for (const Row& row : std::vector<Row>{
           {"{kind: Job, metadata: {name: a}, spec: {}}", absl::StatusCode::kAlreadyExists, "Job a exists already"},
           {"{metadata: {name: b}}", absl::StatusCode::kInvalidArgument, "kind: it is missing"},
           {"{kind: '', metadata: {name: b}}", absl::StatusCode::kInvalidArgument, "kind: it is missing"},
           {"{kind: Job, metadata: {}}", absl::StatusCode::kInvalidArgument, "metadata.name: it is missing"},
           {"{kind: Job}", absl::StatusCode::kInvalidArgument, "metadata"},
           {"{kind: Job, metadata: 5}", absl::StatusCode::kInvalidArgument, "metadata"},
       }) {
    const auto made = world.Create(YamlOf(row.object), kNow);
    EXPECT_EQ(made.status().code(), row.code) << row.object;
    EXPECT_THAT(std::string(Message(made.status())), HasSubstr(row.message)) << row.object;
  }
  EXPECT_EQ(world.version(), 1);
  EXPECT_THAT(Names(world.List("Job")), ElementsAre("a"));
}

TEST(World, ListsByKindInTheOrderOfNames) {
  World world;
  for (const char* name : {"b", "a-1", "a", "c"}) {
    Made(&world, fmt::format("{{kind: Pod, metadata: {{name: {}}}}}", name));
  }
  Made(&world, "{kind: PodGroup, metadata: {name: a}}");
  Made(&world, "{kind: Job, metadata: {name: a}}");
  EXPECT_THAT(Names(world.List("Pod")), ElementsAre("a", "a-1", "b", "c"));
  EXPECT_THAT(Names(world.List("PodGroup")), ElementsAre("a"));
  EXPECT_THAT(world.List("Po"), IsEmpty());
  EXPECT_EQ(world.Find("Pod", "d"), nullptr);
  EXPECT_EQ(world.Find("Service", "a"), nullptr);
}

TEST(World, AnUpdateKeepsWhatAnApiServerAdds) {
  World world;
  Json job = Made(&world, "{kind: Job, metadata: {name: a}, spec: {completions: 1}}");
  const std::string uid = Uid(job);
  job["status"]["active"] = 1;
  ASSERT_TRUE(world.Update(job, kLater).ok());
  EXPECT_EQ(world.Find("Job", "a")->at("metadata")["generation"], 1) << "no new spec";
  job["spec"]["completions"] = 2;
  job["metadata"].erase("uid");
  job["metadata"].erase("creationTimestamp");
  job["metadata"]["generation"] = 40;
  ASSERT_TRUE(world.Update(job, kLater).ok());
  const Json& known = *world.Find("Job", "a");
  EXPECT_EQ(Uid(known), uid);
  EXPECT_EQ(known["metadata"]["creationTimestamp"], IsoMicroTime(kNow));
  EXPECT_EQ(known["metadata"]["generation"], 2);
  EXPECT_EQ(known["metadata"]["resourceVersion"], "3");
  EXPECT_EQ(known["spec"]["completions"], 2);
  EXPECT_EQ(known["status"]["active"], 1);
}

TEST(World, AnUpdateOfWhatIsGoneOrAnotherOne) {
  World world;
  Json job = Made(&world, "{kind: Job, metadata: {name: a}}");
  world.Delete("Job", "a", "", kNow);
  EXPECT_TRUE(absl::IsNotFound(world.Update(job, kNow)));
  const Json anew = Made(&world, "{kind: Job, metadata: {name: a}}");
  EXPECT_NE(Uid(anew), Uid(job));
  job["spec"]["suspend"] = true;
  EXPECT_TRUE(absl::IsNotFound(world.Update(job, kNow)));
  EXPECT_EQ(*world.Find("Job", "a"), anew);
}

TEST(World, VersionsRiseByChangesAlone) {
  World world;
  const Json job = Made(&world, "{kind: Job, metadata: {name: a}}");
  const Json pod = Made(&world, "{kind: Pod, metadata: {name: a}}");
  struct Row {
    const char* what;
    std::function<void()> act;
    int rise;
  };
  Json changed = job;
  changed["status"]["active"] = 1;
  for (const Row& row : std::vector<Row>{
           {"an update to the same", [&] { EXPECT_TRUE(world.Update(job, kLater).ok()); }, 0},
           {"a change", [&] { EXPECT_TRUE(world.Update(changed, kLater).ok()); }, 1},
           {"the same change from an older copy", [&] { EXPECT_TRUE(world.Update(changed, kLater).ok()); }, 0},
           {"another uid", [&] { world.Delete("Job", "a", "other", kLater); }, 0},
           {"no such name", [&] { world.Delete("Job", "b", "", kLater); }, 0},
           {"a pod that has not ended", [&] { world.Delete("Pod", "a", Uid(pod), kLater); }, 1},
           {"the same again", [&] { world.Delete("Pod", "a", "", kLater + std::chrono::seconds(1)); }, 0},
           {"a Job", [&] { world.Delete("Job", "a", Uid(job), kLater); }, 1},
           {"the same again", [&] { world.Delete("Job", "a", Uid(job), kLater); }, 0},
       }) {
    const uint64_t before = world.version();
    row.act();
    EXPECT_EQ(world.version() - before, row.rise) << row.what;
  }
  EXPECT_EQ(world.Find("Job", "a"), nullptr);
  EXPECT_EQ(world.Find("Pod", "a")->at("metadata")["deletionTimestamp"], IsoMicroTime(kLater));
}

TEST(World, APodIsGoneOnceItHasEndedWithoutFinalizers) {
  struct Row {
    const char *kind, *phase;
    bool finalizer;
    const char* says;  // the phase of the Update that removes it; empty: Delete removes it
  };
  for (const Row& row : std::vector<Row>{{"Pod", "Pending", false, "Failed"},
                                         {"Pod", "Running", false, "Succeeded"},
                                         {"Pod", "Succeeded", false, ""},
                                         {"Pod", "Failed", false, ""},
                                         {"Pod", "Failed", true, "Failed"},
                                         {"Pod", "Running", true, "Failed"},
                                         {"Job", "", false, ""},
                                         {"Job", "Running", false, ""},
                                         {"Job", "", true, "any"}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", row.kind, row.phase, row.finalizer));
    World world;
    Json object = Made(&world, fmt::format("{{kind: {}, metadata: {{name: a, finalizers: {}}}, status: {{phase: "
                                           "'{}'}}}}",
                                           row.kind, row.finalizer ? "[x/y]" : "[]", row.phase));
    world.Delete(row.kind, "a", "", kLater);
    if (row.says == std::string()) {
      EXPECT_EQ(world.Find(row.kind, "a"), nullptr);
      continue;
    }
    ASSERT_NE(world.Find(row.kind, "a"), nullptr);
    EXPECT_EQ(world.Find(row.kind, "a")->at("metadata")["deletionTimestamp"], IsoMicroTime(kLater));
    object["metadata"]["labels"]["seen"] = "yes";  // an update by a copy that is older than the deletion
    ASSERT_TRUE(world.Update(object, kLater).ok());
    ASSERT_NE(world.Find(row.kind, "a"), nullptr);
    EXPECT_EQ(world.Find(row.kind, "a")->at("metadata")["deletionTimestamp"], IsoMicroTime(kLater));
    object["status"]["phase"] = row.says;
    object["metadata"].erase("finalizers");
    ASSERT_TRUE(world.Update(object, kLater).ok());
    EXPECT_EQ(world.Find(row.kind, "a"), nullptr);
  }
}

TEST(World, AFinalizerThatIsLeftKeepsIt) {
  World world;
  Json pod = Made(&world, "{kind: Pod, metadata: {name: a, finalizers: [x/y, x/z]}, status: {phase: Running}}");
  world.Delete("Pod", "a", "", kLater);
  pod["metadata"]["finalizers"] = {"x/z"};
  pod["status"]["phase"] = "Failed";
  ASSERT_TRUE(world.Update(pod, kLater).ok());
  EXPECT_NE(world.Find("Pod", "a"), nullptr);
  pod["metadata"]["finalizers"] = Json::array();
  ASSERT_TRUE(world.Update(pod, kLater).ok());
  EXPECT_EQ(world.Find("Pod", "a"), nullptr);
}

TEST(World, WhatAnObjectControlsGoesAfterIt) {
  World world;
  const Json owner = Made(&world, "{kind: TrainJob, metadata: {name: t}}");
  Json held = OwnedBy(owner, "Job", "held");
  held["metadata"]["finalizers"] = {"x/y"};
  const Json job = **world.Create(OwnedBy(owner, "Job", "j"), kNow);
  for (const Json& object : {held, OwnedBy(owner, "Service", "s"), OwnedBy(owner, "Secret", "k", false),
                             OwnedBy(job, "Pod", "p"), OwnedBy(job, "Pod", "q")}) {
    ASSERT_TRUE(world.Create(object, kNow).ok());
  }
  Json ended = *world.Find("Pod", "q");
  ended["status"]["phase"] = "Succeeded";
  ASSERT_TRUE(world.Update(ended, kNow).ok());
  EXPECT_THAT(Names(world.ControlledBy("Job", Uid(owner))), ElementsAre("held", "j"));
  EXPECT_THAT(Names(world.ControlledBy("Secret", Uid(owner))), IsEmpty());
  EXPECT_THAT(Names(world.ControlledBy("Pod", Uid(owner))), IsEmpty());
  EXPECT_THAT(Names(world.ControlledBy("Pod", Uid(job))), ElementsAre("p", "q"));
  world.Delete("TrainJob", "t", Uid(owner), kLater);
  EXPECT_EQ(world.Find("TrainJob", "t"), nullptr);
  EXPECT_THAT(Names(world.List("Service")), IsEmpty());
  EXPECT_THAT(Names(world.List("Secret")), ElementsAre("k")) << "it has no controller";
  EXPECT_THAT(Names(world.List("Job")), ElementsAre("held"));
  EXPECT_THAT(Names(world.List("Pod")), ElementsAre("p")) << "the one that has not ended";
  for (const Json* left : {world.Find("Job", "held"), world.Find("Pod", "p")}) {
    EXPECT_EQ(left->at("metadata")["deletionTimestamp"], IsoMicroTime(kLater));
  }
}

TEST(World, UidsAreNotUsedAgain) {
  World world;
  std::set<std::string> uids;
  for (int i = 0; i < 20; ++i) {
    uids.insert(Uid(Made(&world, "{kind: Job, metadata: {name: a}}")));
    world.Delete("Job", "a", "", kNow);
  }
  EXPECT_EQ(uids.size(), 20);
}

}  // namespace
}  // namespace muster::local
