// SPDX-License-Identifier: Apache-2.0
#include "base/termination_message.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/failure_json.h"
#include "base/json_fields.h"
#include "base/run_facts_json.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kEllipsis = "\u2026";
constexpr size_t kMaxTailLines = 20;

// ---- Encoding ----

// The text as valid UTF-8. (The JSON library can do this too, but ten times slower, and a text may have a MiB.)
std::string ValidUtf8(std::string_view text) {
  std::string valid_text;
  valid_text.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character first = FirstCharacter(text);
    valid_text.append(first.valid ? text.substr(0, first.size) : kReplacementCharacter);
    text.remove_prefix(first.size);
  }
  return valid_text;
}

// Bytes that `c` takes in a JSON string.
size_t JsonSize(char c) {
  if (c == '"' || c == '\\' || c == '\b' || c == '\f' || c == '\n' || c == '\r' || c == '\t') return 2;
  return static_cast<unsigned char>(c) < 0x20 ? 6 : 1;
}

size_t JsonSize(std::string_view text) {
  size_t size = 0;
  for (char c : text) size += JsonSize(c);
  return size;
}

// The beginning of `text` (valid UTF-8) that fits into `room` bytes of JSON, with an ellipsis if it was cut.
std::string CutEnd(std::string_view text, size_t room) {
  size_t size = 0;
  size_t keep = 0;  // whole characters that leave room for the ellipsis
  for (size_t at = 0; at < text.size(); ++at) {
    bool starts_character = (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
    if (starts_character && size + kEllipsis.size() <= room) keep = at;
    size += JsonSize(text[at]);
    if (size > room) {
      if (room < kEllipsis.size()) return "";
      return std::string(text.substr(0, keep)).append(kEllipsis);
    }
  }
  return std::string(text);
}

// The first line of `text`, an ellipsis, and as many of its last lines as fit into `room`.
std::string CutMiddle(std::string_view text, size_t room) {
  if (JsonSize(text) <= room) return std::string(text);
  text = Strip(text);
  size_t first_end = text.find('\n');
  constexpr size_t kGap = 2 + 3 + 2;  // newline, ellipsis, newline
  if (first_end == std::string_view::npos || room < 8 * kGap) {
    return CutEnd(text.substr(text.rfind('\n') + 1), room);  // npos + 1 is 0
  }
  std::string_view first = text.substr(0, first_end);
  size_t last_start = text.rfind('\n') + 1;
  std::string last = CutEnd(text.substr(last_start), room - kGap - std::min(JsonSize(first), room / 4));
  std::string head = CutEnd(first, room - kGap - JsonSize(last));
  size_t left = room - kGap - JsonSize(last) - JsonSize(head);
  size_t kept_from = last_start;
  while (kept_from > first_end + 1) {
    size_t line_start = text.rfind('\n', kept_from - 2) + 1;
    size_t cost = JsonSize(text.substr(line_start, kept_from - line_start));
    if (cost > left) break;
    left -= cost;
    kept_from = line_start;
  }
  std::string_view gap = kept_from == first_end + 1 ? "\n" : "\n\u2026\n";
  return head.append(gap).append(text.substr(kept_from, last_start - kept_from)).append(last);
}

template <typename T>
void Put(OrderedJson& json, const char* key, const T& value, const T& nothing = {}) {
  if (value != nothing) json[key] = value;
}

}  // namespace

OrderedJson FailureJson(const WorkerFailure& cause) {
  OrderedJson json;
  Put(json, "rank", cause.rank, -1);
  Put(json, "local_rank", cause.local_rank, -1);
  Put(json, "node", cause.node);
  Put(json, "host", cause.host);
  Put(json, "pid", cause.pid);
  json["exit_code"] = cause.exit_code;
  if (cause.signal != 0) json["signal"] = SignalName(cause.signal);
  Put(json, "core_dumped", cause.core_dumped);
  Put(json, "oom_killed", cause.oom_killed);
  Put(json, "consequence", cause.consequence);
  Put(json, "ended_unix_ms", cause.unix_millis);
  Put(json, "error_message", cause.message);
  Put(json, "error_file", cause.error_file);
  Put(json, "stderr_reason", cause.stderr_reason);
  Put(json, "stderr_tail", cause.stderr_tail);
  return json;
}

namespace {

// The keys that people look for come first.
std::string ToLine(const TerminationMessage& message) {
  OrderedJson json;
  json["version"] = message.version;
  json["exit_code"] = message.exit_code;
  json["class"] = ExitClassName(message.exit_class);
  Put(json, "reason", message.reason);
  Put(json, "run_id", message.run_id);
  Put(json, "node", message.node);
  Put(json, "host", message.host);
  if (message.node_rank) json["node_rank"] = *message.node_rank;
  if (message.round) json["round"] = *message.round;
  Put(json, "restart_count", message.restart_count);
  Put(json, "max_restarts", message.max_restarts);
  Put(json, "budget_used", message.budget_used);
  if (message.inner_exit_code) json["inner_exit_code"] = *message.inner_exit_code;
  if (message.cause) json["cause"] = FailureJson(*message.cause);
  if (message.time) {
    json["began_unix_ms"] = message.time->began_unix_ms;
    json["seconds"] = SecondsJson(message.time->spent);
  }
  if (message.training) json["training"] = TrainingJson(*message.training);
  Put(json, "truncated", message.truncated);
  return WriteJson(json);
}

using Cut = std::string (*)(std::string_view text, size_t room);

// Cuts one message to the limit, field by field, in the order that the header gives.
class Cutter {
 public:
  Cutter(const TerminationMessage& message, size_t limit) : message_(message), limit_(limit) {
    for (std::string* text : {&message_.reason, &message_.run_id, &message_.node, &message_.host}) Bound(*text, CutEnd);
    if (!message_.cause) return;
    WorkerFailure& cause = *message_.cause;
    for (std::string* text : {&cause.node, &cause.host, &cause.stderr_reason}) Bound(*text, CutEnd);
    Bound(cause.error_file, [](std::string_view, size_t) { return std::string(); });
    Bound(cause.message, CutMiddle);
    size_t lines = 0;
    for (size_t size = 0; lines < cause.stderr_tail.size() && size <= limit_; ++lines) {
      std::string& line = cause.stderr_tail[cause.stderr_tail.size() - 1 - lines];
      Bound(line, CutEnd);
      size += line.size() + 3;  // quotes and comma
    }
    if (lines == cause.stderr_tail.size()) return;
    message_.truncated = true;
    cause.stderr_tail.erase(cause.stderr_tail.begin(), cause.stderr_tail.end() - static_cast<ptrdiff_t>(lines));
  }

  std::string Run() {
    if (std::string whole = ToLine(message_); whole.size() <= limit_) return whole;
    if (message_.cause) {
      DropOldestLines(message_.cause->stderr_tail);
      Fit(message_.cause->message, limit_ / 4, CutMiddle);
      FitNewestLine(message_.cause->stderr_tail);
      Drop(message_.cause->error_file);
    }
    Fit(message_.reason, limit_ / 4, CutEnd);
    Drop(message_.training);
    Drop(message_.time);
    if (message_.cause) {
      Drop(message_.cause->stderr_reason);
      Drop(message_.cause->unix_millis);
      Drop(message_.cause->pid);
      Drop(message_.cause->host);
    }
    Drop(message_.host);
    Drop(message_.run_id);
    if (message_.cause) Fit(message_.cause->message, 0, CutMiddle);
    Drop(message_.node);
    if (message_.cause) Drop(message_.cause->node);
    Drop(message_.cause);
    Fit(message_.reason, 0, CutEnd);
    Drop(message_.node_rank);
    Drop(message_.round);
    Drop(message_.restart_count);
    Drop(message_.max_restarts);
    Drop(message_.budget_used);
    Drop(message_.inner_exit_code);
    return ToLine(message_);
  }

 private:
  // Makes the text valid UTF-8 and cuts it to the limit first, since a worker's message may have a MiB.
  void Bound(std::string& text, Cut cut) {
    text = ValidUtf8(text);
    if (text.size() <= limit_) return;
    text = cut(text, limit_);
    message_.truncated = true;
  }

  // Number of bytes above the limit, counting the "truncated" that cutting adds. 0: it fits unchanged.
  size_t Over() {
    if (ToLine(message_).size() <= limit_) return 0;
    message_.truncated = true;
    return ToLine(message_).size() - limit_;
  }

  void Fit(std::string& text, size_t least, Cut cut) {
    size_t size = JsonSize(text);
    if (size <= least) return;
    size_t over = Over();
    if (over > 0) text = cut(text, std::max(least, size - std::min(size, over)));
  }

  template <typename T>
  void Drop(T& field) {
    if (field != T{} && Over() > 0) field = T{};
  }

  void DropOldestLines(std::vector<std::string>& lines) {
    size_t over = lines.empty() ? 0 : Over();
    size_t drop = 0;
    for (size_t freed = 0; freed < over && drop + 1 < lines.size(); ++drop) {
      freed += JsonSize(lines[drop]) + std::string_view("\"\",").size();
    }
    lines.erase(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(drop));
  }

  void FitNewestLine(std::vector<std::string>& lines) {
    if (lines.empty() || Over() == 0) return;
    Fit(lines.back(), 0, CutEnd);
    if (lines.back().empty()) lines.clear();
  }

  TerminationMessage message_;
  size_t limit_;
};

// ---- Parsing ----

// "SIGKILL", or "signal 40" if the number has no name.
int ReadSignal(JsonFields& fields, const char* name) {
  const std::string text = fields.Text(name);
  if (text.empty()) return 0;
  auto signal = ParseSignal(text);
  if (!signal.ok()) fields.Wrong(name, "a signal");
  return signal.value_or(0);
}

int ReadInt(JsonFields& fields, const char* name, int otherwise, int least = std::numeric_limits<int>::min(),
            int most = std::numeric_limits<int>::max()) {
  return static_cast<int>(fields.Number(name, least, most).value_or(otherwise));
}

}  // namespace

StatusOr<WorkerFailure> ReadFailureJson(const Json& object, const std::string& where) {
  if (!object.is_object()) return absl::InvalidArgumentError(fmt::format("{}not an object", where));
  JsonFields fields(object, where);
  WorkerFailure cause;
  cause.rank = ReadInt(fields, "rank", -1);
  cause.local_rank = ReadInt(fields, "local_rank", -1);
  cause.node = fields.Text("node");
  cause.host = fields.Text("host");
  cause.pid = fields.Number("pid").value_or(0);
  cause.exit_code = ReadInt(fields, "exit_code", 0, 0, 255);
  cause.signal = ReadSignal(fields, "signal");
  cause.core_dumped = fields.Flag("core_dumped");
  cause.oom_killed = fields.Flag("oom_killed");
  cause.consequence = fields.Flag("consequence");
  cause.unix_millis = fields.Number("ended_unix_ms").value_or(0);
  cause.message = fields.Text("error_message");
  cause.error_file = fields.Text("error_file");
  cause.stderr_reason = fields.Text("stderr_reason");
  cause.stderr_tail = fields.Texts("stderr_tail", kMaxTailLines);
  MUSTER_RETURN_IF_ERROR(fields.status());
  return cause;
}

std::string EncodeTerminationMessage(const TerminationMessage& message, size_t limit) {
  return Cutter(message, std::max(limit, kMinTerminationMessage)).Run();
}

StatusOr<TerminationMessage> ParseTerminationMessage(std::string_view text) {
  if (text.size() > kMaxParsedTerminationMessage) {
    return absl::InvalidArgumentError(
        fmt::format("termination message: longer than {} bytes", kMaxParsedTerminationMessage));
  }
  const Json document = ReadJsonTop(text, kFieldLevels);  // a newer version may have deeper keys, which are not read
  if (!document.is_object()) return absl::InvalidArgumentError("termination message: not a JSON object");
  JsonFields fields(document, "termination message: ");
  fields.Need({"version", "exit_code", "class"});
  TerminationMessage message;
  message.version = ReadInt(fields, "version", 0, 1);
  message.exit_code = ReadInt(fields, "exit_code", 0, 0, 255);
  const auto exit_class = ParseExitClass(fields.Text("class"));
  if (!exit_class) fields.Wrong("class", "success, fatal or retryable");
  message.exit_class = exit_class.value_or(ExitClass::kFatal);
  message.reason = fields.Text("reason");
  message.run_id = fields.Text("run_id");
  message.node = fields.Text("node");
  message.host = fields.Text("host");
  if (fields.Find("node_rank") != nullptr) message.node_rank = ReadInt(fields, "node_rank", 0);
  message.round = fields.Number("round");
  message.restart_count = ReadInt(fields, "restart_count", 0);
  message.max_restarts = ReadInt(fields, "max_restarts", 0);
  message.budget_used = fields.Flag("budget_used");
  if (fields.Find("inner_exit_code") != nullptr)
    message.inner_exit_code = ReadInt(fields, "inner_exit_code", 0, 0, 255);
  message.truncated = fields.Flag("truncated");
  MUSTER_RETURN_IF_ERROR(fields.status());
  MUSTER_ASSIGN_OR_RETURN(message.time, ReadRunTime(fields, "termination message: "));
  if (const Json* training = fields.Find("training")) {
    MUSTER_ASSIGN_OR_RETURN(message.training, ReadTrainingJson(*training, "termination message: training: "));
  }
  if (const Json* cause = fields.Find("cause")) {
    MUSTER_ASSIGN_OR_RETURN(message.cause, ReadFailureJson(*cause, "termination message: cause: "));
  }
  return message;
}

}  // namespace muster
