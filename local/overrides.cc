// SPDX-License-Identifier: Apache-2.0
#include "local/overrides.h"

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/pytorch_job.h"
#include "controller/api/yaml.h"
#include "controller/plan/pod_fields.h"

namespace muster::local {

using namespace controller;

namespace {

constexpr int64_t kMostEntries = 10'000;  // of a list that --set makes longer

Status WrongSet(std::string_view set, std::string_view why) {
  return absl::InvalidArgumentError(
      fmt::format("--set {}: {}; want PATH=VALUE as in spec.trainer.args='[a, b]'", Quoted(set), why));
}

// Moves `at` along one part of a path: "env[0]" is the field env, then its entry 0.
Status Descend(std::string_view set, std::string_view part, Json** at) {
  const size_t bracket = part.find('[');
  const std::string name(part.substr(0, bracket));
  if (name.empty()) return WrongSet(set, "its path has an empty part");
  if (!(*at)->is_object() && !(*at)->is_null()) return WrongSet(set, fmt::format("{} has no fields", Quoted(name)));
  *at = &(**at)[name];
  for (std::string_view rest = bracket == std::string_view::npos ? "" : part.substr(bracket); !rest.empty();) {
    const size_t end = rest.find(']');
    const auto index =
        end == std::string_view::npos || rest[0] != '[' ? std::nullopt : ParseInt(rest.substr(1, end - 1));
    if (!index || *index < 0 || *index > kMostEntries)
      return WrongSet(set, fmt::format("{} is not an entry of a list", Quoted(part)));
    if (!(*at)->is_array() && !(*at)->is_null()) return WrongSet(set, fmt::format("{} is not a list", Quoted(name)));
    *at = &(**at)[static_cast<size_t>(*index)];
    rest.remove_prefix(end + 1);
  }
  return absl::OkStatus();
}

Status Set(const std::string& set, Json* job) {
  const size_t equals = set.find('=');
  if (equals == std::string::npos) return WrongSet(set, "it has no '='");
  const auto value = ReadYaml(fmt::format("value: {}", set.substr(equals + 1)));
  if (!value.ok()) return WrongSet(set, Message(value.status()));
  Json* at = job;
  for (const std::string_view part : Split(std::string_view(set).substr(0, equals), '.')) {
    MUSTER_RETURN_IF_ERROR(Descend(set, part, &at));
  }
  *at = value->front().object["value"];
  return absl::OkStatus();
}

StatusOr<Json> Variable(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError(fmt::format("--env {}: want NAME=VALUE", Quoted(text)));
  }
  return EnvValue(text.substr(0, equals), text.substr(equals + 1));
}

// A field of another type stays as it is: the reader of the job reports it.
Status OverrideTrainJob(const Overrides& overrides, Json* spec) {
  Json& trainer = (*spec)["trainer"];
  if (trainer.is_null()) trainer = Json::object();
  if (!trainer.is_object()) return absl::OkStatus();
  if (overrides.nodes) trainer["numNodes"] = *overrides.nodes;
  if (overrides.processes) trainer["numProcPerNode"] = *overrides.processes;
  for (const std::string& text : overrides.env) {
    MUSTER_ASSIGN_OR_RETURN(const Json variable, Variable(text));
    Json& list = trainer["env"];
    if (list.is_null()) list = Json::array();
    if (list.is_array()) UpsertEnv(variable, &trainer);
  }
  return absl::OkStatus();
}

Status OverridePyTorchJob(const Overrides& overrides, Json* spec) {
  Json& replicas = (*spec)["pytorchReplicaSpecs"];
  if (!replicas.is_object()) return absl::OkStatus();
  if (overrides.nodes) {
    const int masters = replicas.contains("Master") ? 1 : 0;
    if (*overrides.nodes == masters) {
      replicas.erase("Worker");
    } else if (!replicas.contains("Worker")) {
      return absl::InvalidArgumentError(
          fmt::format("--nodes {}: the job has no Worker; add one to the file", *overrides.nodes));
    } else {
      replicas["Worker"]["replicas"] = *overrides.nodes - masters;
    }
  }
  if (overrides.processes) (*spec)["nprocPerNode"] = fmt::format("{}", *overrides.processes);
  for (const std::string& text : overrides.env) {
    MUSTER_ASSIGN_OR_RETURN(const Json variable, Variable(text));
    for (auto& [type, replica] : replicas.items()) {
      Json* pod = replica.is_object() && PartOf(replica, "template", "spec").is_object() ? &replica["template"]["spec"]
                                                                                         : nullptr;
      Json* container = pod == nullptr ? nullptr : FindNamed(*pod, "containers", kPyTorchContainer);
      if (container != nullptr) UpsertEnv(variable, container);
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status Override(const Overrides& overrides, Json* job) {
  if (overrides.nodes && *overrides.nodes < 1) return absl::InvalidArgumentError("--nodes: want at least 1");
  if (overrides.processes && *overrides.processes < 1) return absl::InvalidArgumentError("--procs: want at least 1");
  Json& spec = (*job)["spec"];
  if (spec.is_object()) {
    MUSTER_RETURN_IF_ERROR(TextField(*job, "kind") == kPyTorchJobKind ? OverridePyTorchJob(overrides, &spec)
                                                                      : OverrideTrainJob(overrides, &spec));
  }
  for (const std::string& set : overrides.sets) MUSTER_RETURN_IF_ERROR(Set(set, job));
  return absl::OkStatus();
}

}  // namespace muster::local
