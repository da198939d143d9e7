// SPDX-License-Identifier: Apache-2.0
#include "launcher/exit_record.h"

#include <algorithm>
#include <csignal>
#include <iterator>

#include "base/json_fields.h"
#include "base/text.h"

namespace muster::launcher {
namespace {

// "1700000000", 1700000000 or 1700000000.5; 0 for anything else.
int64_t Seconds(const Json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  double seconds = 0;
  if (value.is_number()) seconds = value.get<double>();
  if (value.is_string()) seconds = ParseDouble(value.get_ref<const std::string&>()).value_or(0);
  return seconds >= 0 && seconds < 1e15 ? static_cast<int64_t>(seconds) : 0;
}

}  // namespace

bool IsFromOutside(int signal) {
  constexpr int kOwn[] = {0, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
  return std::find(std::begin(kOwn), std::end(kOwn), signal) == std::end(kOwn);
}

StatusOr<ErrorFile> ParseErrorFile(const std::string& text) {
  const Json document = ReadJsonTop(text, kFieldLevels);
  if (!document.is_object()) return absl::InvalidArgumentError("an error file is not a JSON object");
  const Json* message = FindField(document, "message");
  if (message == nullptr) return absl::InvalidArgumentError("an error file has no \"message\"");
  ErrorFile file;
  const Json* extra = &document;
  if (message->is_string()) {
    file.message = message->get<std::string>();
  } else if (message->is_object()) {
    file.message = TextField(*message, "message");
    const Json* info = FindField(*message, "extraInfo");
    if (info != nullptr && info->is_object()) extra = info;
  } else {
    return absl::InvalidArgumentError("\"message\" of an error file is neither text nor object");
  }
  file.callstack = TextField(*extra, "py_callstack");
  if (const Json* when = FindField(*extra, "timestamp")) file.unix_seconds = Seconds(*when);
  return file;
}

}  // namespace muster::launcher
