// SPDX-License-Identifier: Apache-2.0
// The log of this process: one sentence per line, on stderr. Text for people, or JSON lines for machines.
//
// Thread-safe. If stderr is a full pipe, a call blocks for at most kStderrPatience. After that, lines are dropped until
// there is room again; then one line says how many. An agent with a loop passes its console as outlet, which never
// blocks. Fields are extra facts: text mode appends "key=value", JSON mode makes them members.
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
  std::string node;  // put into every line if not empty
};

using Fields = std::initializer_list<std::pair<std::string_view, std::string>>;

inline constexpr std::chrono::milliseconds kStderrPatience{2000};

// Sets level and format for the process. Call it before other threads start. The default is text at kInfo.
void Configure(const Options& options);

// Receives lines, with their line feed, in place of stderr. Empty: stderr again. It is called from any thread, one call
// at a time. It must not block and must not log. When SetOutlet returns, no call of the previous outlet is running.
using Outlet = std::function<void(std::string line)>;
void SetOutlet(Outlet outlet);

void Debug(std::string_view message, Fields fields = {});
void Info(std::string_view message, Fields fields = {});
void Warning(std::string_view message, Fields fields = {});
void Error(std::string_view message, Fields fields = {});

// "debug|info|warning|error" in any case, and Python's names (WARN, CRITICAL, ...). InvalidArgument names the text.
StatusOr<Level> ParseLevel(std::string_view text);
// "text" | "json".
StatusOr<Format> ParseFormat(std::string_view text);

}  // namespace muster::log
