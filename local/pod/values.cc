// SPDX-License-Identifier: Apache-2.0
#include "local/pod/values.h"

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "controller/api/lenient.h"
#include "controller/api/quantity.h"
#include "controller/plan/pod_fields.h"

namespace muster::local {

using namespace controller;

namespace {

// Quotes as Go's strconv.Quote does, except that all valid characters but control characters stay as they are.
std::string GoQuoted(std::string_view text) {
  constexpr std::string_view kSpecial = "\a\b\f\n\r\t\v\\\"", kLetters = "abfnrtv\\\"";
  std::string quoted = "\"";
  while (!text.empty()) {
    const Utf8Character character = FirstCharacter(text);
    const std::string_view bytes = text.substr(0, character.size);
    text.remove_prefix(character.size);
    const size_t special = kSpecial.find(bytes.front());
    if (special != std::string_view::npos) {
      quoted += {'\\', kLetters[special]};
    } else if (!character.valid || character.code < 0x20 || character.code == 0x7f) {
      for (char c : bytes) quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else if (character.code >= 0x80 && character.code < 0xa0) {
      quoted += fmt::format("\\u{:04x}", character.code);
    } else {
      quoted += bytes;
    }
  }
  return quoted + '"';
}

// key="value" lines, in the order of the keys.
std::string MapText(const Json& map) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : map.items()) {
    if (value.is_string()) lines.push_back(fmt::format("{}={}", key, GoQuoted(value.get_ref<const std::string&>())));
  }
  return Join(lines, "\n");
}

struct Subscripted {
  std::string_view path, key;
};

// "metadata.labels['x']"
std::optional<Subscripted> SplitSubscript(std::string_view path) {
  constexpr std::string_view kOpen = "['", kClose = "']";
  const size_t open = path.find(kOpen);
  if (!path.ends_with(kClose) || open == std::string_view::npos || open == 0) return std::nullopt;
  const size_t key = open + kOpen.size();
  if (key + kClose.size() > path.size()) return std::nullopt;
  return Subscripted{path.substr(0, open), path.substr(key, path.size() - kClose.size() - key)};
}

using ReadField = std::string (*)(const PodInput& input);
struct KnownField {
  std::string_view path;
  bool for_variables, for_files;
  ReadField read;
};
std::string AddressOf(const PodInput& input) { return input.place.address; }
constexpr KnownField kFields[] = {
    {"metadata.name", true, true, [](const PodInput& input) { return NameOf(input.pod); }},
    {"metadata.namespace", true, true,
     [](const PodInput& input) { return TextField(PartOf(input.pod, "metadata"), "namespace"); }},
    {"metadata.uid", true, true, [](const PodInput& input) { return UidOf(input.pod); }},
    {"metadata.labels", false, true,
     [](const PodInput& input) { return MapText(MapField(PartOf(input.pod, "metadata"), "labels")); }},
    {"metadata.annotations", false, true,
     [](const PodInput& input) { return MapText(MapField(PartOf(input.pod, "metadata"), "annotations")); }},
    {"spec.nodeName", true, false, [](const PodInput& input) { return input.place.machine; }},
    {"spec.serviceAccountName", true, false,
     [](const PodInput& input) {
       const std::string name = TextField(PartOf(input.pod, "spec"), "serviceAccountName");
       return name.empty() ? std::string("default") : name;
     }},
    {"status.hostIP", true, false, AddressOf},
    {"status.hostIPs", true, false, AddressOf},
    {"status.podIP", true, false, AddressOf},
    {"status.podIPs", true, false, AddressOf},
};

bool IsFor(const KnownField& field, FieldUse use) {
  return use == FieldUse::kVariable ? field.for_variables : field.for_files;
}

std::string KnownFields(FieldUse use) {
  std::vector<std::string> paths{"metadata.labels['KEY']", "metadata.annotations['KEY']"};
  for (const KnownField& field : kFields) {
    if (IsFor(field, use)) paths.emplace_back(field.path);
  }
  return Join(paths, ", ");
}

// The amount in a field of `object`; nullopt: it is missing, or wrong.
std::optional<Quantity> Amount(Fields object, const char* name) {
  const Json* value = object.Find(name);
  if (value == nullptr) return std::nullopt;
  const auto amount = ReadQuantity(*value);
  if (!amount.ok()) {
    object.Wrong(name, Message(amount.status()));
    return std::nullopt;
  }
  if (*amount < Quantity()) {
    object.Wrong(name, amount->Text(), "is less than 0");
    return std::nullopt;
  }
  return *amount;
}

// The two parts of "limits.NAME" or "requests.NAME".
struct ResourcePath {
  const char* kind;
  std::string name;
};
std::optional<ResourcePath> SplitResource(std::string_view path) {
  for (const char* kind : {"limits", "requests"}) {
    const std::string prefix = fmt::format("{}.", kind);
    if (!path.starts_with(prefix)) continue;
    const std::string name(path.substr(prefix.size()));
    const bool known = name == "cpu" || name == "memory" || name == "ephemeral-storage";
    if (known || name.starts_with("hugepages-")) return ResourcePath{kind, name};
  }
  return std::nullopt;
}

// CPUs are counted in thousandths.
int64_t ScaleOf(std::string_view resource) { return resource == "cpu" ? 1000 : 1; }

// In units of ScaleOf(). A missing request equals the limit, as the API server sets it. A missing limit is the amount
// that this machine has.
int64_t ResourceAmount(Fields container, const ResourcePath& of, const PodPlace& place) {
  Fields resources = container.Object("resources");
  for (const char* kind : {of.kind, "limits"}) {
    const auto amount = Amount(resources.Object(kind), of.name.c_str());
    const bool counts = amount && (!amount->IsZero() || std::string_view(of.kind) == "requests");
    if (counts) return amount->Times(ScaleOf(of.name)).Units();
  }
  if (std::string_view(of.kind) == "requests") return 0;
  return of.name == "cpu" ? place.milli_cpus : of.name == "memory" ? place.memory_bytes : 0;
}

bool IsDivisor(std::string_view resource, const Quantity& divisor) {
  const std::vector<std::string_view> of_cpus{"1", "1m"};
  const std::vector<std::string_view> of_bytes{"1",   "1k",  "1M",  "1G",  "1T",  "1P", "1E",
                                               "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"};
  const auto& allowed = resource == "cpu" ? of_cpus : of_bytes;
  return std::any_of(allowed.begin(), allowed.end(), [&](std::string_view text) {
    const auto known = ParseQuantity(text);
    return known.ok() && *known == divisor;
  });
}

// In units of ScaleOf(). 0 is the field's default and means 1.
int64_t Divisor(Fields ref, std::string_view resource) {
  const Quantity divisor = Amount(ref, "divisor").value_or(Quantity());
  if (divisor.IsZero()) return ScaleOf(resource);
  if (!IsDivisor(resource, divisor)) {
    ref.Wrong("divisor", divisor.Text(),
              resource == "cpu" ? "is neither 1 nor 1m" : "is not one of 1, 1k, 1M .. 1E, 1Ki, 1Mi .. 1Ei");
    return 1;
  }
  return divisor.Times(ScaleOf(resource)).Units();
}

// The container of the pod that `ref` names, else `own`, with its path. The Fields are false if there is none.
Fields NamedContainer(Fields ref, const Json* own, const PodInput& input) {
  const std::string name = own == nullptr ? ref.NeedText("containerName") : ref.Text("containerName");
  const Json* found = name.empty() ? own : nullptr;
  for (const char* list : {"containers", "initContainers"}) {
    if (found == nullptr && !name.empty()) found = FindNamed(PartOf(input.pod, "spec"), list, name);
  }
  if (found == nullptr && !name.empty()) {
    ref.Wrong(
        "containerName", name,
        fmt::format("is not a container of the pod; it has: {}", NamesIn(PartOf(input.pod, "spec"), "containers")));
  }
  return Fields(found, fmt::format("container '{}'", found == nullptr ? "" : TextField(*found, "name")),
                input.complaints);
}

}  // namespace

std::string FieldValue(Fields ref, FieldUse use, const PodInput& input) {
  const std::string path = ref.NeedText("fieldPath");
  if (const auto subscripted = SplitSubscript(path)) {
    for (const char* map : {"labels", "annotations"}) {
      if (subscripted->path != fmt::format("metadata.{}", map) || subscripted->key.empty()) continue;
      const std::string key(subscripted->key);
      return TextField(MapField(PartOf(input.pod, "metadata"), map), key.c_str());
    }
  }
  for (const KnownField& field : kFields) {
    if (field.path == path && IsFor(field, use)) return field.read(input);
  }
  if (!path.empty()) ref.Wrong("fieldPath", path, fmt::format("is not one of {}", KnownFields(use)));
  return "";
}

std::string ResourceValue(Fields ref, const Json* own, const PodInput& input) {
  Fields container = NamedContainer(ref, own, input);
  const std::string resource = ref.NeedText("resource");
  if (!container || resource.empty()) return "";
  const auto path = SplitResource(resource);
  if (!path) {
    ref.Wrong("resource", resource,
              "is not one of limits.R, requests.R, where R is cpu, memory, ephemeral-storage or hugepages-SIZE");
    return "";
  }
  const int64_t amount = ResourceAmount(container, *path, input.place);
  const int64_t divisor = Divisor(ref, path->name);
  return fmt::format("{}", amount / divisor + (amount % divisor > 0 ? 1 : 0));
}

ResourceLimits LimitsOf(Fields object) {
  const auto limit = [&object](const char* resource, int64_t scale) {
    const auto amount = Amount(object.Object("resources").Object("limits"), resource);
    return amount && !amount->IsZero() ? std::optional(amount->Times(scale).Units()) : std::nullopt;
  };
  return {.milli_cpus = limit("cpu", 1000), .memory_bytes = limit("memory", 1)};
}

}  // namespace muster::local
