// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/json_fields.h"
#include "base/text.h"

namespace muster::log {
namespace {

// Writes to the outlet if there is one, else to stderr with kStderrPatience.
class Sink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void SetOutlet(Outlet outlet) {
    std::lock_guard lock(mutex_);
    outlet_ = std::move(outlet);
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t formatted;
    formatter_->format(message, formatted);
    std::string line(formatted.data(), formatted.size());
    if (outlet_) return outlet_(std::move(line));
    if (dropped_ > 0 && Write(fmt::format("muster: {} lines were dropped here: stderr was not read\n", dropped_))) {
      dropped_ = 0;
    }
    if (!Write(line)) ++dropped_;
  }
  void flush_() override {}

  // False if stderr did not take all of it in time.
  bool Write(std::string_view text) {
    const TimePoint deadline = MonotonicClock::now() + (dropped_ > 0 ? Duration::zero() : Duration(kStderrPatience));
    while (!text.empty()) {
      if (!ReadyBy(STDERR_FILENO, POLLOUT, deadline)) return false;
      // A pipe that poll(2) calls writable takes PIPE_BUF bytes without blocking.
      ssize_t written = write(STDERR_FILENO, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
      if (written == -1 && (errno == EINTR || (errno == EAGAIN && MonotonicClock::now() < deadline))) continue;
      if (written == -1) return false;
      text.remove_prefix(static_cast<size_t>(written));
    }
    return true;
  }

  Outlet outlet_;
  uint64_t dropped_ = 0;  // lines dropped since the last successful write
};

struct Logger {
  Options options;
  std::shared_ptr<Sink> end = std::make_shared<Sink>();
  std::shared_ptr<spdlog::logger> sink = std::make_shared<spdlog::logger>("muster", end);

  Logger() { Apply(Options{}); }

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
    line = WriteJson(record);
  } else {
    if (!logger.options.node.empty()) line += fmt::format("[{}] ", logger.options.node);
    line += message;
    for (const auto& [key, value] : fields) line += fmt::format(" {}={}", key, value);
  }
  logger.sink->log(kLevels[static_cast<int>(level)], line);
}

}  // namespace

void Configure(const Options& options) { Instance().Apply(options); }
void SetOutlet(Outlet outlet) { Instance().end->SetOutlet(std::move(outlet)); }

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
  return absl::InvalidArgumentError(fmt::format("'{}' is not a log level; use debug, info, warning or error", text));
}

StatusOr<Format> ParseFormat(std::string_view text) {
  if (text == "text") return Format::kText;
  if (text == "json") return Format::kJson;
  return absl::InvalidArgumentError(fmt::format("'{}' is not a log format; use text or json", text));
}

}  // namespace muster::log
