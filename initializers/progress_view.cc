// SPDX-License-Identifier: Apache-2.0
#include "initializers/progress_view.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "base/exit_codes.h"
#include "base/json_fields.h"
#include "base/log.h"
#include "base/print.h"
#include "base/termination_message.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster::initializers {
namespace {

constexpr int kBarWidth = 30;

nlohmann::ordered_json ToJson(const MoveCounts& counts) {
  return {{"files", counts.files},           {"files_done", counts.files_done},   {"bytes", counts.bytes},
          {"bytes_done", counts.bytes_done}, {"received", counts.bytes_received}, {"kept", counts.bytes_kept},
          {"requests", counts.requests},     {"retries", counts.retries}};
}

nlohmann::ordered_json ToJson(const InitializeResult& result) {
  nlohmann::ordered_json json = ToJson(result.counts);
  json["source"] = result.source;
  json["target"] = result.target;
  json["files"] = result.files;
  json["bytes"] = result.bytes;
  json["kept_files"] = result.kept_files;
  json["unverified_files"] = result.unverified_files;
  if (result.unpacked_files > 0) {
    json["unpacked_files"] = result.unpacked_files;
    json["unpacked_bytes"] = result.unpacked_bytes;
  }
  json["unchanged"] = result.unchanged;
  json["seconds"] = result.seconds;
  return json;
}

void Print(const nlohmann::ordered_json& event) {
  const std::string line = WriteJson(event) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

void SayUnverified(const InitializeResult& result) {
  if (result.unverified_files == 0) return;
  const std::string files = Counted(static_cast<int64_t>(result.unverified_files), "file");
  log::Info(result.verify ? fmt::format("the source publishes no hash of {}: only size and version were checked", files)
                          : fmt::format("{} not verified, as asked (--verify): only sizes were checked", files));
}

}  // namespace

std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string TerminationLine(const Status& status, const std::optional<InitializeResult>& run, int exit_code) {
  nlohmann::ordered_json json = run ? ToJson(*run) : nlohmann::ordered_json();
  json["version"] = 1;
  json["exit_code"] = exit_code;
  json["class"] = ExitClassName(Classify(exit_code));
  json["reason"] = !status.ok()            ? std::string(Beginning(Message(status), kMaxTerminationMessage / 2))
                   : run && run->unchanged ? "complete; no byte was moved"
                                           : "complete";
  if (run && run->seconds > 0) {
    json["bytes_per_second"] = std::llround(static_cast<double>(run->counts.bytes_received) / run->seconds);
  }
  // Only a path, a URI or a reason of thousands of bytes can make the line too long.
  for (const char* key : {"target", "source", "reason"}) {
    if (WriteJson(json).size() >= kMaxTerminationMessage) json.erase(key);
  }
  return WriteJson(json) + "\n";
}

void ShowCheck(const FolderCheck& check, const std::string& folder, bool json) {
  if (json) {
    return Print({{"event", check.wrong == 0 ? "verified" : "wrong"},
                  {"target", folder},
                  {"source", check.source},
                  {"files", check.files},
                  {"bytes", check.bytes},
                  {"unhashed_files", check.unhashed},
                  {"wrong_files", check.wrong},
                  {"problems", check.problems},
                  {"seconds", check.seconds}});
  }
  for (const std::string& problem : check.problems) log::Error(problem);
  const std::string what =
      fmt::format("{}: {} files, {}, as {} had them", folder, check.files, BytesText(check.bytes), check.source);
  if (check.wrong == 0) {
    log::Info(fmt::format("{}; read and hashed in {:.2f} s", what, check.seconds));
  } else {
    log::Error(fmt::format("{}: {} of them are not; bring them in again", what, check.wrong));
  }
  if (check.unhashed > 0) log::Info(fmt::format("of {} files only the size was checked", check.unhashed));
}

ProgressView::ProgressView(bool json) : json_(json), terminal_(!json && isatty(STDERR_FILENO)) {}

Duration ProgressView::interval() const {
  return terminal_ ? Duration(std::chrono::milliseconds(200)) : Duration(std::chrono::seconds(5));
}

void ProgressView::Show(const MoveCounts& counts, TimePoint now) {
  if (last_ != TimePoint{} && now > last_) {
    const double rate =
        static_cast<double>(counts.bytes_received - last_bytes_) / std::chrono::duration<double>(now - last_).count();
    rate_ = rate_ == 0 ? rate : 0.7 * rate_ + 0.3 * rate;
  }
  last_ = now;
  last_bytes_ = counts.bytes_received;
  if (counts.files == 0) return;
  const uint64_t left = counts.bytes - std::min(counts.bytes, counts.bytes_done);
  const std::string eta = rate_ > 0 ? fmt::format("{:.0f} s left", static_cast<double>(left) / rate_) : "";
  if (json_) {
    nlohmann::ordered_json event = ToJson(counts);
    event["event"] = "progress";
    event["bytes_per_second"] = rate_;
    return Print(event);
  }
  const std::string text = fmt::format("{} of {}, {} of {} files, {}/s{}{}", BytesText(counts.bytes_done),
                                       BytesText(counts.bytes), counts.files_done, counts.files,
                                       BytesText(static_cast<uint64_t>(rate_)), eta.empty() ? "" : ", ", eta);
  if (!terminal_) return log::Info(text);
  const int filled = counts.bytes == 0 ? 0 : static_cast<int>(kBarWidth * counts.bytes_done / counts.bytes);
  PrintTo(stderr, "\r\033[K[{}{}] {}", std::string(static_cast<size_t>(filled), '#'),
          std::string(static_cast<size_t>(kBarWidth - filled), '.'), text);
  bar_ = true;
}

void ProgressView::ClearBar() {
  if (std::exchange(bar_, false)) PrintTo(stderr, "\r\033[K");
}

void ProgressView::Say(const std::string& text) {
  if (json_) return Print({{"event", "note"}, {"text", text}});
  ClearBar();
  log::Info(text);
}

void ProgressView::Plan(const Initialize::Planned& file) {
  if (json_) {
    return Print({{"event", "file"}, {"path", file.path}, {"bytes", file.bytes}, {"staged_bytes", file.staged_bytes}});
  }
  ClearBar();
  const std::string staged =
      file.staged_bytes == 0 ? "" : fmt::format(", {} of it staged", BytesText(file.staged_bytes));
  PrintTo(stdout, "{}  {}{}\n", file.path, BytesText(file.bytes), staged);
}

void ProgressView::Done(const InitializeResult& result, bool dry_run) {
  if (json_) {
    nlohmann::ordered_json event = ToJson(result);
    event["event"] = dry_run ? "plan" : "done";
    if (dry_run) event.update({{"planned_files", result.planned_files}, {"planned_bytes", result.planned_bytes}});
    return Print(event);
  }
  ClearBar();
  if (dry_run) {
    return log::Info(fmt::format("{}: {} files, {}, of which {} are in {}; {} in {} would be moved, and nothing was",
                                 result.source, result.files, BytesText(result.bytes), result.kept_files, result.target,
                                 BytesText(result.planned_bytes),
                                 Counted(static_cast<int64_t>(result.planned_files), "file")));
  }
  if (result.unchanged) {
    log::Info(fmt::format("{} is complete in {}: {} files, {}; no byte was moved", result.source, result.target,
                          result.files, BytesText(result.bytes)));
    return SayUnverified(result);
  }
  const double rate = result.seconds > 0 ? static_cast<double>(result.counts.bytes_received) / result.seconds : 0;
  log::Info(fmt::format("{} is complete in {}: {} files, {}; {} received in {:.2f} s, {}/s, {} retries", result.source,
                        result.target, result.files, BytesText(result.bytes), BytesText(result.counts.bytes_received),
                        result.seconds, BytesText(static_cast<uint64_t>(rate)), result.counts.retries));
  if (result.unpacked_files > 0) {
    log::Info(fmt::format("{} files, {}, were unpacked out of archives", result.unpacked_files,
                          BytesText(result.unpacked_bytes)));
  }
  SayUnverified(result);
}

void ProgressView::Failed(const Status& status, int exit_code) {
  if (json_) {
    return Print({{"event", "failed"}, {"exit_code", exit_code}, {"reason", std::string(Message(status))}});
  }
  ClearBar();
  log::Error(Message(status));
}

}  // namespace muster::initializers
