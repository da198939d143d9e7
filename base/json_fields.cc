// SPDX-License-Identifier: Apache-2.0
#include "base/json_fields.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace muster {

namespace {

// What a value takes in memory, about: itself, and the block that a list, an object, a member or a text allocates.
constexpr size_t kValue = sizeof(Json), kList = 32, kObject = 64, kMember = 96, kText = 48;

// Builds a document from the events of nlohmann's parser. Its own builder looks at all earlier elements of a list
// whenever one ends, so its time grows with the square of their number.
class Builder {
 public:
  Builder(int deepest, LeftOut without, size_t most_memory)
      : deepest_(deepest), without_(without), most_memory_(most_memory) {}

  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  bool null() { return Add(nullptr, 0); }
  bool boolean(bool value) { return Add(value, 0); }
  bool number_integer(number_integer_t value) { return Add(value, 0); }
  bool number_unsigned(number_unsigned_t value) { return Add(value, 0); }
  bool number_float(number_float_t value, const string_t&) { return Add(value, 0); }
  bool string(string_t& value) { return Add(std::move(value), kText + value.size()); }
  bool binary(binary_t&) { return false; }  // JSON text has none
  bool start_object(size_t) { return Open(Json::value_t::object, kObject); }
  bool start_array(size_t) { return Open(Json::value_t::array, kList); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool key(string_t& name) {
    if (skipped_ > 0) return true;
    const int level = static_cast<int>(open_.size());
    left_out_ = std::any_of(without_.fields.begin(), without_.fields.end(), [&](const JsonPlace& field) {
      return field.level + without_.below == level && field.name == name;
    });
    if (!left_out_) name_ = std::move(name);
    return true;
  }
  template <class Error>
  bool parse_error(size_t position, const std::string&, const Error& error) {
    wrong_at_ = position;
    out_of_range_ = error.id == 406;
    return false;
  }

  Json& document() { return document_; }
  bool too_deep() const { return too_deep_; }
  bool too_large() const { return memory_ > most_memory_; }
  bool out_of_range() const { return out_of_range_; }
  size_t wrong_at() const { return wrong_at_; }  // position of the byte after the wrong one

 private:
  // Where the next value belongs. Null: it is left out, or it exceeds the memory.
  template <class Value>
  Json* Place(Value&& value, size_t memory) {
    if (std::exchange(left_out_, false) || skipped_ > 0) return nullptr;
    const bool member = !open_.empty() && open_.back()->is_object();
    memory_ += memory + (member ? kMember + name_.size() : kValue);
    if (too_large()) return nullptr;
    if (open_.empty()) return &(document_ = std::forward<Value>(value));
    if (member) return &(open_.back()->get_ref<Json::object_t&>()[std::move(name_)] = std::forward<Value>(value));
    return &open_.back()->get_ref<Json::array_t&>().emplace_back(std::forward<Value>(value));
  }
  template <class Value>
  bool Add(Value&& value, size_t memory) {
    Place(std::forward<Value>(value), memory);
    return !too_large();
  }
  bool Open(Json::value_t kind, size_t memory) {
    const bool deeper = static_cast<int>(open_.size()) > deepest_;
    if (deeper && !left_out_ && skipped_ == 0) too_deep_ = true;
    Json* place = deeper ? (left_out_ = false, nullptr) : Place(kind, memory);
    if (place == nullptr) return ++skipped_, !too_large();
    open_.push_back(place);
    return true;
  }
  bool Close() {
    skipped_ > 0 ? static_cast<void>(--skipped_) : open_.pop_back();
    return true;
  }

  const int deepest_;
  const LeftOut without_;
  const size_t most_memory_;
  Json document_ = Json::value_t::discarded;
  std::vector<Json*> open_;  // lists and objects that are not complete; only the innermost one grows
  std::string name_;         // of the next member
  bool left_out_ = false;    // the next value
  int skipped_ = 0;          // levels that are open and not stored
  size_t memory_ = 0, wrong_at_ = 0;
  bool too_deep_ = false, out_of_range_ = false;
};

// "line 3, column 5" of the byte before `end`.
std::string PlaceOf(std::string_view text, size_t end) {
  const std::string_view before = text.substr(0, end == 0 ? 0 : std::min(end, text.size() + 1) - 1);
  const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t column = before.size() - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  return fmt::format("line {}, column {}", line, column);
}

}  // namespace

StatusOr<Json> ReadJson(std::string_view text, int deepest, size_t most_memory) {
  Builder builder(deepest, {}, most_memory);
  const bool whole = Json::sax_parse(text, &builder);
  if (builder.too_large()) {
    return absl::ResourceExhaustedError(
        fmt::format("has too many values: they would take more than {} MiB of memory", most_memory >> 20));
  }
  if (builder.out_of_range()) return absl::InvalidArgumentError("has a number that is out of range");
  if (!whole) {
    return absl::InvalidArgumentError(fmt::format("is not JSON: wrong at {}", PlaceOf(text, builder.wrong_at())));
  }
  if (builder.too_deep()) {
    return absl::InvalidArgumentError(fmt::format("is nested more than {} levels deep", deepest + 1));
  }
  return std::move(builder.document());
}

Json ReadJsonTop(std::string_view text, int deepest, LeftOut without, size_t most_memory) {
  Builder builder(deepest, without, most_memory);
  return Json::sax_parse(text, &builder) ? std::move(builder.document()) : Json(Json::value_t::discarded);
}

Json ReadJsonHead(std::string_view text, int deepest) {
  Builder builder(deepest, {}, kMostJsonMemory);
  Json::sax_parse(text, &builder);
  return std::move(builder.document());
}

const Json* FindField(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string TextField(const Json& object, const char* name) {
  const Json* found = FindField(object, name);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

void JsonFields::Need(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (Find(name) == nullptr) Wrong(name, "there");
  }
}

std::string JsonFields::Text(const char* name) {
  const Json* value = Find(name);
  if (value == nullptr) return "";
  if (!value->is_string()) return Wrong(name, "a text"), "";
  return value->get<std::string>();
}

bool JsonFields::Flag(const char* name) {
  const Json* value = Find(name);
  if (value == nullptr) return false;
  if (!value->is_boolean()) return Wrong(name, "true or false"), false;
  return value->get<bool>();
}

std::optional<int64_t> JsonFields::Number(const char* name, int64_t least, int64_t most) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  const bool fits = value->is_number_integer() &&
                    (!value->is_number_unsigned() || std::in_range<int64_t>(value->get<uint64_t>())) &&
                    value->get<int64_t>() >= least && value->get<int64_t>() <= most;
  if (!fits) return Wrong(name, fmt::format("a whole number from {} to {}", least, most)), std::nullopt;
  return value->get<int64_t>();
}

std::optional<double> JsonFields::Real(const char* name, double least, double most) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : std::numeric_limits<double>::quiet_NaN();
  if (number >= least && number <= most) return number;
  return Wrong(name, fmt::format("a number from {} to {}", least, most)), std::nullopt;
}

std::vector<std::string> JsonFields::Texts(const char* name, size_t most) {
  std::vector<std::string> texts;
  const Json* value = Find(name);
  if (value == nullptr) return texts;
  if (!value->is_array()) return Wrong(name, "a list of texts"), texts;
  for (size_t at = value->size() - std::min(value->size(), most); at < value->size(); ++at) {
    if (!(*value)[at].is_string()) return Wrong(name, "a list of texts"), texts;
    texts.push_back((*value)[at].get<std::string>());
  }
  return texts;
}

void JsonFields::Wrong(const char* name, std::string_view wanted) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(fmt::format("{}'{}' is not {}", where_, name, wanted));
}

}  // namespace muster
