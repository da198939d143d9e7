// SPDX-License-Identifier: Apache-2.0
// Each object is read from both encodings, and must mean the same. tests/controller/kube/data has what a real API
// server sends: lists of Jobs and pods that wait, run, restart and have ended.
#include "controller/kube/client/protobuf_object.h"

#include <gmock/gmock.h>

#include "tests/controller/api/yaml_of.h"
#include "tests/controller/kube/protobuf_writer.h"
#include "tests/controller/kube/same_objects.h"

namespace muster::controller {
namespace {

using protobuf::Envelope;
using protobuf::Number;
using protobuf::Text;
using testing::HasSubstr;

constexpr char kPod[] = R"(
apiVersion: v1
kind: Pod
metadata:
  name: a-node-0-1-x
  namespace: team
  uid: u
  resourceVersion: "12"
  generation: 3
  creationTimestamp: "2026-11-22T01:02:03Z"
  deletionTimestamp: "2026-11-22T01:03:03Z"
  deletionGracePeriodSeconds: 30
  labels: {batch.kubernetes.io/job-name: a-node-0, empty: ""}
  annotations: {muster.dev/nodes: "2"}
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: a-node-0, uid: j, controller: true}]
  finalizers: [batch.kubernetes.io/job-tracking, other]
spec:
  containers: [{name: node, resources: {limits: {memory: 64Mi}}}, {name: exporter}]
  initContainers: [{name: sidecar, restartPolicy: Always}]
  restartPolicy: Never
  nodeName: n1
  hostNetwork: true
  hostname: h
  schedulerName: default-scheduler
  schedulingGates: [{name: wait}]
status:
  phase: Running
  message: m
  reason: Evicted
  podIP: 10.0.0.1
  conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-11-22T01:02:04Z", reason: r, message: m}]
  initContainerStatuses: [{name: sidecar, restartCount: 1, state: {running: {startedAt: "2026-11-22T01:02:05Z"}}}]
  containerStatuses:
  - {name: node, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff, message: m}},
     lastState: {terminated: {exitCode: -3, reason: Error, message: "é", finishedAt: "2026-11-22T01:02:06Z"}}}
)";

constexpr char kJob[] = R"(
apiVersion: batch/v1
kind: Job
metadata: {name: a-node-0, resourceVersion: "9"}
spec:
  parallelism: 0
  completions: 4
  backoffLimit: 0
  backoffLimitPerIndex: 1
  suspend: true
  podFailurePolicy: {}
  successPolicy: {}
  template: {spec: {restartPolicy: Never}}
status:
  active: 1
  ready: 1
  succeeded: 2
  failed: 3
  completedIndexes: 0,2
  conditions: [{type: Failed, status: "True", lastTransitionTime: "2026-11-22T01:02:04Z", reason: r, message: m}]
)";

constexpr char kStatus[] = "{apiVersion: v1, kind: Status, message: expired, reason: Expired, code: 410}";

// The metadata of a pod with this message.
Json MetadataOf(const std::string& pod) {
  const auto read = ProtobufAsJson(Envelope("v1", "Pod", pod));
  EXPECT_TRUE(read.ok()) << read.status();
  Json json = *read;
  return json["metadata"];
}

TEST(ProtobufAsJson, GivesEachDeclaredField) {
  for (const char* text : {kPod, kJob, kStatus}) {
    const Json object = YamlOf(text);
    const auto read = ProtobufAsJson(protobuf::Object(object));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, object);
  }
}

TEST(ProtobufAsJson, ReadsWhatAnApiServerSends) {
  for (const char* kind : {"pods", "jobs"}) {
    const std::string name = std::string("tests/controller/kube/data/") + kind;
    EXPECT_EQ(Difference(name + ".pb", name + ".json"), "") << kind;
  }
}

TEST(ProtobufAsJson, SkipsWhatIsNotDeclared) {
  const std::string pod =
      Text(1, Text(1, "p") + Text(17, "managed") + Number(99, 1) + "\x9d\x06" + "1234" + "\x99\x06" + "12345678") +
      Text(77, "x");
  EXPECT_EQ(MetadataOf(pod), (Json{{"name", "p"}}));
  // A field of another type than the declared one is skipped, too.
  EXPECT_EQ(MetadataOf(Text(1, Number(1, 5) + Text(7, "x") + Number(8, 1) + Number(11, 1) + Number(13, 1))),
            Json::object());
}

TEST(ProtobufAsJson, ATimeThatIsNotSetIsNull) {
  for (const std::string& time : {std::string(), Number(1, 0), Number(1, -5), Number(1, int64_t{1} << 60)}) {
    EXPECT_EQ(MetadataOf(Text(1, Text(1, "p") + Text(8, time)))["creationTimestamp"], nullptr);
  }
}

TEST(ProtobufAsJson, ATextBecomesUtf8) {
  const std::string meta = std::string("a\xff") + "b";
  EXPECT_EQ(MetadataOf(Text(1, Text(1, meta) + Text(11, Text(1, "\xc3") + Text(2, "é")))),
            (Json{{"name", "a\uFFFDb"}, {"labels", {{"\uFFFD", "é"}}}}));
}

TEST(ProtobufAsJson, TheMemoryOfItsValuesHasABound) {
  std::string containers;
  for (int count = 0; count < 1000; ++count) containers += Text(2, "");
  const auto read = ProtobufAsJson(Envelope("v1", "Pod", Text(2, containers)), 100'000);
  EXPECT_TRUE(absl::IsResourceExhausted(read.status())) << read.status();
}

TEST(ReadProtobufObject, SaysWhatIsWrong) {
  const std::string pod = protobuf::Object(YamlOf(kPod));
  const std::string head("k8s\0", 4);
  const std::string too_long = "\xff\xff\xff\xff\x0f";  // a length of 4 GiB
  const struct {
    std::string bytes;
    std::string_view wanted;
  } rows[] = {
      {"", "it is not an object in Kubernetes' protobuf"},
      {"{}", "it is not an object in Kubernetes' protobuf"},
      {head, "it is of kind '' of ''"},
      {Envelope("v1", "Secret", ""), "it is of kind 'Secret' of 'v1', which is not read from protobuf"},
      {Envelope("batch/v1", "Pod", ""), "it is of kind 'Pod' of 'batch/v1'"},
      {head + Text(1, Text(1, "v1") + Text(2, "Pod")) + Text(3, "gzip"), "it is not an object in"},
      {Envelope("v1", "Pod", "\x0a" + too_long), "it is not an object in"},
      {Envelope("v1", "Pod", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "it is not an object in"},
      {Envelope("v1", "Pod", Text(1, "\x0b")), "it is not an object in"},  // a group
      {Envelope("v1", "Pod", Text(1, Text(11, "\x0a\x05"))), "it is not an object in"},
      {Envelope("v1", "Pod", Text(1, Text(8, "\x08"))), "it is not an object in"},
      {head + "\x0a" + too_long, "it is not an object in"},
  };
  for (const auto& row : rows) {
    const auto read = ReadProtobufObject(row.bytes);
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << row.wanted;
    EXPECT_THAT(std::string(Message(read.status())), HasSubstr(row.wanted));
  }
  const size_t message = pod.find("a-node-0-1-x");
  for (size_t cut = message; cut + 4 < pod.size(); ++cut) EXPECT_FALSE(ReadProtobufObject(pod.substr(0, cut)).ok());
  for (size_t cut = 0; cut < message; ++cut) (void)ReadProtobufObject(pod.substr(0, cut));
}

TEST(ReadProtobufEvent, ReadsTypeAndObject) {
  const Json pod = YamlOf(kPod);
  const std::string bytes = protobuf::Event("ADDED", protobuf::Object(pod));
  const auto read = ReadProtobufEvent(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->type, "ADDED");
  Json object = *read->object.ToJson();
  object.update({{"apiVersion", "v1"}, {"kind", "Pod"}});
  EXPECT_EQ(object, pod);
  EXPECT_FALSE(ReadProtobufEvent("").ok());
  EXPECT_FALSE(ReadProtobufEvent("\x0a\x7f").ok());
}

TEST(ReadProtobufEvent, ABeginningHasWhatIsComplete) {
  const std::string event = protobuf::Event("ADDED", protobuf::Object(YamlOf(kPod)));
  const size_t known = event.find("12") + 2;  // after name, namespace, uid and resourceVersion
  for (size_t cut = known; cut <= event.size(); ++cut) {
    const auto read = ReadProtobufEvent(std::string_view(event).substr(0, cut), false);
    ASSERT_TRUE(read.ok()) << cut << ' ' << read.status();
    EXPECT_EQ(read->object.Part("metadata").Text("name"), "a-node-0-1-x") << cut;
    EXPECT_EQ(read->object.Part("metadata").Text("resourceVersion"), "12") << cut;
  }
  for (size_t cut = 0; cut < known; ++cut) {
    const auto read = ReadProtobufEvent(std::string_view(event).substr(0, cut), false);
    EXPECT_EQ(read.ok() ? read->object.Part("metadata").Text("resourceVersion") : "", "") << cut;
  }
}

}  // namespace
}  // namespace muster::controller
