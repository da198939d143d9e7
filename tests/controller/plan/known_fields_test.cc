#include "controller/plan/known_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "controller/api/yaml.h"

namespace muster::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Json YamlOf(const std::string& text) { return ReadYaml(text)->at(0).object; }

TEST(KnownFields, NamesThoseThatNobodyReads) {
  const Json job = YamlOf(R"(
spec:
  runtimRef: {name: a}
  trainer: {numNode: 1, somethingElse: 2, args: []}
  initializer: {dataset: {uri: a, storageUri: b}}
)");
  EXPECT_THAT(UnknownTrainJobFields(job),
              ElementsAre("spec.runtimRef: is no field of a TrainJob: it is ignored; the nearest is 'runtimeRef'",
                          "spec.trainer.numNode: is no field of a TrainJob: it is ignored; the nearest is 'numNodes'",
                          "spec.trainer.somethingElse: is no field of a TrainJob: it is ignored",
                          "spec.initializer.dataset.uri: is no field of a TrainJob: it is ignored"));
  EXPECT_THAT(UnknownTrainJobFields(YamlOf("{spec: [1]}")), IsEmpty());
  EXPECT_THAT(UnknownTrainJobFields(YamlOf("{spec: {trainer: 1}}")), IsEmpty());
}

// An object with every field of `schema`, down to `depth` levels.
Json Filled(const Json& schema, int depth) {
  Json object = Json::object();
  if (depth == 0 || !schema.contains("properties")) return object;
  for (const auto& [name, field] : schema["properties"].items()) object[name] = Filled(field, depth - 1);
  return object;
}

TEST(KnownFields, AreThoseOfTheResourceDefinition) {
  std::ifstream file("controller/manifests/base/crds/trainjobs.yaml");
  std::stringstream text;
  text << file.rdbuf();
  const Json definition = YamlOf(text.str());
  const Json& schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
  ASSERT_TRUE(schema["properties"]["spec"]["properties"].contains("trainer"));
  EXPECT_THAT(UnknownTrainJobFields(Filled(schema, 4)), IsEmpty());
}

}  // namespace
}  // namespace muster::controller
