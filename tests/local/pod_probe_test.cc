// SPDX-License-Identifier: Apache-2.0
// startupProbe and readinessProbe.
#include "tests/local/pod_made.h"

namespace muster::local {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string WithProbe(const std::string& probe) {
  return fmt::format(
      "{{containers: [{{name: c, command: [x], ports: [{{name: web, containerPort: 8080}}], env: [{{name: "
      "A, value: '1'}}, {{name: B, value: $(A)}}], readinessProbe: {}}}]}}",
      probe);
}

Probe ProbeFor(const std::string& probe) {
  const PodProgram program = ProgramFor(WithProbe(probe));
  if (program.containers.empty() || !program.containers[0].readiness) {
    ADD_FAILURE() << probe;
    return Probe();
  }
  return *program.containers[0].readiness;
}

TEST(PodProbe, AsksOverHttp) {
  struct Row {
    std::string get, path;
    int port;
  };
  for (const Row& row : std::vector<Row>{
           {"{path: /readyz, port: 29480}", "/readyz", 29480},
           {"{port: 80}", "/", 80},
           {"{path: readyz, port: web, scheme: HTTP}", "/readyz", 8080},
       }) {
    const Probe probe = ProbeFor(fmt::format("{{httpGet: {}}}", row.get));
    EXPECT_EQ(probe.kind, Probe::Kind::kHttp);
    EXPECT_EQ(probe.path, row.path);
    EXPECT_EQ(probe.port, row.port);
  }
}

TEST(PodProbe, OpensAPortOrRunsACommand) {
  const Probe tcp = ProbeFor("{tcpSocket: {port: web}}");
  EXPECT_EQ(tcp.kind, Probe::Kind::kTcp);
  EXPECT_EQ(tcp.port, 8080);
  const Probe exec = ProbeFor("{exec: {command: [test, '$(A)', '$(B)', '$(NO)']}}");
  EXPECT_EQ(exec.kind, Probe::Kind::kExec);
  EXPECT_THAT(exec.command, ElementsAre("test", "1", "$(A)", "$(NO)"));  // as in the kubelet: values are not expanded
}

TEST(PodProbe, ACommandHasThisMachinesPaths) {
  const ContainerProgram container = ContainerFor(
      "{name: c, command: [x], startupProbe: {exec: {command: [cat, /v/up]}}, volumeMounts: [{name: v, mountPath: "
      "/v}]}",
      PlaceWithoutRoots(), ", volumes: [{name: v}]");
  ASSERT_TRUE(container.startup);
  EXPECT_THAT(container.startup->command, ElementsAre("cat", "/run/pod/volumes/v/up"));
  EXPECT_FALSE(container.readiness);
}

TEST(PodProbe, ARequestIsOneThatCanBeSent) {
  EXPECT_EQ(ProbeFor("{httpGet: {port: 5, path: \"/a b?c=\\u00e9\"}}").path, "/a%20b?c=%C3%A9");
  const Probe probe = ProbeFor("{httpGet: {port: 5, httpHeaders: [{name: X-A, value: b}, {name: X-A, value: ''}]}}");
  EXPECT_THAT(probe.headers, ElementsAre(testing::Pair("X-A", "b"), testing::Pair("X-A", "")));
}

TEST(PodProbe, ItsOwnGrace) {
  EXPECT_EQ(ProbeFor("{tcpSocket: {port: 1}, terminationGracePeriodSeconds: 7}").grace, seconds(7));
  EXPECT_EQ(ProbeFor("{tcpSocket: {port: 1}}").grace, std::nullopt);
}

TEST(PodProbe, TimesAreThoseOfTheApiServer) {
  for (const char* times : {"",
                            ", initialDelaySeconds: 0, periodSeconds: 0, timeoutSeconds: 0, successThreshold: 0, "
                            "failureThreshold: 0"}) {
    const Probe usual = ProbeFor(fmt::format("{{tcpSocket: {{port: 1}}{}}}", times));
    EXPECT_EQ(usual.first, seconds(0));
    EXPECT_EQ(usual.period, seconds(10));
    EXPECT_EQ(usual.limit, seconds(1));
    EXPECT_EQ(usual.successes, 1);
    EXPECT_EQ(usual.failures, 3);
  }
  const Probe given = ProbeFor(
      "{tcpSocket: {port: 1}, initialDelaySeconds: 2, periodSeconds: 5, timeoutSeconds: 4, "
      "successThreshold: 6, failureThreshold: 7}");
  EXPECT_EQ(given.first, seconds(2));
  EXPECT_EQ(given.period, seconds(5));
  EXPECT_EQ(given.limit, seconds(4));
  EXPECT_EQ(given.successes, 6);
  EXPECT_EQ(given.failures, 7);
}

TEST(PodProbe, OfAnInitContainerCountsOnlyBesideTheOthers) {
  const std::string probe = "readinessProbe: {tcpSocket: {port: 1}}, startupProbe: {tcpSocket: {port: 2}}";
  const PodProgram program = ProgramFor(fmt::format(
      "{{initContainers: [{{name: a, command: [x], {}}}, {{name: b, command: [x], restartPolicy: Always, {}}}], "
      "containers: [{{name: c, command: [x]}}]}}",
      probe, probe));
  ASSERT_EQ(program.init_containers.size(), 2);
  EXPECT_FALSE(program.init_containers[0].readiness || program.init_containers[0].startup);
  EXPECT_TRUE(program.init_containers[1].readiness && program.init_containers[1].startup);
}

TEST(PodProbe, WhatIsNotAskedIsSaid) {
  struct Row {
    std::string probe, ignored;
    bool is_asked;
  };
  const std::string at = "spec.containers[0].readinessProbe.";
  for (const Row& row : std::vector<Row>{
           {"{grpc: {port: 5}}", at + "grpc: gRPC probes are not run", false},
           {"{httpGet: {port: 5, scheme: HTTPS}}", at + "httpGet.scheme: HTTPS probes are not run", false},
           {"{httpGet: {port: 5, host: h}}", at + "httpGet.host: the probe goes to the pod's address", true},
       }) {
    const PodProgram program = ProgramFor(WithProbe(row.probe));
    ASSERT_EQ(program.containers.size(), 1);
    EXPECT_EQ(program.containers[0].readiness.has_value(), row.is_asked) << row.probe;
    EXPECT_THAT(program.ignored, ElementsAre(row.ignored));
  }
}

TEST(PodProbe, WrongOnesAreRefused) {
  struct Row {
    std::string probe, message;
  };
  const std::string at = "spec.containers[0].readinessProbe";
  for (const Row& row : std::vector<Row>{
           {"{}", at + ": it has none of exec, httpGet, tcpSocket, grpc"},
           {"{exec: {}}", at + ".exec.command: it is missing"},
           {"{httpGet: {path: /}}", at + ".httpGet.port: it is missing"},
           {"{httpGet: {port: 1, httpHeaders: [{name: 'a b'}]}}",
            at + ".httpGet.httpHeaders[0].name: 'a b' is not a name of a header"},
           {"{httpGet: {port: 1, httpHeaders: [{name: a, value: \"x\\r\\ny\"}]}}",
            at + ".httpGet.httpHeaders[0].value: 'x\\x0d\\x0ay' has a line break"},
           {"{httpGet: {port: 0}}", at + ".httpGet.port: 0 is less than 1"},
           {"{httpGet: {port: 65536}}", at + ".httpGet.port: 65536 is more than 65535"},
           {"{httpGet: {port: 1, scheme: FTP}}", at + ".httpGet.scheme: 'FTP' is not one of HTTP, HTTPS"},
           {"{tcpSocket: {port: lacking}}",
            at + ".tcpSocket.port: 'lacking' is not a port of the container; it has: web"},
           {"{tcpSocket: {port: 1}, periodSeconds: -1}", at + ".periodSeconds: -1 is less than 0"},
       }) {
    EXPECT_THAT(Refused(WithProbe(row.probe)), HasSubstr(row.message)) << row.probe;
  }
}

}  // namespace
}  // namespace muster::local
