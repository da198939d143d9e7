// SPDX-License-Identifier: Apache-2.0
// The pod as a whole: names, restarts, times, limits.
#include "tests/local/pod_made.h"

namespace muster::local {
namespace {

using ::testing::HasSubstr;
using Restart = ContainerProgram::Restart;
using std::chrono::seconds;

constexpr char kOne[] = "containers: [{name: c, command: [x]}]";

TEST(PodProgram, HostsAreNamedLikeThePod) {
  struct Row {
    std::string name, spec, hostname, subdomain;
  };
  const std::string long_name = std::string(62, 'a') + "-bcd";
  for (const Row& row : std::vector<Row>{
           {"train-0", "", "train-0", ""},
           {"train-0", "hostname: h, subdomain: train, ", "h", "train"},
           {"a.b", "", "a.b", ""},
           {long_name, "", std::string(62, 'a'), ""},
           {long_name, "hostname: h, ", "h", ""},
       }) {
    Json pod = PodWith(fmt::format("{{{}{}}}", row.spec, kOne));
    pod["metadata"]["name"] = row.name;
    const auto program = ProgramOf(pod, PlaceHere(), FindHere);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(program->hostname, row.hostname);
    EXPECT_EQ(program->subdomain, row.subdomain);
  }
}

TEST(PodProgram, ContainersStartAgainAsThePodSaysIt) {
  struct Row {
    std::string pod, container;  // restartPolicy; empty: none
    Restart init, main;
    bool sidecar;
  };
  for (const Row& row : std::vector<Row>{
           {"", "", Restart::kOnFailure, Restart::kAlways, false},
           {"Always", "", Restart::kOnFailure, Restart::kAlways, false},
           {"OnFailure", "", Restart::kOnFailure, Restart::kOnFailure, false},
           {"Never", "", Restart::kNever, Restart::kNever, false},
           {"Never", "Always", Restart::kAlways, Restart::kAlways, true},
           {"Never", "OnFailure", Restart::kOnFailure, Restart::kOnFailure, false},
           {"Always", "Never", Restart::kNever, Restart::kNever, false},
       }) {
    SCOPED_TRACE(row.pod + " " + row.container);
    const std::string own = row.container.empty() ? "" : fmt::format(", restartPolicy: {}", row.container);
    const std::string whole = row.pod.empty() ? "" : fmt::format(", restartPolicy: {}", row.pod);
    const PodProgram program =
        ProgramFor(fmt::format("{{initContainers: [{{name: a, command: [x]{}}}], containers: [{{name: b, command: "
                               "[x]{}}}]{}}}",
                               own, own, whole));
    ASSERT_EQ(program.init_containers.size(), 1);
    ASSERT_EQ(program.containers.size(), 1);
    EXPECT_EQ(program.init_containers[0].restart, row.init);
    EXPECT_EQ(program.init_containers[0].sidecar, row.sidecar);
    EXPECT_EQ(program.containers[0].restart, row.main);
    EXPECT_FALSE(program.containers[0].sidecar);
  }
}

TEST(PodProgram, TimesAndLimitsAreRead) {
  const PodProgram usual = ProgramFor(fmt::format("{{{}}}", kOne));
  EXPECT_EQ(usual.grace, seconds(30));
  EXPECT_FALSE(usual.deadline || usual.containers[0].limits.any() || usual.limits.any());
  EXPECT_EQ(usual.containers[0].working_directory, "");
  const PodProgram given = ProgramFor(
      "{terminationGracePeriodSeconds: 0, activeDeadlineSeconds: 60, containers: [{name: c, command: [x], workingDir: "
      "/w, resources: {limits: {cpu: 250m, memory: 1Mi}, requests: {cpu: 1m}}}], resources: {limits: {memory: 2Ki}}}");
  EXPECT_EQ(given.grace, seconds(0));
  EXPECT_EQ(given.deadline, seconds(60));
  EXPECT_EQ(given.containers[0].limits.milli_cpus, 250);
  EXPECT_EQ(given.containers[0].limits.memory_bytes, 1'048'576);
  EXPECT_EQ(given.limits.memory_bytes, 2048);
  EXPECT_EQ(given.containers[0].working_directory, "/w");
}

TEST(PodProgram, WrongPodsAreRefused) {
  struct Row {
    std::string spec, message;
  };
  for (const Row& row : std::vector<Row>{
           {"{}", "spec.containers: it is missing"},
           {"{containers: x}", "spec.containers: 'x' is not a list"},
           {"{containers: [null]}", "spec.containers[0]: null is not an object"},
           {"{containers: [x]}", "spec.containers[0]: 'x' is not an object"},
           {"{containers: [{command: [x]}]}", "spec.containers[0].name: it is missing"},
           {"{containers: [{name: ../c, command: [x]}]}",
            "spec.containers[0].name: '../c' is not a name of a container: use only a-z, 0-9 and '-'"},
           {"{initContainers: [{name: c, command: [x]}], containers: [{name: c, command: [x]}]}",
            "spec.containers[0].name: 'c' is the name of another container, too"},
           {"{containers: [{name: c, command: [x], terminationMessagePath: /}]}",
            "spec.containers[0].terminationMessagePath: '/' is the container's root; give a path below it"},
           {"{containers: [{name: c, command: [x], terminationMessagePath: /a/..}]}",
            "spec.containers[0].terminationMessagePath: '/a/..' must not contain '..'"},
           {"{containers: [{name: c, command: [x], restartPolicy: Often}]}",
            "spec.containers[0].restartPolicy: 'Often' is not one of Always, OnFailure, Never"},
           {"{containers: [{name: c, command: [x], resources: {limits: {cpu: many}}}]}",
            "spec.containers[0].resources.limits.cpu: 'many' is not a quantity"},
           {"{containers: [{name: c, command: [x], resources: {limits: {memory: -1}}}]}",
            "spec.containers[0].resources.limits.memory: '-1' is less than 0"},
           {fmt::format("{{hostname: a.b, {}}}", kOne), "spec.hostname: 'a.b' is not a name of a host"},
           {fmt::format("{{subdomain: /, {}}}", kOne), "spec.subdomain: '/' is not a name of a domain"},
           {fmt::format("{{restartPolicy: no, {}}}", kOne), "spec.restartPolicy: "},
           {fmt::format("{{terminationGracePeriodSeconds: -1, {}}}", kOne),
            "spec.terminationGracePeriodSeconds: -1 is less than 0"},
           {fmt::format("{{activeDeadlineSeconds: 0, {}}}", kOne), "spec.activeDeadlineSeconds: 0 is less than 1"},
       }) {
    EXPECT_THAT(Refused(row.spec), HasSubstr(row.message)) << row.spec;
  }
}

TEST(PodProgram, APodNeedsANameThatAHostCanHave) {
  for (const auto& [name, message] : std::vector<std::pair<Json, std::string>>{
           {nullptr, "metadata.name: it is missing"}, {"a/b", "metadata.name: 'a/b' is not a name of a pod"}}) {
    Json pod = PodWith(fmt::format("{{{}}}", kOne));
    pod["metadata"]["name"] = name;
    EXPECT_THAT(std::string(Message(ProgramOf(pod, PlaceHere(), FindHere).status())), HasSubstr(message));
  }
}

TEST(PodProgram, APodNeedsASpec) {
  for (const auto& [pod, message] : std::vector<std::pair<Json, std::string>>{
           {5, "5 is not an object"},
           {Json::object(), "spec: it is missing"},
           {{{"spec", nullptr}}, "spec: it is missing"},
           {{{"spec", Json::array()}}, "spec: a list is not an object"},
       }) {
    EXPECT_EQ(ProgramOf(pod, PlaceHere(), FindHere).status(), absl::InvalidArgumentError(message));
  }
}

}  // namespace
}  // namespace muster::local
