// SPDX-License-Identifier: Apache-2.0
// Builds admission requests from short YAML texts, for tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/text.h"
#include "controller/admission/review.h"
#include "controller/api/train_job.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::controller {

// A TrainJob `train` in namespace `ns`; `spec` and `more` (metadata, status) are YAML.
inline Json TrainJobOf(std::string_view spec, std::string_view more = "{}") {
  Json object = {{"apiVersion", kTrainerApi},
                 {"kind", "TrainJob"},
                 {"metadata", {{"name", "train"}, {"namespace", "ns"}, {"uid", "uid-1"}}},
                 {"spec", {{"runtimeRef", {{"name", "runtime"}}}}}};
  object.merge_patch(YamlOf(more));
  object["spec"].merge_patch(YamlOf(spec));
  return object;
}

inline AdmissionRequest RequestOf(std::string operation, std::string resource, Json object, Json old_object = Json()) {
  const Json& named = object.is_null() ? old_object : object;
  return {.uid = "1",
          .operation = std::move(operation),
          .resource = std::move(resource),
          .ns = "ns",
          .name = named["metadata"].value("name", ""),
          .object = object,
          .old_object = old_object};
}

// The refusals: "403 spec.a: ...; 422 spec.b: ..."; empty: the request is allowed.
inline std::string Said(const Verdict& verdict) {
  std::vector<std::string> all;
  for (const Refusal& refusal : verdict.refusals) all.push_back(fmt::format("{} {}", refusal.code, refusal.why));
  return Join(all, "; ");
}

}  // namespace muster::controller
