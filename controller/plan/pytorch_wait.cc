// SPDX-License-Identifier: Apache-2.0
// The init container in which workers wait until the master's name resolves.
#include <algorithm>
#include <array>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/lenient.h"
#include "controller/api/pod_template.h"
#include "controller/api/yaml.h"
#include "controller/plan/agent.h"
#include "controller/plan/pytorch_plan.h"

namespace muster::controller {
namespace {

constexpr int kTrySeconds = 2;
constexpr char kFlag[] = "--pytorch-init-container-template-file";

// Fills in the placeholders of `text`, in the syntax of Go's text/template: "{{.MasterAddr}}" or "{{ .MasterAddr }}".
StatusOr<std::string> Filled(std::string_view text, const PyTorchOptions& options, const std::string& image,
                             const std::string& master) {
  const std::array<std::pair<std::string_view, std::string>, 3> values = {
      {{".MasterAddr", master}, {".InitContainerImage", image}, {".MaxTries", fmt::format("{}", options.wait_tries)}}};
  std::string filled;
  while (true) {
    const size_t begin = text.find("{{");
    filled += text.substr(0, begin);
    if (begin == std::string_view::npos) return filled;
    const size_t end = text.find("}}", begin);
    const std::string_view inside =
        end == std::string_view::npos ? text.substr(begin + 2, 20) : Strip(text.substr(begin + 2, end - begin - 2));
    const auto value = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == inside; });
    if (end == std::string_view::npos || value == values.end()) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: {{{{{}}}}} is not known; there are .MasterAddr, .InitContainerImage and .MaxTries", kFlag, inside));
    }
    filled += value->second;
    text.remove_prefix(end + 2);
  }
}

StatusOr<Json> ReadTemplate(const std::string& text) {
  // ReadYaml() accepts only objects as documents, and `text` is a list.
  auto documents = ReadYaml(fmt::format("initContainers:\n{}", text));
  if (!documents.ok()) return Annotate(documents.status(), fmt::format("{} (one line further down)", kFlag));
  Complaints complaints;
  Json containers;
  if (documents->size() == 1) {
    const Json pod = {{"containers", Json::array({{{"name", kWaitContainer}, {"image", "any"}}})},
                      {"initContainers", PartOf(documents->front().object, "initContainers")}};
    const Json pod_template = {{"metadata", Json::object()}, {"spec", pod}};
    CheckPodTemplate(Fields(&pod_template, "", &complaints), Extent::kWhole);
    containers = pod["initContainers"];
  }
  MUSTER_RETURN_IF_ERROR(Annotate(complaints.status(), kFlag));
  if (!containers.is_array() || containers.empty()) {
    return absl::InvalidArgumentError(fmt::format("{}: it is not a list of containers", kFlag));
  }
  return containers;
}

}  // namespace

StatusOr<Json> WaitContainers(const PyTorchOptions& options, const std::string& master, const Json& container) {
  const std::string image = options.wait_image.empty() ? options.agent.agent_image : options.wait_image;
  if (!options.wait_template.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const std::string filled, Filled(options.wait_template, options, image, master));
    return ReadTemplate(filled);
  }
  const Json resources = {{"requests", {{"cpu", "50m"}, {"memory", "10Mi"}}},
                          {"limits", {{"cpu", "100m"}, {"memory", "20Mi"}}}};
  return Json::array({{{"name", kWaitContainer},
                       {"image", image},
                       {"imagePullPolicy", "IfNotPresent"},
                       {"command", Json::array({"muster", "wait", "--dns", "--timeout",
                                                fmt::format("{}s", options.wait_tries * kTrySeconds), master})},
                       {"resources", resources},
                       {"securityContext", HelperSecurity(container)}}});
}

}  // namespace muster::controller
