// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/pod_rules.h"

#include <gmock/gmock.h>

#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

using ::testing::StartsWith;

// The complaint about a pod with this spec; empty: there is none.
std::string Said(std::string_view spec, std::string_view metadata = "{}", PodOwner owner = PodOwner::kJob) {
  const Json pod_template = {{"metadata", YamlOf(metadata)}, {"spec", YamlOf(spec)}};
  return std::string(Message(CheckPodRules(pod_template, owner, "p")));
}

// `fields`: of a container, in a pod with the volumes v and w.
std::string OfContainer(std::string_view fields) {
  Json container = YamlOf(fields);
  if (!container.contains("name")) container["name"] = "c";
  const Json spec = {{"volumes", YamlOf("x: [{name: v, emptyDir: {}}, {name: w}]")["x"]},
                     {"containers", Json::array({container})}};
  return std::string(Message(CheckPodRules({{"spec", spec}}, PodOwner::kJob, "p")));
}

TEST(PodRules, WhatTheApiServerAccepts) {
  for (const char* fields :
       {"{}", "{image: i, imagePullPolicy: Never, terminationMessagePolicy: FallbackToLogsOnError}",
        "{ports: [{containerPort: 1}, {containerPort: 2, protocol: SCTP}]}",
        "{env: [{name: A.b-c, value: \"\"}, {name: B, valueFrom: {fieldRef: {fieldPath: x}}}]}",
        "{env: [{name: B, value: \"\", valueFrom: {fieldRef: {fieldPath: x}, secretKeyRef: null}}]}",
        "{resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1000m, memory: 2Gi, nvidia.com/gpu: 8}}}",
        "{resources: {requests: {nvidia.com/gpu: 8}, limits: {nvidia.com/gpu: \"8\"}}}",
        "{resources: {requests: {ephemeral-storage: 1Gi, pod-level.kubernetes.io/x: 1}}}",
        "{volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /b, subPath: a/b..c}]}",
        "{volumeMounts: [{name: v, mountPath: \"/a:b\"}]}",
        "{volumeMounts: [{name: w, mountPath: /a, subPathExpr: $(A)/b}]}"}) {
    EXPECT_EQ(OfContainer(fields), "") << fields;
  }
  EXPECT_EQ(Said("{nodeSelector: {example.com/zone: A_1.b, x: \"\"}, dnsPolicy: None, restartPolicy: OnFailure}",
                 "{labels: {a.b/C_d.e: x}, annotations: {any: \"a b\"}}"),
            "");
  EXPECT_EQ(Said("{restartPolicy: Always}", "{}", PodOwner::kItself), "");
}

TEST(PodRules, WhatTheApiServerRefuses) {
  struct Row {
    const char *fields, *said;
  };
  for (const Row& row :
       {Row{"{name: C}", "p.spec.containers[0].name: 'C' is not a DNS label"},
        {"{imagePullPolicy: Sometimes}",
         "p.spec.containers[0].imagePullPolicy: 'Sometimes' is not one of Always, IfNotPresent, Never"},
        {"{terminationMessagePolicy: Log}", "p.spec.containers[0].terminationMessagePolicy: 'Log' is not one of File"},
        {"{ports: [{containerPort: 1, protocol: HTTP}]}",
         "p.spec.containers[0].ports[0].protocol: 'HTTP' is not one of TCP"},
        {"{env: [{name: a=b}]}", "p.spec.containers[0].env[0].name: 'a=b' has a '='"},
        {"{env: [{name: a, value: b, valueFrom: {fieldRef: {}}}]}",
         "p.spec.containers[0].env[0].valueFrom: there is a value, too"},
        {"{env: [{name: a, valueFrom: {}}]}", "p.spec.containers[0].env[0].valueFrom: it needs one source"},
        {"{env: [{name: a, valueFrom: {fieldRef: {}, secretKeyRef: {}}}]}",
         "p.spec.containers[0].env[0].valueFrom: it needs one source"},
        {"{resources: {requests: {cpu: 4}, limits: {cpu: 1500m}}}",
         "p.spec.containers[0].resources.requests.cpu: '4' is above the limit, 1500m"},
        {"{resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}}",
         "p.spec.containers[0].resources.requests.nvidia.com/gpu: '1' must equal the limit, 2"},
        {"{resources: {requests: {nvidia.com/gpu: 1}}}",
         "p.spec.containers[0].resources.requests.nvidia.com/gpu: it needs the same amount in limits"},
        {"{resources: {requests: {hugepages-2Mi: 1Gi}}}",
         "p.spec.containers[0].resources.requests.hugepages-2Mi: it needs the same amount in limits"},
        {"{volumeMounts: [{name: x, mountPath: /a}]}",
         "p.spec.containers[0].volumeMounts[0].name: 'x' is not a volume of the pod; it has: v, w"},
        {"{volumeMounts: [{name: v, mountPath: /a}, {name: w, mountPath: /a}]}",
         "p.spec.containers[0].volumeMounts[1].mountPath: '/a' is there twice"},
        {"{volumeMounts: [{name: v, mountPath: /a, subPath: /b}]}",
         "p.spec.containers[0].volumeMounts[0].subPath: '/b' is an absolute path"},
        {"{volumeMounts: [{name: v, mountPath: /a, subPathExpr: b/../c}]}",
         "p.spec.containers[0].volumeMounts[0].subPathExpr: 'b/../c' has a '..'"},
        {"{volumeMounts: [{name: v, mountPath: /a, subPath: b, subPathExpr: c}]}",
         "p.spec.containers[0].volumeMounts[0].subPathExpr: there is a subPath, too"}}) {
    EXPECT_THAT(OfContainer(row.fields), StartsWith(row.said)) << row.fields;
  }
  EXPECT_THAT(Said("{}", "{labels: {a: \"b c\"}}"), StartsWith("p.metadata.labels.a: 'b c' is not a value of a label"));
  EXPECT_THAT(Said("{}", "{labels: {a b: c}}"), StartsWith("p.metadata.labels: 'a b' is not a name of a label"));
  EXPECT_THAT(Said("{nodeSelector: {/a: c}}"), StartsWith("p.spec.nodeSelector: '/a' is not a name of a label"));
  EXPECT_THAT(Said("{dnsPolicy: Own}"), StartsWith("p.spec.dnsPolicy: 'Own' is not one of ClusterFirst"));
  EXPECT_THAT(Said("{restartPolicy: Always}"), StartsWith("p.spec.restartPolicy: 'Always' is not one of OnFailure"));
  EXPECT_THAT(Said("{volumes: [{name: a_b}]}"), StartsWith("p.spec.volumes[0].name: 'a_b' is not a DNS label"));
  EXPECT_THAT(Said("{volumes: [{name: a, emptyDir: {}, hostPath: {path: /}}]}"),
              StartsWith("p.spec.volumes[0]: it has several types"));
  EXPECT_THAT(Said("{initContainers: [{name: a, imagePullPolicy: No}]}"),
              StartsWith("p.spec.initContainers[0].imagePullPolicy"));
}

// The amounts of the TrainJob and of its runtime are merged first.
TEST(PodRules, APlanKeepsThem) {
  const TrainJob job = JobWith("{trainer: {resourcesPerNode: {requests: {cpu: 4}}}}");
  EXPECT_EQ(Refusal(job, TrainerRuntime({.container = "{command: [x], resources: {limits: {cpu: 2}}}"})),
            "Job 'train-node-0': spec.template.spec.containers[0].resources.requests.cpu: '4' is above the limit, 2");
  EXPECT_EQ(Refusal(job, TrainerRuntime({.container = "{command: [x], resources: {limits: {cpu: 4}}}"})), "");
}

}  // namespace
}  // namespace muster::controller
