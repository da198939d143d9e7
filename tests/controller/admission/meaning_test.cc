// SPDX-License-Identifier: Apache-2.0
#include "controller/admission/meaning.h"

#include "tests/controller/admission/requests.h"

namespace muster::controller {
namespace {

TEST(Meaning, IgnoresEmptyFieldsAndSpellingsOfNumbers) {
  struct Row {
    std::string one, other;
    bool same;
  };
  for (const Row& row : std::vector<Row>{
           {"{}", "{a: null, b: '', c: [], d: {}, e: {f: {}}}", true},
           {"{a: 1}", "{a: 1.0}", true},
           {"{a: 0}", "{}", false},
           {"{a: false}", "{}", false},
           {"{a: [x, y]}", "{a: [y, x]}", false},
           {"{a: [x, '']}", "{a: [x]}", false},
           {"{a: [{b: 1, c: ''}]}", "{a: [{b: 1}]}", true},
           {"{a: '1'}", "{a: 1}", false},
           {"{a: {b: 1}}", "{a: [1]}", false},
           {"{resources: {limits: {cpu: 1000m}}}", "{resources: {limits: {cpu: 1}, requests: {}}}", true},
           {"{resourcesPerNode: {limits: {memory: 1Gi}}}", "{resourcesPerNode: {limits: {memory: 1024Mi}}}", true},
           {"{resourcesPerNode: {limits: {cpu: 1}}}", "{resourcesPerNode: {limits: {cpu: 2}}}", false},
           {"{resourcesPerNode: {limits: {cpu: x}}}", "{resourcesPerNode: {limits: {cpu: x}}}", true},
           {"{image: 1000m}", "{image: '1'}", false},
       }) {
    const Json one = YamlOf(row.one), other = YamlOf(row.other);
    EXPECT_EQ(SameMeaning(&one, &other), row.same) << row.one << " " << row.other;
    EXPECT_EQ(SameMeaning(&other, &one), row.same) << row.one << " " << row.other;
  }
  const Json empty = YamlOf("{a: {}}");
  EXPECT_TRUE(SameMeaning(nullptr, &empty));
}

TEST(Meaning, DifferingNamesTheFieldsThatDiffer) {
  const Json one = YamlOf("{a: 1, b: 2, c: '', resourcesPerNode: {limits: {cpu: 2000m}}}");
  const Json other = YamlOf("{a: 1, b: 3, d: x, resourcesPerNode: {limits: {cpu: 2}}}");
  EXPECT_EQ(Differing(&one, &other), (std::set<std::string>{"b", "d"}));
  EXPECT_EQ(Differing(nullptr, &other), (std::set<std::string>{"a", "b", "d", "resourcesPerNode"}));
}

TEST(Meaning, OfTheRuntimeReference) {
  EXPECT_EQ(RuntimeRefOf(TrainJobOf("{}")), (RuntimeRef{.name = "runtime"}));
  EXPECT_EQ(RuntimeRefOf(TrainJobOf("{runtimeRef: {kind: TrainingRuntime, apiGroup: x}}")),
            (RuntimeRef{.api_group = "x", .kind = "TrainingRuntime", .name = "runtime"}));
  EXPECT_EQ(RuntimeRefOf(Json::array()), RuntimeRef());
}

}  // namespace
}  // namespace muster::controller
