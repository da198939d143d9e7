#include "base/log.h"

#include <memory>
#include <nlohmann/json.hpp>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include "base/clock.h"
#include "base/text.h"

namespace muster::log {
namespace {

struct Logger {
  Options options;
  std::shared_ptr<spdlog::logger> sink;

  Logger() : sink(std::make_shared<spdlog::logger>("muster", std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
    Apply(Options{});
  }

  void Apply(const Options& next) {
    options = next;
    sink->set_pattern(next.format == Format::kJson ? "%v" : "%Y-%m-%d %H:%M:%S.%e %L muster %v");
    sink->set_level(spdlog::level::debug);
    sink->flush_on(spdlog::level::debug);
  }
};

Logger& Instance() {
  static Logger* logger = new Logger;  // never destroyed: threads may log until the very end
  return *logger;
}

std::string_view Name(Level level) {
  constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};
  return kNames[static_cast<int>(level)];
}

void Write(Level level, std::string_view message, Fields fields) {
  Logger& logger = Instance();
  if (level < logger.options.level) return;
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                   spdlog::level::err};
  std::string line;
  if (logger.options.format == Format::kJson) {
    nlohmann::ordered_json record;
    record["time_ms"] = UnixMillis();
    record["level"] = Name(level);
    if (!logger.options.node.empty()) record["node"] = logger.options.node;
    record["message"] = message;
    for (const auto& [key, value] : fields) record[std::string(key)] = value;
    line = record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  } else {
    if (!logger.options.node.empty()) line += fmt::format("[{}] ", logger.options.node);
    line += message;
    for (const auto& [key, value] : fields) line += fmt::format(" {}={}", key, value);
  }
  logger.sink->log(kLevels[static_cast<int>(level)], line);
}

}  // namespace

void Configure(const Options& options) { Instance().Apply(options); }

void Debug(std::string_view message, Fields fields) { Write(Level::kDebug, message, fields); }
void Info(std::string_view message, Fields fields) { Write(Level::kInfo, message, fields); }
void Warning(std::string_view message, Fields fields) { Write(Level::kWarning, message, fields); }
void Error(std::string_view message, Fields fields) { Write(Level::kError, message, fields); }

StatusOr<Level> ParseLevel(std::string_view text) {
  std::string name = Lower(text);
  if (name == "debug" || name == "notset" || name == "trace") return Level::kDebug;
  if (name == "info") return Level::kInfo;
  if (name == "warning" || name == "warn") return Level::kWarning;
  if (name == "error" || name == "critical" || name == "fatal") return Level::kError;
  return absl::InvalidArgumentError(fmt::format("'{}' is no log level; use debug, info, warning or error", text));
}

StatusOr<Format> ParseFormat(std::string_view text) {
  if (text == "text") return Format::kText;
  if (text == "json") return Format::kJson;
  return absl::InvalidArgumentError(fmt::format("'{}' is no log format; use text or json", text));
}

}  // namespace muster::log
