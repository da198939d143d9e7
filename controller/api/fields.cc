// SPDX-License-Identifier: Apache-2.0
#include "controller/api/fields.h"

#include <algorithm>
#include <cmath>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/nearest_names.h"

namespace muster::controller {
namespace {

bool HasLettersOfALabel(std::string_view name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !name.empty() && name.front() != '-' && name.back() != '-' && std::all_of(name.begin(), name.end(), fits);
}

}  // namespace

std::string PathOf(std::string_view parent, std::string_view name) {
  return parent.empty() ? std::string(name) : fmt::format("{}.{}", parent, name);
}

std::string PathOf(std::string_view parent, size_t index) { return fmt::format("{}[{}]", parent, index); }

std::string Shown(const Json& value) {
  if (value.is_string()) return Quoted(value.get_ref<const std::string&>());
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return WriteJson(value);
}

bool IsLabel(std::string_view name) { return IsDnsLabel(name) && name.front() >= 'a' && name.front() <= 'z'; }

bool IsDnsLabel(std::string_view name) { return name.size() <= kLongestLabel && HasLettersOfALabel(name); }

bool IsDnsName(std::string_view name) {
  constexpr size_t kLongestName = 253;
  const auto labels = Split(name, '.');
  return !name.empty() && name.size() <= kLongestName && std::all_of(labels.begin(), labels.end(), HasLettersOfALabel);
}

void Complaints::Wrong(std::string_view path, std::string_view what) {
  if (!status_.ok()) return;
  // Keys are untrusted text: the path is escaped like a value, but shown without quotes.
  constexpr size_t kMostPath = 1000;
  const std::string quoted = Quoted(path, kMostPath);
  const std::string_view shown = std::string_view(quoted).substr(1, quoted.size() - 2);
  status_ = absl::InvalidArgumentError(shown.empty() ? std::string(what) : fmt::format("{}: {}", shown, what));
}

void Complaints::Wrong(std::string_view path, const Json& value, std::string_view what) {
  if (status_.ok()) Wrong(path, fmt::format("{} {}", Shown(value), what));
}

void Complaints::Wrong(std::string_view path, std::string_view value, std::string_view what) {
  if (status_.ok()) Wrong(path, fmt::format("{} {}", Quoted(value), what));
}

std::optional<int64_t> WholeNumber(const Json& value) {
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    return std::in_range<int64_t>(number) ? std::optional(static_cast<int64_t>(number)) : std::nullopt;
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  constexpr double kLimit = 9007199254740992.0;  // a double beyond 2^53 is not exact
  if (!(number >= -kLimit && number <= kLimit) || std::trunc(number) != number) return std::nullopt;
  return static_cast<int64_t>(number);
}

Fields::Fields(const Json* object, std::string path, Complaints* complaints)
    : object_(object), path_(std::move(path)), complaints_(complaints) {
  if (object_ == nullptr || object_->is_object()) return;
  if (!object_->is_null()) complaints_->Wrong(path_, *object_, "is not an object");
  object_ = nullptr;
}

const Json* Fields::Find(const char* name) const {
  if (complaints_->unknown() != nullptr) asked_.emplace_back(name);
  return object_ == nullptr ? nullptr : FindField(*object_, name);
}

void Fields::NoOthers(std::string_view others, const Fields* inner) const {
  if (complaints_->unknown() == nullptr || object_ == nullptr) return;
  const auto has = [](const auto& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> known = asked_;
  for (const std::string_view other : Words(others)) known.emplace_back(other);
  for (const auto& [name, value] : object_->items()) {
    if (has(known, name)) continue;
    const std::vector<std::string> nearest = NearestNames(name, known);
    const bool is_misplaced = inner != nullptr && has(inner->asked_, name);
    const std::string path = PathOf(name) + (is_misplaced ? fmt::format(" (it belongs to {})", inner->path()) : "");
    complaints_->unknown()->emplace(path, nearest.empty() ? "" : nearest.front());
  }
}

Json Fields::Copy(const char* name) const {
  const Json* found = Find(name);
  return found == nullptr ? Json() : *found;
}

std::string Fields::Text(const char* name) {
  const Json* value = Find(name);
  if (value == nullptr) return "";
  if (value->is_string()) return value->get<std::string>();
  complaints_->Wrong(PathOf(name), *value,
                     value->is_primitive() ? "is not a string; put it in quotes" : "is not a string");
  return "";
}

std::string Fields::NeedText(const char* name) {
  std::string text = Text(name);
  if (text.empty()) Wrong(name, "it is missing");
  return text;
}

bool Fields::Flag(const char* name, bool otherwise) {
  const Json* value = Find(name);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  complaints_->Wrong(PathOf(name), *value, "is neither true nor false");
  return otherwise;
}

std::optional<int64_t> Fields::Number(const char* name, int64_t least, int64_t most) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  const auto number = WholeNumber(*value);
  if (!number) return complaints_->Wrong(PathOf(name), *value, "is not a whole number"), std::nullopt;
  if (*number >= least && *number <= most) return number;
  complaints_->Wrong(PathOf(name), *value,
                     *number < least ? fmt::format("is less than {}", least) : fmt::format("is more than {}", most));
  return std::nullopt;
}

std::optional<int> Fields::Int(const char* name, int least, int most) {
  const auto number = Number(name, least, most);
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::map<std::string, std::string> Fields::TextMap(const char* name) {
  std::map<std::string, std::string> texts;
  const Fields map = Object(name);
  if (!map) return texts;
  for (const auto& [key, value] : map.object_->items()) {
    if (value.is_string()) {
      texts.emplace(key, value.get<std::string>());
    } else if (!value.is_null()) {
      complaints_->Wrong(map.PathOf(key), value,
                         value.is_primitive() ? "is not a string; put it in quotes" : "is not a string");
    }
  }
  return texts;
}

std::optional<std::vector<std::string>> Fields::Texts(const char* name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  if (!value->is_array()) return complaints_->Wrong(PathOf(name), *value, "is not a list of strings"), std::nullopt;
  for (size_t i = 0; i < value->size(); ++i) {
    const Json& item = (*value)[i];
    if (item.is_string()) {
      texts.push_back(item.get<std::string>());
    } else {
      complaints_->Wrong(controller::PathOf(PathOf(name), i), item,
                         item.is_primitive() ? "is not a string; put it in quotes" : "is not a string");
    }
  }
  return texts;
}

std::string Fields::Word(const char* name, const std::vector<std::string_view>& words) {
  std::string text = Text(name);
  if (text.empty()) return text;
  for (std::string_view word : words) {
    if (text == word) return text;
  }
  complaints_->Wrong(PathOf(name), std::string_view(text), fmt::format("is not one of {}", fmt::join(words, ", ")));
  return text;
}

Json LabelsAndAnnotations(Fields metadata) {
  Json kept;
  for (const char* name : {"labels", "annotations"}) {
    const auto texts = metadata.TextMap(name);
    if (!texts.empty()) kept[name] = texts;
  }
  return kept;
}

Fields Fields::Object(const char* name) { return Fields(Find(name), PathOf(name), complaints_); }

std::vector<Fields> Fields::Objects(const char* name) {
  std::vector<Fields> objects;
  const Json* value = Find(name);
  if (value == nullptr) return objects;
  if (!value->is_array()) return complaints_->Wrong(PathOf(name), *value, "is not a list"), objects;
  objects.reserve(value->size());
  for (size_t i = 0; i < value->size(); ++i) {
    const std::string path = controller::PathOf(PathOf(name), i);
    if ((*value)[i].is_null()) complaints_->Wrong(path, "null is not an object");
    objects.emplace_back(&(*value)[i], path, complaints_);
  }
  return objects;
}

}  // namespace muster::controller
