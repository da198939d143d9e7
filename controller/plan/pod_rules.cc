// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/pod_rules.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/quantity.h"

namespace muster::controller {
namespace {

using Names = std::set<std::string, std::less<>>;

constexpr char kNoLabel[] = "is not a DNS label: a-z, 0-9 and '-', no '-' first or last, 63 characters at most";

// The fields of an object that are not null.
int64_t CountOf(const Json& object) {
  return std::count_if(object.begin(), object.end(), [](const Json& field) { return !field.is_null(); });
}

bool IsAlnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Letters, digits, '-', '_' and '.', an alphanumeric character at both ends.
bool IsLabelText(std::string_view text) {
  return !text.empty() && text.size() <= kLongestLabel && IsAlnum(text.front()) && IsAlnum(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return IsAlnum(c) || c == '-' || c == '_' || c == '.'; });
}

// "name" or "domain/name".
bool IsLabelKey(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos) return IsLabelText(key);
  return IsDnsName(key.substr(0, slash)) && IsLabelText(key.substr(slash + 1));
}

void CheckLabels(Fields& object, const char* name) {
  const std::string path = object.PathOf(name);
  for (const auto& [key, value] : object.TextMap(name)) {
    if (!IsLabelKey(key)) object.Wrong(name, key, "is not a name of a label, such as example.com/name");
    if (value.empty() || IsLabelText(value)) continue;
    object.complaints()->Wrong(PathOf(path, key), std::string_view(value),
                               "is not a value of a label: letters, digits, '-', '_' and '.', at both ends a letter or "
                               "digit, 63 characters at most");
  }
}

void CheckEnvironment(Fields& container) {
  for (Fields& variable : container.Objects("env")) {
    const std::string name = variable.Text("name");
    if (name.find('=') != std::string::npos) variable.Wrong("name", name, "has a '='");
    const Fields source = variable.Object("valueFrom");
    if (source && !variable.Text("value").empty()) variable.Wrong("valueFrom", "there is a value, too; remove one");
    if (source && CountOf(*source.Whole()) != 1) variable.Wrong("valueFrom", "it needs one source");
  }
}

// A resource of which a node may promise more than it has: Kubernetes' own, but hugepages.
bool MayExceed(std::string_view resource) {
  const bool own = resource.find('/') == std::string_view::npos || resource.find("kubernetes.io/") != std::string::npos;
  return own && !resource.starts_with("hugepages-");
}

void CheckAmounts(Fields resources) {
  const Fields limits = resources.Object("limits");
  Fields requests = resources.Object("requests");
  if (!requests) return;
  for (const auto& [name, amount] : requests.Whole()->items()) {
    const Json* limit = limits ? limits.Find(name.c_str()) : nullptr;
    if (limit == nullptr) {
      if (MayExceed(name)) continue;
      requests.Wrong(name.c_str(), "it needs the same amount in limits, as a node cannot promise more than it has");
      continue;
    }
    const auto asked = ReadQuantity(amount), most = ReadQuantity(*limit);
    if (!asked.ok() || !most.ok() || *asked == *most || (MayExceed(name) && *asked < *most)) continue;
    requests.Wrong(name.c_str(), asked->Text(),
                   fmt::format("{} the limit, {}", MayExceed(name) ? "is above" : "must equal", most->Text()));
  }
}

void CheckMounts(Fields& container, const Names& volumes) {
  Names paths;
  for (Fields& mount : container.Objects("volumeMounts")) {
    const std::string name = mount.Text("name"), path = mount.Text("mountPath");
    if (!volumes.contains(name)) {
      mount.Wrong("name", name,
                  fmt::format("is not a volume of the pod; it has: {}",
                              volumes.empty() ? "none" : Join({volumes.begin(), volumes.end()}, ", ")));
    }
    if (!paths.insert(path).second) mount.Wrong("mountPath", path, "is there twice");
    for (const char* field : {"subPath", "subPathExpr"}) {
      const std::string inner = mount.Text(field);
      const auto parts = Split(inner, '/');
      if (inner.starts_with('/')) mount.Wrong(field, inner, "is an absolute path");
      if (std::find(parts.begin(), parts.end(), "..") != parts.end()) mount.Wrong(field, inner, "has a '..'");
    }
    if (!mount.Text("subPath").empty() && !mount.Text("subPathExpr").empty()) {
      mount.Wrong("subPathExpr", "there is a subPath, too; remove one");
    }
  }
}

void CheckContainer(Fields& container, const Names& volumes) {
  if (const std::string name = container.Text("name"); !IsDnsLabel(name)) container.Wrong("name", name, kNoLabel);
  container.Word("imagePullPolicy", {"Always", "IfNotPresent", "Never"});
  container.Word("terminationMessagePolicy", {"File", "FallbackToLogsOnError"});
  for (Fields& port : container.Objects("ports")) port.Word("protocol", {"TCP", "UDP", "SCTP"});
  CheckEnvironment(container);
  CheckAmounts(container.Object("resources"));
  CheckMounts(container, volumes);
}

Names CheckVolumes(Fields& spec) {
  Names names;
  for (Fields& volume : spec.Objects("volumes")) {
    const std::string name = volume.Text("name");
    if (!IsDnsLabel(name)) volume.Wrong("name", name, kNoLabel);
    if (CountOf(*volume.Whole()) > 2) spec.complaints()->Wrong(volume.path(), "it has several types; keep one");
    names.insert(name);
  }
  return names;
}

}  // namespace

Status CheckPodRules(const Json& pod_template, PodOwner owner, std::string_view path) {
  Complaints complaints;
  Fields fields(&pod_template, std::string(path), &complaints);
  Fields metadata = fields.Object("metadata"), spec = fields.Object("spec");
  CheckLabels(metadata, "labels");
  CheckLabels(spec, "nodeSelector");
  spec.Word("dnsPolicy", {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"});
  if (owner == PodOwner::kJob) spec.Word("restartPolicy", {"OnFailure", "Never"});
  const Names volumes = CheckVolumes(spec);
  for (const char* list : {"containers", "initContainers"}) {
    for (Fields& container : spec.Objects(list)) CheckContainer(container, volumes);
  }
  return complaints.status();
}

}  // namespace muster::controller
