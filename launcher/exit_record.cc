#include "launcher/exit_record.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace muster::launcher {
namespace {

using nlohmann::json;

// "1700000000", 1700000000 or 1700000000.5; 0 for anything else.
int64_t Seconds(const json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  double seconds = 0;
  if (value.is_number()) seconds = value.get<double>();
  if (value.is_string()) seconds = ParseDouble(value.get_ref<const std::string&>()).value_or(0);
  return seconds >= 0 && seconds < 1e15 ? static_cast<int64_t>(seconds) : 0;
}

std::string Text(const json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

StatusOr<ErrorFile> ParseErrorFile(const std::string& text) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded() || !document.is_object())
    return absl::InvalidArgumentError("an error file is no JSON object");
  auto message = document.find("message");
  if (message == document.end()) return absl::InvalidArgumentError("an error file has no \"message\"");
  ErrorFile file;
  const json* extra = &document;
  if (message->is_string()) {
    file.message = message->get<std::string>();
    file.callstack = Text(document, "py_callstack");
  } else if (message->is_object()) {
    file.message = Text(*message, "message");
    auto info = message->find("extraInfo");
    if (info != message->end() && info->is_object()) {
      extra = &*info;
      file.callstack = Text(*info, "py_callstack");
    }
  } else {
    return absl::InvalidArgumentError("\"message\" of an error file is neither text nor object");
  }
  auto when = extra->find("timestamp");
  if (when != extra->end()) file.unix_seconds = Seconds(*when);
  return file;
}

}  // namespace muster::launcher
