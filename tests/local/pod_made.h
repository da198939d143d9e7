// SPDX-License-Identifier: Apache-2.0
// Programs of short pods, for tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "local/pod/program.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::local {

inline PodPlace PlaceHere() {
  return PodPlace{.folder = "/run/pod",
                  .claims = "/claims",
                  .address = "127.0.1.1",
                  .machine = "desk",
                  .milli_cpus = 2500,
                  .memory_bytes = 4'000'000'000,
                  .entrypoints = {{"muster", {"/opt/bin/muster"}}, {"web", {"/opt/bin/serve", "--all"}}},
                  .environment = {"PATH=/usr/bin", "HOME=/root"}};
}

inline PodPlace PlaceWithoutRoots() {
  PodPlace place = PlaceHere();
  place.own_root = false;
  return place;
}

// Finds the ConfigMaps and Secrets of the tests.
inline const Json* FindHere(std::string_view kind, std::string_view name) {
  static const Json* const kObjects = new Json(controller::YamlOf(R"(
ConfigMap:
  settings: {data: {A: one, B: two, b.c: three}, binaryData: {raw: AAH/}}
  none: {}
  wrong: {data: {A: 5}}
  broken: {binaryData: {raw: "?"}}
  odd: {data: {"../a": x}}
Secret:
  keys: {data: {token: dDA=, other: b3RoZXI=}, stringData: {other: said, plain: as it is}}
  broken: {data: {token: hunter2}}
  zero: {data: {token: AA==}}
)"));
  const auto objects = kObjects->find(std::string(kind));
  if (objects == kObjects->end()) return nullptr;
  const auto found = objects->find(std::string(name));
  return found == objects->end() ? nullptr : &*found;
}

// A pod `train-0`; `spec` is YAML.
inline Json PodWith(std::string_view spec) {
  Json pod = controller::YamlOf(R"(
metadata:
  name: train-0
  namespace: team
  uid: u-1
  labels: {zone: a, "x/y": "2"}
  annotations: {note: "say \"hi\"\n", "muster.dev/nodes": "4"}
)");
  pod["spec"] = controller::YamlOf(spec);
  return pod;
}

inline StatusOr<PodProgram> TryProgram(std::string_view spec, const PodPlace& place = PlaceHere()) {
  return ProgramOf(PodWith(spec), place, FindHere);
}

inline PodProgram ProgramFor(std::string_view spec, const PodPlace& place = PlaceHere()) {
  auto program = TryProgram(spec, place);
  if (!program.ok()) ADD_FAILURE() << Message(program.status()) << "\n" << spec;
  return program.value_or(PodProgram());
}

// The program of the only container of a pod. `container` and `rest` (of the pod's spec) are YAML in flow style.
inline ContainerProgram ContainerFor(std::string_view container, const PodPlace& place = PlaceHere(),
                                     std::string_view rest = "") {
  const PodProgram program = ProgramFor(fmt::format("{{containers: [{}]{}}}", container, rest), place);
  return program.containers.size() == 1 ? program.containers[0] : ContainerProgram();
}

// The message of the error with this code; empty: there is none.
inline std::string Refused(std::string_view spec, absl::StatusCode code = absl::StatusCode::kInvalidArgument,
                           const PodPlace& place = PlaceHere()) {
  const auto program = TryProgram(spec, place);
  if (program.ok()) return "";
  EXPECT_EQ(program.status().code(), code) << program.status();
  return std::string(Message(program.status()));
}

// A variable's value; "-": it is missing.
inline std::string VariableOf(const ContainerProgram& container, std::string_view name) {
  for (const std::string& entry : container.environment) {
    if (entry.starts_with(fmt::format("{}=", name))) return entry.substr(name.size() + 1);
  }
  return "-";
}

// "<source> at <target>" for each mount, with "(ro)" behind it if it is read-only. Leaves out the termination message.
inline std::vector<std::string> MountTexts(const ContainerProgram& container) {
  std::vector<std::string> texts;
  for (const PodMount& mount : container.mounts) {
    if (mount.source == container.termination_message) continue;
    const std::string what = mount.in_memory ? fmt::format("tmpfs of {}", mount.bytes.value_or(0)) : mount.source;
    texts.push_back(fmt::format("{} at {}{}", what, mount.target, mount.read_only ? " (ro)" : ""));
  }
  return texts;
}

}  // namespace muster::local
