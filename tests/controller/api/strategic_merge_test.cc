// SPDX-License-Identifier: Apache-2.0
#include "controller/api/strategic_merge.h"

#include "tests/controller/api/yaml_of.h"

namespace muster::controller {
namespace {

struct Row {
  std::string_view original, patch, merged;
};

void Check(const Row& row) {
  const auto merged = StrategicMerge(YamlOf(row.original), YamlOf(row.patch));
  ASSERT_TRUE(merged.ok()) << row.patch << merged.status();
  EXPECT_EQ(*merged, YamlOf(row.merged)) << row.original << "\n" << row.patch;
}

TEST(StrategicMerge, MapsAreMergedKeyByKey) {
  const Row rows[] = {
      {"{a: 1, b: 2}", "{b: 3, c: 4}", "{a: 1, b: 3, c: 4}"},
      {"{nodeSelector: {x: a, y: b}}", "{nodeSelector: {y: c}}", "{nodeSelector: {x: a, y: c}}"},
      {"{a: {x: 1}}", "{a: {x: null}}", "{a: {}}"},
      {"{a: 1}", "{a: null, b: null}", "{}"},
      {"{a: 1}", "{}", "{a: 1}"},
      {"{a: [1]}", "{a: {x: 1}}", "{a: {x: 1}}"},
      {"{}", "{a: {b: {c: null, d: 1}}}", "{a: {b: {d: 1}}}"},
      {"{a: {x: 1, y: 2}}", "{a: {$patch: replace, z: 3}}", "{a: {z: 3}}"},
      {"{a: {x: 1}, b: 1}", "{a: {$patch: delete}}", "{b: 1}"},
      {"{a: {x: 1}}", "{a: {$patch: merge, y: 1}}", "{a: {x: 1, y: 1}}"},
      {"{a: {x: 1, b: 2}}", "{a: {$retainKeys: [b, z], z: 3}}", "{a: {b: 2, z: 3}}"},
  };
  for (const auto& row : rows) Check(row);
}

TEST(StrategicMerge, ListsByKey) {
  const Row rows[] = {
      {"{containers: [{name: a, image: x}, {name: b}]}", "{containers: [{name: c}, {name: a, image: y}]}",
       "{containers: [{name: a, image: y}, {name: b}, {name: c}]}"},
      {"{replicatedJobs: [{name: a, replicas: 1}, {name: b}]}", "{replicatedJobs: [{name: b, replicas: 2}]}",
       "{replicatedJobs: [{name: a, replicas: 1}, {name: b, replicas: 2}]}"},
      {"{initContainers: [{name: a}]}", "{initContainers: [{name: a, env: [{name: E, value: v}]}]}",
       "{initContainers: [{name: a, env: [{name: E, value: v}]}]}"},
      {"{env: [{name: A, value: a}, {name: B, value: b}]}", "{env: [{name: B, value: c}, {name: C, value: d}]}",
       "{env: [{name: A, value: a}, {name: B, value: c}, {name: C, value: d}]}"},
      {"{env: [{name: A, value: a}]}", "{env: [{name: A, valueFrom: {fieldRef: {fieldPath: p}}}]}",
       "{env: [{name: A, valueFrom: {fieldRef: {fieldPath: p}}}]}"},
      {"{env: [{name: A, valueFrom: {fieldRef: {fieldPath: p}}}]}", "{env: [{name: A, value: \"\"}]}",
       "{env: [{name: A, value: \"\"}]}"},
      {"{env: [{name: A, value: a}]}", "{env: [{name: A}]}", "{env: [{name: A, value: a}]}"},
      {"{volumes: [{name: v, hostPath: {path: /a}}]}", "{volumes: [{name: v, emptyDir: {}}]}",
       "{volumes: [{name: v, emptyDir: {}}]}"},
      {"{volumes: [{name: v, emptyDir: {medium: Memory}}]}", "{volumes: [{name: v, emptyDir: {sizeLimit: 1Gi}}]}",
       "{volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 1Gi}}]}"},
      {"{volumeMounts: [{name: v, mountPath: /a}]}",
       "{volumeMounts: [{name: v, mountPath: /b}, {name: w, mountPath: /a}]}",
       "{volumeMounts: [{name: w, mountPath: /a}, {name: v, mountPath: /b}]}"},
      {"{ports: [{containerPort: 1, name: a}, {containerPort: 1, protocol: UDP}]}",
       "{ports: [{containerPort: 1, protocol: TCP, name: b}, {containerPort: 2}]}",
       "{ports: [{containerPort: 1, protocol: TCP, name: b}, {containerPort: 1, protocol: UDP}, {containerPort: 2}]}"},
      {"{imagePullSecrets: [{name: a}]}", "{imagePullSecrets: [{name: a}, {name: b}]}",
       "{imagePullSecrets: [{name: a}, {name: b}]}"},
      {"{schedulingGates: [{name: a}]}", "{schedulingGates: [{name: b}]}", "{schedulingGates: [{name: a}, {name: b}]}"},
      {"{}", "{containers: [{name: a}, {name: a, image: i}]}", "{containers: [{name: a, image: i}]}"},
      {"{containers: 5}", "{containers: [{name: a}]}", "{containers: [{name: a}]}"},
      {"{containers: [{image: nameless}]}", "{containers: [{name: a}]}",
       "{containers: [{image: nameless}, {name: a}]}"},
  };
  for (const auto& row : rows) Check(row);
}

TEST(StrategicMerge, OtherListsAreReplaced) {
  const Row rows[] = {
      {"{tolerations: [{key: a}]}", "{tolerations: [{key: b}]}", "{tolerations: [{key: b}]}"},
      {"{command: [a, b]}", "{command: [c]}", "{command: [c]}"},
      {"{args: [a]}", "{args: []}", "{args: []}"},
      {"{labels: {env: x}}", "{labels: {env: y}}", "{labels: {env: y}}"},
  };
  for (const auto& row : rows) Check(row);
}

TEST(StrategicMerge, DirectivesInLists) {
  const Row rows[] = {
      {"{env: [{name: A}, {name: B}]}", "{env: [{name: A, $patch: delete}]}", "{env: [{name: B}]}"},
      {"{env: [{name: A}]}", "{env: [{name: Z, $patch: delete}]}", "{env: [{name: A}]}"},
      {"{env: [{name: A}, {name: B}]}", "{env: [{$patch: replace}, {name: C}]}", "{env: [{name: C}]}"},
      {"{env: [{name: A, value: x}]}", "{env: [{name: A, $patch: replace, value: y}]}", "{env: [{name: A, value: y}]}"},
      {"{env: [{name: A}]}", "{$setElementOrder/env: [{name: B}], env: [{name: B}]}", "{env: [{name: A}, {name: B}]}"},
      {"{env: [{name: A}]}", "{env: null}", "{}"},
  };
  for (const auto& row : rows) Check(row);
}

TEST(StrategicMerge, RefusesUnknownDirectivesAndMissingKeys) {
  const struct {
    std::string_view patch, message;
  } rows[] = {
      {"{containers: [{image: x}]}", "containers[0]: it has no name, by which it is merged"},
      {"{spec: {containers: [{name: a, volumeMounts: [{name: v}]}]}}",
       "spec.containers[0].volumeMounts[0]: it has no mountPath, by which it is merged"},
      {"{containers: [5]}", "containers[0]: it has no name, by which it is merged"},
      {"{a: {$patch: remove}}", "a.$patch: 'remove' is not one of delete, replace, merge"},
      {"{a: {$patch: 5}}", "a.$patch: 5 is not one of delete, replace, merge"},
      {"{$deleteFromPrimitiveList/a: [x]}", "$deleteFromPrimitiveList/a: this directive is not known; leave it out"},
      {"{a: {$retainKeys: x}}", "a.$retainKeys: 'x' is not a list of names"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Message(StrategicMerge(YamlOf("{a: {b: 1}}"), YamlOf(row.patch)).status()), row.message) << row.patch;
  }
  Json deep = 1;
  for (int i = 0; i < 200; ++i) deep = Json{{"a", std::move(deep)}};
  EXPECT_FALSE(StrategicMerge(Json(), deep).ok());
}

TEST(StrategicMerge, TheFieldTellsTheKeys) {
  const Json original = YamlOf("x: [{name: a, replicas: 1}]")["x"], patch = YamlOf("x: [{name: b}]")["x"];
  EXPECT_EQ(*StrategicMerge(original, patch, "replicatedJobs"), YamlOf("x: [{name: a, replicas: 1}, {name: b}]")["x"]);
  EXPECT_EQ(*StrategicMerge(original, patch), patch);
  EXPECT_EQ(Message(StrategicMerge(original, Json::array({1}), "replicatedJobs").status()),
            "replicatedJobs[0]: it has no name, by which it is merged");
}

}  // namespace
}  // namespace muster::controller
