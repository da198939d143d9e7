// The agent's own log: one sentence a line, on stderr. Text for people, JSON lines for machines.
//
// Thread-safe. A stderr that nobody reads does not stop the caller: after kStderrPatience lines are dropped until there
// is room again, which one line then says. An agent that has a loop gives its console as outlet, which does not wait at
// all. Fields are extra facts: text mode appends "key=value", JSON mode makes them members.
#pragma once

#include <chrono>
#include <functional>
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

inline constexpr std::chrono::milliseconds kStderrPatience{2000};

// Sets level and format for the process. Call before other threads start; until then text at kInfo.
void Configure(const Options& options);

// Takes lines, with their line feed, in place of stderr; empty: stderr again. Called from any thread, one at a time;
// must not block and must not log. No call is under way once SetOutlet has returned.
using Outlet = std::function<void(std::string line)>;
void SetOutlet(Outlet outlet);

void Debug(std::string_view message, Fields fields = {});
void Info(std::string_view message, Fields fields = {});
void Warning(std::string_view message, Fields fields = {});
void Error(std::string_view message, Fields fields = {});

// "debug|info|warning|error" in any case, and Python's names (WARN, CRITICAL); InvalidArgument names the text.
StatusOr<Level> ParseLevel(std::string_view text);
// "text" | "json".
StatusOr<Format> ParseFormat(std::string_view text);

}  // namespace muster::log
