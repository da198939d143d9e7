// JSON that somebody else wrote: files of other versions, answers of servers. What is missing, null or of another kind
// is told with its name (JsonFields), or read as nothing where the caller can do without. Pure; outside bytes.
//
// nlohmann's header is heavy: this one is for .cc files.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace muster {

using Json = nlohmann::json;

// Levels of nesting that suffice for the fields of any document read here.
inline constexpr int kFieldLevels = 8;

// All of `text`, or why not. InvalidArgument: it is no JSON (with line and column), or an object or list lies inside
// more than `deepest` others. What is nested deeper costs no memory, so a hostile text cannot exhaust the stack.
StatusOr<Json> ReadJson(std::string_view text, int deepest);

// The outer levels of a document of which only those are read: objects and lists inside more than `deepest` others are
// left out, and the field `without`. For answers of servers, which may hold anything below the fields that are asked
// for. Discarded where `text` is no JSON.
struct LeftOut {
  std::string_view name;  // empty: nothing
  int level = 1;          // of its object: 1 is the outermost
};
Json ReadJsonTop(std::string_view text, int deepest, LeftOut without = {});

// One line, or `indent` spaces a level. Bytes that are no UTF-8 become U+FFFD. For nlohmann's ordered_json too.
template <class AnyJson>
std::string WriteJson(const AnyJson& json, int indent = -1) {
  return json.dump(indent, ' ', false, AnyJson::error_handler_t::replace);
}

// Null: `object` is none, or has no `name`, or null there.
const Json* FindField(const Json& object, const char* name);
// Empty: it is not there, or is no text.
std::string TextField(const Json& object, const char* name);

// Reads the fields of one object and keeps the first complaint: "{where}'{name}' is not {wanted}". Absent and null are
// the same. `object` must outlive it.
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
