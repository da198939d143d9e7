// SPDX-License-Identifier: Apache-2.0
#include "controller/api/strategic_merge.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "controller/api/fields.h"

namespace muster::controller {
namespace {

constexpr int kDeepest = 100;
constexpr char kPatch[] = "$patch";
constexpr char kRetainKeys[] = "$retainKeys";

struct KeyedList {
  std::string_view field;
  std::array<const char*, 2> keys;  // the second may be null
  bool one_of = false;              // an item has its name and one other field
};

constexpr KeyedList kKeyedLists[] = {
    {"replicatedJobs", {"name", nullptr}},
    {"containers", {"name", nullptr}},
    {"initContainers", {"name", nullptr}},
    {"env", {"name", nullptr}, /*one_of=*/true},
    {"volumes", {"name", nullptr}, /*one_of=*/true},
    {"imagePullSecrets", {"name", nullptr}},
    {"schedulingGates", {"name", nullptr}},
    {"claims", {"name", nullptr}},
    {"volumeMounts", {"mountPath", nullptr}},
    {"volumeDevices", {"devicePath", nullptr}},
    {"ports", {"containerPort", "protocol"}},
    {"topologySpreadConstraints", {"topologyKey", "whenUnsatisfiable"}},
};

const KeyedList* KeysOf(std::string_view field) {
  const auto found = std::find_if(std::begin(kKeyedLists), std::end(kKeyedLists),
                                  [&](const KeyedList& list) { return list.field == field; });
  return found == std::end(kKeyedLists) ? nullptr : &*found;
}

bool IsDirective(std::string_view name) { return name.starts_with('$'); }

class Merge {
 public:
  explicit Merge(Complaints& complaints) : complaints_(complaints) {}

  // `original` with `patch` over it.
  Json Value(Json original, const Json& patch, std::string_view field, const std::string& path, int depth) {
    if (depth > kDeepest) {
      complaints_.Wrong(path, fmt::format("it is nested more than {} levels deep", kDeepest));
      return Json();
    }
    if (patch.is_object()) return Object(std::move(original), patch, /*one_of=*/false, path, depth);
    const KeyedList* list = patch.is_array() ? KeysOf(field) : nullptr;
    return list == nullptr ? patch : List(std::move(original), patch, *list, path, depth);
  }

 private:
  // $patch of `object`; "merge" if it has none. Complains of another word than merge, replace, delete.
  std::string DirectiveOf(const Json& object, const std::string& path) {
    const Json* directive = FindField(object, kPatch);
    if (directive == nullptr) return "merge";
    std::string text = directive->is_string() ? directive->get<std::string>() : "";
    if (text != "merge" && text != "replace" && text != "delete") {
      complaints_.Wrong(PathOf(path, kPatch), *directive, "is not one of delete, replace, merge");
    }
    return text;
  }

  Json Object(Json original, const Json& patch, bool one_of, const std::string& path, int depth) {
    const std::string directive = DirectiveOf(patch, path);
    if (directive == "delete") return Json();
    if (directive == "replace" || !original.is_object()) original = Json::object();
    RetainKeys(original, patch, path);
    if (one_of) KeepOne(original, patch);
    for (const auto& [name, value] : patch.items()) {
      if (IsDirective(name)) {
        if (name != kPatch && name != kRetainKeys && !name.starts_with("$setElementOrder/")) {
          complaints_.Wrong(PathOf(path, name), "this directive is not known; leave it out");
        }
        continue;
      }
      if (value.is_null()) {
        original.erase(name);
        continue;
      }
      Json field;
      if (const auto found = original.find(name); found != original.end()) field = std::move(*found);
      Json merged = Value(std::move(field), value, name, PathOf(path, name), depth + 1);
      if (merged.is_null()) {
        original.erase(name);
      } else {
        original[name] = std::move(merged);
      }
    }
    return original;
  }

  void RetainKeys(Json& original, const Json& patch, const std::string& path) {
    const Json* kept = FindField(patch, kRetainKeys);
    if (kept == nullptr) return;
    if (!kept->is_array()) return complaints_.Wrong(PathOf(path, kRetainKeys), *kept, "is not a list of names");
    for (auto field = original.begin(); field != original.end();) {
      const bool keep = std::find(kept->begin(), kept->end(), field.key()) != kept->end();
      field = keep ? std::next(field) : original.erase(field);
    }
  }

  // If the patch gives a field beside the name, removes the original's fields that the patch does not give.
  static void KeepOne(Json& original, const Json& patch) {
    const auto gives = [](const Json& object, const std::string& name) {
      return name != "name" && !IsDirective(name) && !object[name].is_null();
    };
    bool any = false;
    for (const auto& field : patch.items()) any = any || gives(patch, field.key());
    if (!any) return;
    for (auto field = original.begin(); field != original.end();) {
      const bool keep = field.key() == "name" || FindField(patch, field.key().c_str()) != nullptr;
      field = keep ? std::next(field) : original.erase(field);
    }
  }

  // The item's key as a text. Different keys give different texts. Empty: the item has no key.
  static std::string KeyOf(const Json& item, const KeyedList& list) {
    const Json* first = FindField(item, list.keys[0]);
    if (first == nullptr) return "";
    std::string key = WriteJson(*first);
    if (list.keys[1] == nullptr) return key;
    const Json* second = FindField(item, list.keys[1]);
    // A port without a protocol is a TCP port.
    return fmt::format("{} {}", key,
                       second == nullptr && list.field == "ports" ? "\"TCP\""
                       : second == nullptr                        ? ""
                                                                  : WriteJson(*second));
  }

  Json List(Json original, const Json& patch, const KeyedList& list, const std::string& path, int depth) {
    const auto replaces = [](const Json& item) { return TextField(item, kPatch) == "replace" && item.size() == 1; };
    if (!original.is_array() || std::any_of(patch.begin(), patch.end(), replaces)) original = Json::array();
    std::unordered_map<std::string, size_t> places;
    for (size_t i = 0; i < original.size(); ++i) {
      const std::string key = KeyOf(original[i], list);
      if (!key.empty()) places.emplace(key, i);
    }
    for (size_t i = 0; i < patch.size(); ++i) {
      const Json& item = patch[i];
      if (replaces(item)) continue;
      const std::string item_path = PathOf(path, i);
      const std::string key = KeyOf(item, list);
      if (key.empty()) {
        complaints_.Wrong(item_path, fmt::format("it has no {}, by which it is merged", list.keys[0]));
        continue;
      }
      const auto [place, added] = places.emplace(key, original.size());
      if (added) original.push_back(Json());
      Json& target = original[place->second];
      target = Object(std::move(target), item, list.one_of, item_path, depth + 1);
    }
    // A deleted item is null by now.
    original.erase(std::remove_if(original.begin(), original.end(), [](const Json& item) { return item.is_null(); }),
                   original.end());
    return original;
  }

  Complaints& complaints_;
};

}  // namespace

StatusOr<Json> StrategicMerge(Json original, const Json& patch, std::string_view field) {
  Complaints complaints;
  Json merged = Merge(complaints).Value(std::move(original), patch, field, std::string(field), 0);
  MUSTER_RETURN_IF_ERROR(complaints.status());
  return merged;
}

}  // namespace muster::controller
