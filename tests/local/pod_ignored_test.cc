// SPDX-License-Identifier: Apache-2.0
// The messages about fields that have no effect here.
#include "tests/local/pod_made.h"

namespace muster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> IgnoredOf(const std::string& container, const std::string& pod = "") {
  return ProgramFor(fmt::format("{{containers: [{{name: c, command: [x]{}}}]{}}}", container, pod)).ignored;
}

TEST(PodIgnored, FieldsOfContainersAreSaid) {
  struct Row {
    std::string container, ignored;
  };
  const std::string user = " asked for, programs run as the user who started them";
  const std::string rights = "programs have the rights of the user who started them";
  for (const Row& row : std::vector<Row>{
           {"securityContext: {runAsUser: 1000}", "securityContext.runAsUser: 1000" + user},
           {"securityContext: {runAsGroup: 5}", "securityContext.runAsGroup: 5" + user},
           {"securityContext: {privileged: true}", "securityContext.privileged: " + rights},
           {"securityContext: {capabilities: {add: [IPC_LOCK]}}", "securityContext.capabilities.add: " + rights},
           {"lifecycle: {preStop: {exec: {command: [x]}}}", "lifecycle: hooks are not run"},
           {"restartPolicyRules: [{action: Restart}]", "restartPolicyRules: only restartPolicy applies"},
           {"tty: true", "tty: there is no terminal"},
           {"terminationMessagePolicy: FallbackToLogsOnError",
            "terminationMessagePolicy: a missing message is not replaced by the end of the log"},
           {"resources: {limits: {nvidia.com/gpu: 8}}",
            "resources.limits.nvidia.com/gpu: 8 asked for, this machine has 0"},
           {"resources: {requests: {nvidia.com/gpu: '2', cpu: 1}, limits: {nvidia.com/gpu: '2', memory: 1Gi}}",
            "resources.limits.nvidia.com/gpu: 2 asked for, this machine has 0"},
           {"resources: {requests: {rdma/hca: 1k}}",
            "resources.requests.rdma/hca: 1000 asked for, this machine's are used as they are"},
           {R"(resources: {limits: {"a\eb": 1}})",
            "resources.limits.a\\x1bb: 1 asked for, this machine's are used as they are"},
           {"resources: {claims: [{name: g}]}", "resources.claims: this machine's devices are used as they are"},
       }) {
    EXPECT_THAT(IgnoredOf(", " + row.container), ElementsAre("spec.containers[0]." + row.ignored)) << row.container;
  }
}

TEST(PodIgnored, FieldsOfPodsAreSaid) {
  struct Row {
    std::string pod, ignored;
  };
  const std::string user = " asked for, programs run as the user who started them";
  for (const Row& row : std::vector<Row>{
           {"hostPID: true", "hostPID: it does not change which processes programs see"},
           {"hostIPC: true", "hostIPC: this machine's settings apply"},
           {"shareProcessNamespace: true", "shareProcessNamespace: it does not change which processes programs see"},
           {"runtimeClassName: gvisor", "runtimeClassName: programs run as processes of this machine"},
           {"hostAliases: [{ip: 1.2.3.4}]", "hostAliases: they are not written into /etc/hosts"},
           {"dnsConfig: {searches: [x]}", "dnsConfig: this machine's settings apply"},
           {"readinessGates: [{conditionType: x}]", "readinessGates: they are not waited for"},
           {"resourceClaims: [{name: g}]", "resourceClaims: this machine's devices are used as they are"},
           {"securityContext: {runAsUser: 0}", "securityContext.runAsUser: 0" + user},
           {"securityContext: {fsGroup: 7}", "securityContext.fsGroup: 7" + user},
           {"securityContext: {sysctls: [{name: a, value: b}]}",
            "securityContext.sysctls: this machine's settings apply"},
       }) {
    EXPECT_THAT(IgnoredOf("", ", " + row.pod), ElementsAre("spec." + row.ignored)) << row.pod;
  }
}

TEST(PodIgnored, WhatNoProgramCanMissIsNotSaid) {
  EXPECT_THAT(
      IgnoredOf(", resources: {limits: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 0}, requests: {cpu: 1}}, "
                "imagePullPolicy: Always, tty: false, securityContext: {privileged: false, "
                "allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}",
                ", nodeSelector: {a: b}, tolerations: [{operator: Exists}], affinity: {}, priorityClassName: p, "
                "imagePullSecrets: [{name: s}], schedulingGates: [{name: g}], hostNetwork: false, "
                "schedulerName: x, serviceAccountName: y, enableServiceLinks: true, hostAliases: []"),
      IsEmpty());
}

TEST(PodIgnored, GpusThatAreThereAreNotMissed) {
  PodPlace place = PlaceHere();
  place.gpus = 2;
  const auto ignored = [&place](const char* gpus) {
    return ProgramFor(
               fmt::format("{{containers: [{{name: c, command: [x], resources: {{limits: {{nvidia.com/gpu: {}}}}}}}]}}",
                           gpus),
               place)
        .ignored;
  };
  EXPECT_THAT(ignored("2"), IsEmpty());
  EXPECT_THAT(ignored("3"), ElementsAre("spec.containers[0].resources.limits.nvidia.com/gpu: 3 asked for, this machine "
                                        "has 2"));
}

TEST(PodIgnored, TheSameOfSeveralContainersIsSaidOnce) {
  const PodProgram program = ProgramFor(R"({
    initContainers: [{name: a, command: [x], securityContext: {runAsUser: 1}, lifecycle: {stopSignal: SIGINT}}],
    containers: [
      {name: b, command: [x], securityContext: {runAsUser: 1}, resources: {limits: {nvidia.com/gpu: 8}}},
      {name: c, command: [x], securityContext: {runAsUser: 2}, resources: {limits: {nvidia.com/gpu: 8}}}]})");
  EXPECT_THAT(program.ignored,
              ElementsAre("spec.initContainers[0].lifecycle: hooks are not run",
                          "spec.initContainers[0].securityContext.runAsUser: 1 asked for, programs run as the user who "
                          "started them",
                          "spec.containers[0].resources.limits.nvidia.com/gpu: 8 asked for, this machine has 0",
                          "spec.containers[1].securityContext.runAsUser: 2 asked for, programs run as the user who "
                          "started them"));
}

TEST(PodIgnored, ThatPathsAreReplacedIsSaidOnce) {
  const PodProgram program = ProgramFor(R"({volumes: [{name: v}], containers: [
    {name: a, command: [x], volumeMounts: [{name: v, mountPath: /a}]},
    {name: b, command: [x], volumeMounts: [{name: v, mountPath: /b}]}]})",
                                        PlaceWithoutRoots());
  EXPECT_EQ(program.ignored.size(), 1);
  EXPECT_THAT(ProgramFor("{containers: [{name: a, command: [x]}]}", PlaceWithoutRoots()).ignored, IsEmpty());
}

}  // namespace
}  // namespace muster::local
