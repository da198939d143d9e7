#include "base/json_fields.h"

#include <algorithm>

#include "base/text.h"

namespace muster {

namespace {

bool Begins(Json::parse_event_t event) {
  return event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
}

// "line 3, column 5" of the byte before `end`.
std::string PlaceOf(std::string_view text, size_t end) {
  const std::string_view before = text.substr(0, end == 0 ? 0 : std::min(end, text.size() + 1) - 1);
  const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t column = before.size() - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  return fmt::format("line {}, column {}", line, column);
}

}  // namespace

StatusOr<Json> ReadJson(std::string_view text, int deepest) {
  bool too_deep = false;
  auto keep = [&](int depth, Json::parse_event_t event, Json&) {
    const bool kept = !Begins(event) || depth <= deepest;
    too_deep = too_deep || !kept;
    return kept;
  };
  try {
    Json json = Json::parse(text, keep);
    if (!too_deep) return json;
    return absl::InvalidArgumentError(fmt::format("is nested more than {} levels deep", deepest + 1));
  } catch (const Json::parse_error& error) {
    return absl::InvalidArgumentError(fmt::format("is no JSON: wrong at {}", PlaceOf(text, error.byte)));
  } catch (const Json::exception&) {  // a number beyond the range of double
    return absl::InvalidArgumentError("has a number that is out of range");
  }
}

Json ReadJsonTop(std::string_view text, int deepest, LeftOut without) {
  auto keep = [deepest, without](int depth, Json::parse_event_t event, Json& parsed) {
    if (event != Json::parse_event_t::key) return !Begins(event) || depth <= deepest;
    return depth != without.level || without.name.empty() || parsed.get_ref<const std::string&>() != without.name;
  };
  return Json::parse(text, keep, /*allow_exceptions=*/false);
}

const Json* FindField(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  auto found = object.find(name);
  return found == object.end() || found->is_null() || found->is_discarded() ? nullptr : &*found;
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
