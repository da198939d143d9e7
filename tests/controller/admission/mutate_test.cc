// SPDX-License-Identifier: Apache-2.0
#include "controller/admission/mutate.h"

#include "base/iso_time.h"
#include "tests/controller/admission/requests.h"

namespace muster::controller {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const WallTime kNow = WallTime(std::chrono::seconds(1'700'000'000));
const std::string kStamp = IsoTime(kNow);

Json RuntimeOf(std::string_view policy) {
  Json runtime =
      YamlOf(R"({apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: runtime},
    spec: {template: {spec: {replicatedJobs: [{name: node, template: {metadata: {labels: {
    trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {containers: [
    {name: node, image: x}]}}}}}]}}}})");
  runtime["spec"]["mlPolicy"] = YamlOf(policy);
  return runtime;
}
const Json kElastic = RuntimeOf("{torch: {elasticPolicy: {minNodes: 2, maxNodes: 8}}}");

// The object that the API server stores. Checks that a second review, some seconds later, changes nothing.
Json Stored(const Json& object, const Json& old_object = Json(), const Json* runtime = nullptr) {
  AdmissionRequest request = RequestOf(old_object.is_null() ? "CREATE" : "UPDATE", "trainjobs", object, old_object);
  const Verdict verdict = MutateTrainJob(request, runtime, kNow);
  EXPECT_EQ(Said(verdict), "");
  request.object = object.patch(verdict.patch);
  EXPECT_THAT(MutateTrainJob(request, runtime, kNow + std::chrono::seconds(9)).patch, IsEmpty());
  return request.object;
}

std::string Patch(const std::string& manager, const std::string& selector, const std::string& time = "") {
  return fmt::format("{{manager: {}, {}trainingRuntimeSpec: {{template: {{metadata: {{labels: {{a: {}}}}}}}}}}}",
                     manager, time.empty() ? "" : fmt::format("time: '{}', ", time), selector);
}

TEST(Mutate, TheNewestShapeStaysAsItIs) {
  const Json given = TrainJobOf("{trainer: {numNodes: 2, numProcPerNode: 4}, suspend: true}");
  EXPECT_EQ(Stored(given), given);
}

TEST(Mutate, TheOldShapeBecomesTheNewest) {
  const Json given = TrainJobOf(R"({trainer: {numProcPerNode: auto}, labels: {team: a},
    podTemplateOverrides: [{targetJobs: [{name: node}], spec: {nodeSelector: {x: y}}}]})");
  const Json stored = Stored(given);
  EXPECT_EQ(stored["metadata"]["annotations"][kNumProcAnnotation], "auto");
  EXPECT_EQ(stored["spec"]["trainer"], Json::object());
  ASSERT_EQ(stored["spec"]["runtimePatches"].size(), 1);
  EXPECT_EQ(stored["spec"]["runtimePatches"][0]["manager"], "muster.dev/v21");
  EXPECT_EQ(stored["spec"]["runtimePatches"][0]["time"], kStamp);
  EXPECT_EQ(stored["spec"]["podTemplateOverrides"], given["spec"]["podTemplateOverrides"]);
  const Verdict verdict = MutateTrainJob(RequestOf("CREATE", "trainjobs", given), nullptr, kNow);
  EXPECT_THAT(verdict.warnings, ElementsAre(HasSubstr("spec.labels"), HasSubstr("spec.podTemplateOverrides")));
}

TEST(Mutate, WhatIsNoTrainJobIsRefused) {
  EXPECT_THAT(Said(MutateTrainJob(RequestOf("CREATE", "trainjobs", TrainJobOf("{trainer: {numProcPerNode: many}}")),
                                  nullptr, kNow)),
              HasSubstr("422 spec.trainer.numProcPerNode: 'many'"));
  for (const char* spec : {"{runtimePatches: text}", "{runtimePatches: [5]}", "{trainer: [x]}"}) {
    EXPECT_EQ(Said(MutateTrainJob(RequestOf("CREATE", "trainjobs", TrainJobOf(spec)), &kElastic, kNow)), "") << spec;
  }
  EXPECT_EQ(Said(MutateTrainJob(RequestOf("CREATE", "trainjobs", Json{{"spec", 5}, {"metadata", Json::object()}}),
                                nullptr, kNow)),
            "");
}

TEST(Mutate, NumberOfNodesOfAnElasticJob) {
  const Json fixed = RuntimeOf("{numNodes: 3, torch: {}}"), broken = RuntimeOf("{torch: 5}");
  struct Row {
    std::string operation, given, before;
    const Json* runtime;
    Json nodes;
  };
  for (const Row& row : std::vector<Row>{
           {"CREATE", "{}", "{}", &kElastic, 8},
           {"CREATE", "{trainer: {image: x}}", "{}", &kElastic, 8},
           {"CREATE", "{trainer: {numNodes: 4}}", "{}", &kElastic, 4},
           {"CREATE", "{}", "{}", &fixed, Json()},
           {"CREATE", "{}", "{}", &broken, Json()},
           {"CREATE", "{}", "{}", nullptr, Json()},
           {"UPDATE", "{}", "{trainer: {numNodes: 5}}", &kElastic, 5},
           {"UPDATE", "{}", "{trainer: {numNodes: 5}}", &fixed, Json()},
           {"UPDATE", "{}", "{}", &kElastic, Json()},
       }) {
    const bool update = row.operation == "UPDATE";
    const Json stored = Stored(TrainJobOf(row.given), update ? TrainJobOf(row.before) : Json(), row.runtime);
    const Json trainer = stored["spec"].value("trainer", Json::object());
    EXPECT_EQ(trainer.value("numNodes", Json()), row.nodes) << row.operation << row.given;
  }
  EXPECT_TRUE(MutationNeedsRuntime(RequestOf("CREATE", "trainjobs", TrainJobOf("{}"))));
  EXPECT_FALSE(MutationNeedsRuntime(RequestOf("CREATE", "trainjobs", TrainJobOf("{trainer: {numNodes: 4}}"))));
  EXPECT_FALSE(MutationNeedsRuntime(RequestOf("UPDATE", "trainjobs", TrainJobOf("{}"), TrainJobOf("{}"))));
}

TEST(Mutate, TimesOfPatches) {
  constexpr char kEarly[] = "2020-01-01T00:00:00Z", kGiven[] = "2021-01-01T00:00:00Z";
  struct Row {
    std::string what, given, before;  // entries of runtimePatches
    Json time;
  };
  for (const Row& row : std::vector<Row>{
           {"created without a time", Patch("a.b/c", "x"), "", kStamp},
           {"created with a time", Patch("a.b/c", "x", kGiven), "", kGiven},
           {"new manager", Patch("a.b/c", "x"), Patch("a.b/d", "x", kEarly), kStamp},
           {"new manager with a time", Patch("a.b/c", "x", kGiven), Patch("a.b/d", "x", kEarly), kGiven},
           {"unchanged", Patch("a.b/c", "x"), Patch("a.b/c", "x", kEarly), kEarly},
           {"unchanged, with another time", Patch("a.b/c", "x", kGiven), Patch("a.b/c", "x", kEarly), kEarly},
           {"unchanged, without any time", Patch("a.b/c", "x", kGiven), Patch("a.b/c", "x"), Json()},
           {"changed", Patch("a.b/c", "z", kEarly), Patch("a.b/c", "x", kEarly), kStamp},
           {"changed, with another time", Patch("a.b/c", "z", kGiven), Patch("a.b/c", "x", kEarly), kStamp},
           {"changed, with a time long ago", Patch("a.b/c", "z", "1010-01-01T00:00:00Z"), Patch("a.b/c", "x"), kStamp},
           {"changed, with a time to come", Patch("a.b/c", "z", "2999-01-01T00:00:00Z"), Patch("a.b/c", "x"), kStamp},
       }) {
    const Json given = TrainJobOf(fmt::format("{{runtimePatches: [{}]}}", row.given));
    const bool created = row.what.starts_with("created");
    const Json stored =
        Stored(given, created ? Json() : TrainJobOf(fmt::format("{{runtimePatches: [{}]}}", row.before)));
    EXPECT_EQ(stored["spec"]["runtimePatches"][0].value("time", Json()), row.time) << row.what;
  }
}

TEST(Mutate, TheOldShapeGivenAgainChangesNothing) {
  const Json given = TrainJobOf("{annotations: {cost: a}, trainer: {numProcPerNode: gpu}}");
  const Json stored = Stored(given);
  AdmissionRequest again = RequestOf("UPDATE", "trainjobs", given, stored);
  const Verdict verdict = MutateTrainJob(again, nullptr, kNow + std::chrono::hours(1));
  EXPECT_EQ(given.patch(verdict.patch), stored);
}

TEST(Mutate, FieldsThatANewerClientDropsArePutBack) {
  const std::string fields = "labels: {a: x}, podTemplateOverrides: []";
  const std::string patches = "runtimePatches: [" + Patch("muster.dev/v21", "x") + "]";
  const std::string changed = "runtimePatches: [" + Patch("muster.dev/v21", "y") + "]";
  const std::string another = "runtimePatches: [" + Patch("c.d/e", "z") + "]";
  struct Row {
    std::string what, before, given;
    bool kept;
  };
  for (const Row& row : std::vector<Row>{
           {"stored before Muster came", fields, "suspend: true", true},
           {"the same, with another patch", fields, another, true},
           {"with the patch", fields + ", " + patches, patches, true},
           {"an older client knows no patches", fields + ", " + patches, "suspend: true", false},
           {"the patch is changed", fields + ", " + patches, changed, false},
           {"the patch is made", fields, patches, false},
           {"one of them stays", fields + ", " + patches, "podTemplateOverrides: [], " + patches, false},
           {"they are written empty", fields + ", " + patches, "labels: {}, " + patches, false},
           {"there were none", "suspend: true", "suspend: false", false},
       }) {
    const auto job = [](const std::string& spec) { return TrainJobOf(fmt::format("{{{}}}", spec)); };
    const Json stored = Stored(job(row.given), job(row.before));
    EXPECT_EQ(stored["spec"].value("labels", Json::object()), row.kept ? Json({{"a", "x"}}) : Json::object())
        << row.what;
    const Verdict verdict =
        MutateTrainJob(RequestOf("UPDATE", "trainjobs", job(row.given), job(row.before)), nullptr, kNow);
    const auto says = Contains(HasSubstr("to remove one, set it to [] or {}"));
    if (row.kept) {
      EXPECT_THAT(verdict.warnings, says) << row.what;
      EXPECT_EQ(stored["spec"]["runtimePatches"][0]["manager"], "muster.dev/v21") << row.what;
    } else {
      EXPECT_THAT(verdict.warnings, Not(says)) << row.what;
    }
  }
}

TEST(Mutate, AJobThatIsBeingDeletedStaysAsItIs) {
  const Json given = TrainJobOf("{labels: {a: b}}", "{metadata: {deletionTimestamp: '2020-01-01T00:00:00Z'}}");
  EXPECT_THAT(MutateTrainJob(RequestOf("UPDATE", "trainjobs", given, given), nullptr, kNow).patch, IsEmpty());
}

}  // namespace
}  // namespace muster::controller
