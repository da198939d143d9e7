// SPDX-License-Identifier: Apache-2.0
#include "controller/api/meta.h"

#include "tests/controller/api/yaml_of.h"

namespace muster::controller {
namespace {

TEST(Meta, ReadsAllFields) {
  const auto meta = ReadMeta(YamlOf(R"(
metadata:
  name: digits
  namespace: vision
  uid: 1-2
  resourceVersion: "77"
  generation: 3
  creationTimestamp: 2026-01-02T03:04:05Z
  deletionTimestamp: 2026-01-02T03:04:06.5Z
  labels: {app: a, gone: null}
  annotations: {note: text}
  ownerReferences:
  - {apiVersion: v1, kind: A, name: a, uid: ua}
  - {apiVersion: v2, kind: B, name: b, uid: ub, controller: true}
)"));
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_EQ(meta->name, "digits");
  EXPECT_EQ(meta->ns, "vision");
  EXPECT_EQ(meta->uid, "1-2");
  EXPECT_EQ(meta->resource_version, "77");
  EXPECT_EQ(meta->generation, 3);
  ASSERT_TRUE(meta->created && meta->deleted);
  EXPECT_EQ(*meta->deleted - *meta->created, std::chrono::milliseconds(1500));
  EXPECT_EQ(meta->Label("app"), "a");
  EXPECT_EQ(meta->Label("gone"), "");
  EXPECT_EQ(meta->labels.size(), 1);
  EXPECT_EQ(meta->Annotation("note"), "text");
  EXPECT_EQ(meta->Annotation("app"), "");
  ASSERT_NE(meta->Controller(), nullptr);
  EXPECT_EQ(*meta->Controller(), (OwnerReference{"v2", "B", "b", "ub", true}));
}

TEST(Meta, NeedsANameOnly) {
  const auto meta = ReadMeta(YamlOf("metadata: {name: a, creationTimestamp: null}"));
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_FALSE(meta->created || meta->deleted);
  EXPECT_EQ(meta->Controller(), nullptr);
}

TEST(Meta, RefusesWrongFieldsByTheirPath) {
  const struct {
    std::string_view yaml, message;
  } rows[] = {
      {"{}", "metadata.name: it is missing"},
      {"metadata: {}", "metadata.name: it is missing"},
      {"metadata: x", "metadata: 'x' is not an object"},
      {"metadata: [x]", "metadata: a list is not an object"},
      {"metadata: {name: 5}", "metadata.name: 5 is not a string; put it in quotes"},
      {"metadata: {name: {}}", "metadata.name: an object is not a string"},
      {"metadata: {name: a, labels: {x: 1}}", "metadata.labels.x: 1 is not a string; put it in quotes"},
      {"metadata: {name: a, labels: {x: yes}}", "metadata.labels.x: true is not a string; put it in quotes"},
      {"metadata: {name: a, labels: {\"x\\ny\": 1}}", "metadata.labels.x\\x0ay: 1 is not a string; put it in quotes"},
      {"metadata: {name: a, annotations: [1]}", "metadata.annotations: a list is not an object"},
      {"metadata: {name: a, generation: -1}", "metadata.generation: -1 is less than 0"},
      {"metadata: {name: a, creationTimestamp: noon}",
       "metadata.creationTimestamp: 'noon' is not a time; write it as 2026-11-22T01:02:03Z"},
      {"metadata: {name: a, ownerReferences: {}}", "metadata.ownerReferences: an object is not a list"},
      {"metadata: {name: a, ownerReferences: [1]}", "metadata.ownerReferences[0]: 1 is not an object"},
      {"metadata: {name: a, ownerReferences: [{controller: 1}]}",
       "metadata.ownerReferences[0].controller: 1 is neither true nor false"},
  };
  for (const auto& row : rows) EXPECT_EQ(Message(ReadMeta(YamlOf(row.yaml)).status()), row.message) << row.yaml;
  EXPECT_EQ(Message(ReadMeta(Json()).status()), "null is not an object");
  EXPECT_EQ(Message(ReadMeta(Json("x")).status()), "'x' is not an object");
}

TEST(Meta, OwnerReference) {
  Meta owner;
  owner.name = "a";
  owner.uid = "u";
  const Json expected = {{"apiVersion", "v"}, {"kind", "K"},        {"name", "a"},
                         {"uid", "u"},        {"controller", true}, {"blockOwnerDeletion", true}};
  EXPECT_EQ(OwnerReferenceTo("v", "K", owner), expected);
}

}  // namespace
}  // namespace muster::controller
