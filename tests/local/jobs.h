// SPDX-License-Identifier: Apache-2.0
// Jobs and their pods as JSON, for tests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/iso_time.h"
#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/plan/pod_object.h"
#include "local/cluster/job_pod.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::local {

inline constexpr WallTime kNow{std::chrono::seconds(1'800'000'000)};

inline std::string At(int seconds) { return IsoTime(kNow + std::chrono::seconds(seconds)); }

// A list in YAML.
inline Json ListOf(std::string_view text) { return controller::YamlOf(fmt::format("{{list: {}}}", text))["list"]; }

// An Indexed Job with 3 completions, all at once. `spec` and `status` are YAML, whose fields override its own.
inline Json LocalJob(std::string_view spec, std::string_view status = "{}") {
  Json job = {{"apiVersion", "batch/v1"},
              {"kind", "Job"},
              {"metadata", {{"name", "job"}, {"namespace", "ns"}, {"uid", "u"}}},
              {"spec", {{"completionMode", "Indexed"}, {"completions", 3}, {"parallelism", 3}}}};
  job["spec"]["template"]["spec"] = {{"restartPolicy", "Never"}, {"containers", Json::array({{{"name", "node"}}})}};
  job["spec"].merge_patch(controller::YamlOf(spec));
  job["status"] = controller::YamlOf(status);
  return job;
}

// The pod `p<index>`. `traits` is YAML: name, deleted (s from now), tracked, ready (s), ended (s), exit, restarts,
// failures, ignored, condition, node, created (s).
inline Json LocalPod(int index, const char* phase, std::string_view traits = "{}") {
  const Json has = controller::YamlOf(traits);
  const auto at = [&](const char* name) { return At(has[name].get<int>()); };
  const std::string name = TextField(has, "name");
  Json meta = {{"name", name.empty() ? fmt::format("p{}", index) : name}, {"namespace", "ns"}, {"uid", "pod"}};
  meta["annotations"][controller::kIndexLabel] = fmt::format("{}", index);
  for (const auto& [trait, key] :
       {std::pair("failures", kIndexFailuresAnnotation), std::pair("ignored", kIndexIgnoredAnnotation)}) {
    if (has.contains(trait)) meta["annotations"][key] = has[trait].dump();
  }
  meta["creationTimestamp"] = has.contains("created") ? at("created") : At(-100);
  if (controller::FlagField(has, "tracked", true)) meta["finalizers"] = {controller::kTrackingFinalizer};
  if (has.contains("deleted")) meta["deletionTimestamp"] = at("deleted");
  Json container = {{"name", "node"}, {"restartCount", controller::CountField(has, "restarts")}};
  if (phase == std::string_view("Failed") || phase == std::string_view("Succeeded")) {
    container["state"]["terminated"] = {{"exitCode", controller::CountField(has, "exit")},
                                        {"finishedAt", has.contains("ended") ? at("ended") : At(-60)}};
  }
  Json status = {{"phase", phase}, {"containerStatuses", Json::array({container})}, {"conditions", Json::array()}};
  if (has.contains("ready")) {
    status["conditions"].push_back({{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", at("ready")}});
  }
  if (has.contains("condition")) status["conditions"].push_back({{"type", has["condition"]}, {"status", "True"}});
  Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", std::move(meta)}, {"status", std::move(status)}};
  pod["spec"]["nodeName"] = TextField(has, "node");
  return pod;
}

}  // namespace muster::local
