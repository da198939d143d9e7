// The agent's own log: one sentence a line, on stderr. Text for people, JSON lines for machines.
//
// Thread-safe. A message is written whole or not at all, and never blocks the caller for longer than one write(2).
// Fields are extra facts: text mode appends "key=value", JSON mode makes them members.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace muster::log {

enum class Level { kDebug, kInfo, kWarning, kError };
enum class Format { kText, kJson };

struct Options {
  Level level = Level::kInfo;
  Format format = Format::kText;
  std::string node;  // put into every line where not empty
};

using Fields = std::initializer_list<std::pair<std::string_view, std::string>>;

// Sets level and format for the process. Call before other threads start; until then text at kInfo.
void Configure(const Options& options);

void Debug(std::string_view message, Fields fields = {});
void Info(std::string_view message, Fields fields = {});
void Warning(std::string_view message, Fields fields = {});
void Error(std::string_view message, Fields fields = {});

// "debug|info|warning|error" in any case, and Python's names (WARN, CRITICAL); InvalidArgument names the text.
StatusOr<Level> ParseLevel(std::string_view text);
// "text" | "json".
StatusOr<Format> ParseFormat(std::string_view text);

}  // namespace muster::log
