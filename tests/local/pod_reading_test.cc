// SPDX-License-Identifier: Apache-2.0
#include "local/pod/reading.h"

#include <gtest/gtest.h>

#include "local/end_table.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::local {

using namespace controller;

namespace {

std::string Ended(const char* name, int code) {
  return std::string("{name: ") + name + ", state: {terminated: {exitCode: " + std::to_string(code) + "}}}";
}

TEST(PodReading, HowItsContainersEnded) {
  const std::string waits = "{name: node, state: {waiting: {reason: PodInitializing}}}";
  const struct {
    std::string init, main;
    std::optional<int> code;
  } rows[] = {
      {"", Ended("node", 0), 0},
      {"", Ended("node", 3), 3},
      {"", Ended("node", 0) + ", " + Ended("other", 4), 4},
      {Ended("first", 0), Ended("node", 0), 0},
      {Ended("first", 5), waits, 5},
      {Ended("side", 143), Ended("node", 0), 0},
      {Ended("side", 143), Ended("node", 3), 3},
      {Ended("first", 0), waits, std::nullopt},
      {Ended("side", 143), waits, std::nullopt},
      {"", "", std::nullopt},
  };
  for (const auto& row : rows) {
    const Json pod = YamlOf(
        "{spec: {initContainers: [{name: first}, {name: side, restartPolicy: Always}]}, status: "
        "{initContainerStatuses: [" +
        row.init + "], containerStatuses: [" + row.main + "]}}");
    EXPECT_EQ(ExitCodeOf(pod), row.code) << row.init << row.main;
  }
}

TEST(EndTable, OneLineForEachHost) {
  using std::chrono::milliseconds;
  EXPECT_EQ(EndTable({{.host = "a-node-0-0", .exit_code = 137, .lived = milliseconds(1500)},
                      {.host = "b", .exit_code = std::nullopt, .lived = milliseconds(70)},
                      {.host = "a-node-0-0", .exit_code = 0, .lived = milliseconds(2000)}}),
            "a-node-0-0  exit code 137 (128 + SIGKILL) after 1.50 s, then success after 2.00 s\n"
            "b           stopped before its program ran, after 0.07 s\n");
}

}  // namespace
}  // namespace muster::local
