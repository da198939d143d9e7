// SPDX-License-Identifier: Apache-2.0
// Reads JSON from outside: files of other versions, answers of servers. JsonFields names the field that has a wrong
// type or that Need() misses; FindField and TextField return nothing then. Pure. Safe for untrusted input.
//
// Include this header in .cc files only: nlohmann's header is heavy.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace muster {

using Json = nlohmann::json;

// Levels of nesting that suffice for the fields of any document read here.
inline constexpr int kFieldLevels = 8;

// The most memory, about, that a parsed document takes unless the caller says otherwise, in bytes. A short text can
// take twenty times its own size: "[{},{}]".
inline constexpr size_t kMostJsonMemory = size_t{64} << 20;

// The time of all three functions is linear in the length of `text`.
//
// Parses all of `text`. InvalidArgument: it is not JSON (with line and column), or an object or list lies inside more
// than `deepest` others. ResourceExhausted: its values take more than `most_memory` bytes. Deeper levels are not
// stored, so a hostile text cannot exhaust the stack.
StatusOr<Json> ReadJson(std::string_view text, int deepest, size_t most_memory = kMostJsonMemory);

// A member that is not stored: its name, and the level of the object that has it; 1 is the outermost.
struct JsonPlace {
  std::string_view name;
  int level = 1;
};
struct LeftOut {
  std::span<const JsonPlace> fields;
  int below = 0;  // added to each level: the object of `fields` lies inside so many others
};

// Parses only the outer levels of `text`: leaves out objects and lists inside more than `deepest` others, and the
// members `without`. For answers of servers, which may contain anything below the fields that are read. Returns a
// discarded value (is_discarded()) if `text` is not JSON, or if its values take more than `most_memory` bytes.
Json ReadJsonTop(std::string_view text, int deepest, LeftOut without = {}, size_t most_memory = kMostJsonMemory);

// Parses the beginning of a longer text: what is complete before its end. Discarded: nothing is.
Json ReadJsonHead(std::string_view text, int deepest);

// One line, or `indent` spaces per level. Bytes that are no UTF-8 become U+FFFD. Also for nlohmann's ordered_json.
template <class AnyJson>
std::string WriteJson(const AnyJson& json, int indent = -1) {
  return json.dump(indent, ' ', false, AnyJson::error_handler_t::replace);
}

// Null if `object` is not an object, or the field `name` is missing or null.
const Json* FindField(const Json& object, const char* name);

// Null without a value.
template <class T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
// Empty if the field is missing or no text.
std::string TextField(const Json& object, const char* name);

// Reads the fields of one object and keeps the first error: "{where}'{name}' is not {wanted}". A null field counts as
// missing. `object` must outlive this reader.
class JsonFields {
 public:
  JsonFields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  const Json* Find(const char* name) const { return FindField(object_, name); }
  void Need(std::initializer_list<const char*> names);

  std::string Text(const char* name);
  bool Flag(const char* name);
  std::optional<int64_t> Number(const char* name, int64_t least = std::numeric_limits<int64_t>::min(),
                                int64_t most = std::numeric_limits<int64_t>::max());
  std::optional<double> Real(const char* name, double least, double most);
  std::vector<std::string> Texts(const char* name,
                                 size_t most = std::numeric_limits<size_t>::max());  // the last `most`

  void Wrong(const char* name, std::string_view wanted);
  const Status& status() const { return status_; }  // InvalidArgument

 private:
  const Json& object_;
  const std::string where_;
  Status status_;
};

}  // namespace muster
