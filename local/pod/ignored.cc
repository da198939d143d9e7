// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/quantity.h"
#include "local/pod/input.h"

namespace muster::local {

using namespace controller;

namespace {

struct IgnoredField {
  const char* name;
  std::string_view reason;
  bool with_value = false;
};

constexpr std::string_view kUser = "asked for, programs run as the user who started them";
constexpr std::string_view kRights = "programs have the rights of the user who started them";
constexpr std::string_view kShown = "it does not change which processes programs see";
constexpr std::string_view kAsThisMachine = "this machine's settings apply";

constexpr IgnoredField kOfPods[] = {
    {"hostPID", kShown},
    {"hostIPC", kAsThisMachine},
    {"shareProcessNamespace", kShown},
    {"runtimeClassName", "programs run as processes of this machine"},
    {"dnsConfig", kAsThisMachine},
    {"hostAliases", "they are not written into /etc/hosts"},
    {"hostnameOverride", "the host name is `hostname`, or the pod's name"},
    {"setHostnameAsFQDN", "the host has its short name"},
    {"readinessGates", "they are not waited for"},
    {"resourceClaims", "this machine's devices are used as they are"},
    {"ephemeralContainers", "they are not started"},
};
constexpr IgnoredField kOfContainers[] = {
    {"lifecycle", "hooks are not run"},
    {"restartPolicyRules", "only restartPolicy applies"},
    {"stdin", "there is no terminal"},
    {"tty", "there is no terminal"},
};
constexpr IgnoredField kOfSecurity[] = {
    {"runAsUser", kUser, true},      {"runAsGroup", kUser, true}, {"fsGroup", kUser, true},
    {"supplementalGroups", kRights}, {"privileged", kRights},     {"seLinuxOptions", kRights},
    {"sysctls", kAsThisMachine},
};

bool IsAskedFor(const Json* value) {
  return value != nullptr && *value != false && !((value->is_structured()) && value->empty());
}

// Calls say(field, reason) for each field of `table` that `object` has.
template <class Table, class Say>
void NoteTable(const Json& object, const Table& table, std::string_view prefix, const Say& say) {
  for (const IgnoredField& field : table) {
    const Json* value = FindField(object, field.name);
    if (!IsAskedFor(value)) continue;
    say(fmt::format("{}{}", prefix, field.name),
        field.with_value ? fmt::format("{} {}", Shown(*value), field.reason) : std::string(field.reason));
  }
}

bool IsOfThisMachine(std::string_view resource) { return resource == "cpu" || resource == "memory"; }
bool IsGpu(std::string_view resource) { return resource.ends_with("/gpu"); }

// Limits count before requests, as for extended resources both are equal.
template <class Say>
void NoteResources(const Json& resources, int gpus, const Say& say) {
  std::set<std::string> named;
  for (const char* kind : {"limits", "requests"}) {
    for (const auto& [name, value] : MapField(resources, kind).items()) {
      const auto amount = ReadQuantity(value);
      if (IsOfThisMachine(name) || !amount.ok() || amount->IsZero() || !named.insert(name).second) continue;
      if (IsGpu(name) && amount->Units() <= gpus) continue;  // each pod sees all of them
      say(fmt::format("resources.{}.{}", kind, name),
          IsGpu(name) ? fmt::format("{} asked for, this machine has {}", amount->Text(), gpus)
                      : fmt::format("{} asked for, this machine's are used as they are", amount->Text()));
    }
  }
  if (IsAskedFor(FindField(resources, "claims"))) {
    say("resources.claims", "this machine's devices are used as they are");
  }
}

template <class Say>
void NoteContainer(const Json& container, int gpus, const Say& say) {
  NoteTable(container, kOfContainers, "", say);
  const Json& security = PartOf(container, "securityContext");
  NoteTable(security, kOfSecurity, "securityContext.", say);
  if (IsAskedFor(FindField(PartOf(security, "capabilities"), "add"))) say("securityContext.capabilities.add", kRights);
  NoteResources(PartOf(container, "resources"), gpus, say);
  if (TextField(container, "terminationMessagePolicy") == "FallbackToLogsOnError") {
    say("terminationMessagePolicy", "a missing message is not replaced by the end of the log");
  }
}

}  // namespace

void IgnoredFields::OfContainer(const Fields& container, std::string_view field, std::string_view reason) {
  Add(field, container.PathOf(field), reason);
}

void IgnoredFields::Say(std::string_view path, std::string_view reason) { Add(path, path, reason); }

void IgnoredFields::Add(std::string_view field, std::string_view path, std::string_view reason) {
  if (!said_.emplace(field, reason).second) return;
  // Names of resources are outside text.
  constexpr size_t kMostShown = 1000;
  const std::string quoted = Quoted(fmt::format("{}: {}", path, reason), kMostShown);
  texts_.push_back(quoted.substr(1, quoted.size() - 2));
}

void NoteIgnored(const Fields& spec, int gpus, IgnoredFields* ignored) {
  const auto of_pod = [&](std::string_view field, std::string_view reason) {
    ignored->Say(spec.PathOf(field), reason);
  };
  NoteTable(*spec.Whole(), kOfPods, "", of_pod);
  NoteTable(PartOf(*spec.Whole(), "securityContext"), kOfSecurity, "securityContext.", of_pod);
  for (const char* list : {"initContainers", "containers"}) {
    Fields copy = spec;
    for (const Fields& container : copy.Objects(list)) {
      if (!container) continue;
      NoteContainer(*container.Whole(), gpus, [&](std::string_view field, std::string_view reason) {
        ignored->OfContainer(container, field, reason);
      });
    }
  }
}

}  // namespace muster::local
