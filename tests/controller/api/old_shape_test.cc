// SPDX-License-Identifier: Apache-2.0
#include "controller/api/old_shape.h"

#include "base/text.h"
#include "controller/api/train_job.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::controller {
namespace {

Json JobWith(std::string_view spec) { return YamlOf(fmt::format("metadata: {{name: a}}\nspec: {{{}}}", spec)); }

NewShape Newest(const Json& object) {
  auto made = NewestShape(object);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.value_or(NewShape());
}

TEST(OldShape, TheNewestShapeStays) {
  for (std::string_view spec : {"", "trainer: {numProcPerNode: 4}", "runtimePatches: [{manager: muster.dev/v21}]",
                                "labels: null", "trainer: null", "trainer: 5"}) {
    const Json object = JobWith(spec);
    EXPECT_FALSE(HasOldShape(object)) << spec;
    const NewShape made = Newest(object);
    EXPECT_EQ(made.object, object);
    EXPECT_TRUE(made.warnings.empty());
  }
  EXPECT_FALSE(HasOldShape(Json()));
  EXPECT_FALSE(HasOldShape(Json{{"spec", 5}}));
  EXPECT_EQ(Newest(Json(5)).object, Json(5));
}

TEST(OldShape, NumProcPerNodeBecomesANumberOrAnAnnotation) {
  const NewShape number = Newest(JobWith("trainer: {numProcPerNode: \"4\", numNodes: 2}"));
  EXPECT_EQ(number.object, JobWith("trainer: {numProcPerNode: 4, numNodes: 2}"));
  EXPECT_EQ(number.warnings, std::vector<std::string>{
                                 "spec.trainer.numProcPerNode: '4' is taken as the number 4; write it without quotes"});
  for (std::string_view word : {"auto", "cpu", "gpu"}) {
    const NewShape made = Newest(JobWith(fmt::format("trainer: {{numProcPerNode: {}}}", word)));
    EXPECT_EQ(made.object,
              YamlOf(fmt::format("metadata: {{name: a, annotations: {{muster.dev/num-proc-per-node: {}}}}}\n"
                                 "spec: {{trainer: {{}}}}",
                                 word)));
    EXPECT_TRUE(made.warnings.empty());  // the newest shape has no field for these words
  }
}

TEST(OldShape, OverridesBecomeOnePatch) {
  const Json object = JobWith(R"(
  labels: {team: v}, annotations: {note: text},
  podSpecOverrides: [{targetJobs: [{name: node}], serviceAccountName: old, nodeSelector: {a: b}}],
  podTemplateOverrides: [
    {targetJobs: [{name: node}, {name: data}], metadata: {labels: {x: "1"}},
     spec: {serviceAccountName: new, containers: [{name: node, env: [{name: A, value: "1"}]}],
            tolerations: [{key: a}]}},
    {targetJobs: [{name: node}], metadata: {labels: {z: "2"}},
     spec: {containers: [{name: node, env: [{name: B, value: "2"}]}], tolerations: [{key: b}]}}])");
  const NewShape made = Newest(object);
  const Json patches = YamlOf(R"(
x:
- manager: muster.dev/v21
  trainingRuntimeSpec:
    template:
      metadata: {labels: {team: v}, annotations: {note: text}}
      spec:
        replicatedJobs:
        - name: node
          template:
            spec:
              template:
                metadata: {labels: {x: "1", z: "2"}}
                spec:
                  serviceAccountName: new
                  nodeSelector: {a: b}
                  containers: [{name: node, env: [{name: A, value: "1"}, {name: B, value: "2"}]}]
                  tolerations: [{key: b}]
        - name: data
          template:
            spec:
              template:
                metadata: {labels: {x: "1"}}
                spec:
                  serviceAccountName: new
                  containers: [{name: node, env: [{name: A, value: "1"}]}]
                  tolerations: [{key: a}]
)")["x"];
  EXPECT_EQ(made.object["spec"]["runtimePatches"], patches);
  EXPECT_EQ(made.warnings.size(), 4);
  EXPECT_EQ(made.warnings[3],
            "spec.podTemplateOverrides is of v2.1; the patch of manager muster.dev/v21 in spec.runtimePatches says the "
            "same");
  // The old fields stay, and a second conversion gives the same result.
  EXPECT_EQ(made.object["spec"]["podTemplateOverrides"], object["spec"]["podTemplateOverrides"]);
  EXPECT_TRUE(HasOldShape(made.object));
  EXPECT_EQ(Newest(made.object).object, made.object);
}

TEST(OldShape, ThePatchFollowsTheFields) {
  const Json others = YamlOf("x: [{manager: a/b}, {manager: c/d}]")["x"];
  Json object = JobWith("runtimePatches: [{manager: a/b}, {manager: c/d}], labels: {team: v}");
  object = Newest(object).object;
  ASSERT_EQ(object["spec"]["runtimePatches"].size(), 3);
  EXPECT_EQ(object["spec"]["runtimePatches"][0]["manager"], kOldShapeManager);  // the others come later, so they win

  // The patch keeps its place in the list, and the time that the webhook stamped.
  std::swap(object["spec"]["runtimePatches"][0], object["spec"]["runtimePatches"][2]);
  object["spec"]["runtimePatches"][2]["time"] = "2026-01-02T03:04:05Z";
  object["spec"]["labels"]["team"] = "w";
  object = Newest(object).object;
  const Json ours = object["spec"]["runtimePatches"][2];
  EXPECT_EQ(ours["trainingRuntimeSpec"]["template"]["metadata"]["labels"]["team"], "w");
  EXPECT_EQ(ours["time"], "2026-01-02T03:04:05Z");

  // A client that does not know the field drops it. The patch stays.
  Json dropped = object;
  dropped["spec"].erase("labels");
  EXPECT_EQ(Newest(dropped).object, dropped);

  // A client that empties the field removes the patch.
  object["spec"]["labels"] = Json::object();
  object = Newest(object).object;
  EXPECT_EQ(object["spec"]["runtimePatches"].size(), 2);
  EXPECT_TRUE(Newest(JobWith("podTemplateOverrides: []")).warnings.empty());
  EXPECT_FALSE(Newest(JobWith("podTemplateOverrides: []")).object["spec"].contains("runtimePatches"));
}

TEST(OldShape, RefusesWrongFieldsByTheirPath) {
  std::string many = "[";
  for (int i = 0; i < 101; ++i) many += "{},";
  const struct {
    std::string spec, message;
  } rows[] = {
      {"trainer: {numProcPerNode: tpu}",
       "spec.trainer.numProcPerNode: 'tpu' is neither a whole number from 1 to 65536 nor auto, cpu or gpu"},
      {"trainer: {numProcPerNode: \"0\"}",
       "spec.trainer.numProcPerNode: '0' is neither a whole number from 1 to 65536 nor auto, cpu or gpu"},
      {"trainer: {numProcPerNode: \"99999999999\"}",
       "spec.trainer.numProcPerNode: '99999999999' is neither a whole number from 1 to 65536 nor auto, cpu or gpu"},
      {"labels: 5", "spec.labels: 5 is not an object"},
      {"labels: {a: 1}", "spec.labels.a: 1 is not a string; put it in quotes"},
      {"runtimePatches: 5, labels: {}", "spec.runtimePatches: 5 is not a list"},
      {"podTemplateOverrides: {}", "spec.podTemplateOverrides: an object is not a list"},
      {"podTemplateOverrides: [5]", "spec.podTemplateOverrides[0]: 5 is not an object"},
      {"podTemplateOverrides: [{}]",
       "spec.podTemplateOverrides[0].targetJobs: it is missing; name the replicated jobs: [{name: node}]"},
      {"podTemplateOverrides: [{targetJobs: [{}]}]", "spec.podTemplateOverrides[0].targetJobs[0].name: it is missing"},
      {"podTemplateOverrides: [{targetJobs: [{name: m}], spec: 5}]",
       "spec.podTemplateOverrides[0].spec: 5 is not an object"},
      {"podTemplateOverrides: [{targetJobs: [{name: m}], spec: {containers: [{}]}}]",
       "spec.podTemplateOverrides[0]: spec.containers[0]: it has no name, by which it is merged"},
      {"podSpecOverrides: [{targetJobs: " + many + "]}]",
       "spec.podSpecOverrides[0].targetJobs: 101 items are more than 100"},
      {"podSpecOverrides: " + many + "]", "spec.podSpecOverrides: 101 items are more than 100"},
  };
  for (const auto& row : rows) EXPECT_EQ(Message(NewestShape(JobWith(row.spec)).status()), row.message) << row.spec;
  const Json annotated = YamlOf("metadata: {name: a, annotations: 5}\nspec: {trainer: {numProcPerNode: auto}}");
  EXPECT_EQ(Message(NewestShape(annotated).status()), "metadata.annotations: 5 is not an object");
}

}  // namespace
}  // namespace muster::controller
