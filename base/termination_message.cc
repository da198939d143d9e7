#include "base/termination_message.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/utf8.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kEllipsis = "\u2026";
constexpr size_t kMaxTailLines = 20;
constexpr int kMaxDepth = 8;

// ---- Encoding ----

// The same text as valid UTF-8. (The JSON library could do it too, ten times slower: texts may have a MiB.)
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

// Bytes of `c` within a JSON string.
size_t JsonSize(char c) {
  if (c == '"' || c == '\\' || c == '\b' || c == '\f' || c == '\n' || c == '\r' || c == '\t') return 2;
  return static_cast<unsigned char>(c) < 0x20 ? 6 : 1;
}

size_t JsonSize(std::string_view text) {
  size_t size = 0;
  for (char c : text) size += JsonSize(c);
  return size;
}

// As much of the beginning of `text` (valid UTF-8) as `room` bytes of JSON hold, with an ellipsis where it was cut.
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

// Its first line, an ellipsis, and as many of its last lines as `room` holds.
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
void Put(Json& json, const char* key, const T& value, const T& nothing = {}) {
  if (value != nothing) json[key] = value;
}

Json ToJson(const WorkerFailure& cause) {
  Json json;
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
  Put(json, "stderr_tail", cause.stderr_tail);
  return json;
}

// What people look for stands in front.
std::string ToLine(const TerminationMessage& message) {
  Json json;
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
  if (message.cause) json["cause"] = ToJson(*message.cause);
  Put(json, "truncated", message.truncated);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

using Cut = std::string (*)(std::string_view text, size_t room);

// Makes one message fit, field by field; the header has the order.
class Cutter {
 public:
  Cutter(const TerminationMessage& message, size_t limit) : message_(message), limit_(limit) {
    for (std::string* text : {&message_.reason, &message_.run_id, &message_.node, &message_.host}) Bound(*text, CutEnd);
    if (!message_.cause) return;
    WorkerFailure& cause = *message_.cause;
    for (std::string* text : {&cause.node, &cause.host}) Bound(*text, CutEnd);
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
    if (message_.cause) {
      DropOldestLines(message_.cause->stderr_tail);
      Fit(message_.cause->message, limit_ / 4, CutMiddle);
      FitNewestLine(message_.cause->stderr_tail);
      Drop(message_.cause->error_file);
    }
    Fit(message_.reason, limit_ / 4, CutEnd);
    if (message_.cause) {
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
    return ToLine(message_);
  }

 private:
  // Nothing longer than the limit takes part: a worker's message may have a MiB.
  void Bound(std::string& text, Cut cut) {
    text = ValidUtf8(text);
    if (text.size() <= limit_) return;
    text = cut(text, limit_);
    message_.truncated = true;
  }

  // Bytes too many, counting the "truncated" that cutting adds; 0: it fits as it is.
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

// Whether brackets nest deeper than kMaxDepth. Exact as far as the text is JSON; where it is not, the parser stops.
bool NestsDeeply(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

// Reads the known keys of one object; remembers the first that is wrong.
class Fields {
 public:
  Fields(const nlohmann::json& object, std::string_view prefix) : object_(object), prefix_(prefix) {}

  const nlohmann::json* Find(const char* key) const {
    auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }

  void Wrong(const char* key, std::string_view wanted) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(fmt::format("termination message: '{}{}' is not {}", prefix_, key, wanted));
    }
  }

  void Require(const char* key) {
    if (Find(key) == nullptr) Wrong(key, "there: not a message of muster");
  }

  void Read(const char* key, std::string& text) {
    const nlohmann::json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_string()) return Wrong(key, "a text");
    text = value->get<std::string>();
  }

  void Read(const char* key, bool& flag) {
    const nlohmann::json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_boolean()) return Wrong(key, "true or false");
    flag = value->get<bool>();
  }

  template <typename Int>
  void Read(const char* key, Int& number, int64_t least = std::numeric_limits<Int>::min(),
            int64_t most = std::numeric_limits<Int>::max()) {
    const nlohmann::json* value = Find(key);
    if (value == nullptr) return;
    bool fits = value->is_number_integer() &&
                (!value->is_number_unsigned() || value->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
    if (!fits || value->get<int64_t>() < least || value->get<int64_t>() > most) {
      return Wrong(key, fmt::format("a whole number from {} to {}", least, most));
    }
    number = static_cast<Int>(value->get<int64_t>());
  }

  template <typename Int>
  void Read(const char* key, std::optional<Int>& number) {
    if (Find(key) != nullptr) Read(key, number.emplace());
  }

  void Read(const char* key, ExitClass& exit_class) {
    std::string name;
    Read(key, name);
    for (ExitClass known : {ExitClass::kSuccess, ExitClass::kFatal, ExitClass::kRetryable}) {
      if (name == ExitClassName(known)) {
        exit_class = known;
        return;
      }
    }
    Wrong(key, "success, fatal or retryable");
  }

  // "SIGKILL", or "signal 40" where the number has no name.
  void ReadSignal(const char* key, int& signal) {
    std::string name;
    Read(key, name);
    if (name.empty()) return;
    constexpr std::string_view kNameless = "signal ";
    if (name.starts_with(kNameless)) {
      auto number = ParseInt(std::string_view(name).substr(kNameless.size()));
      if (!number || *number < 1 || *number > 127) return Wrong(key, "a signal");
      signal = static_cast<int>(*number);
    } else if (auto number = ParseSignal(name); number.ok()) {
      signal = *number;
    } else {
      Wrong(key, "a signal");
    }
  }

  void Read(const char* key, std::vector<std::string>& lines) {
    const nlohmann::json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_array()) return Wrong(key, "a list of texts");
    for (size_t at = value->size() - std::min(value->size(), kMaxTailLines); at < value->size(); ++at) {
      if (!(*value)[at].is_string()) return Wrong(key, "a list of texts");
      lines.push_back((*value)[at].get<std::string>());
    }
  }

  const Status& status() const { return status_; }

 private:
  const nlohmann::json& object_;
  std::string_view prefix_;
  Status status_;
};

StatusOr<WorkerFailure> ParseCause(const nlohmann::json& object) {
  if (!object.is_object()) return absl::InvalidArgumentError("termination message: 'cause' is not an object");
  WorkerFailure cause;
  Fields fields(object, "cause.");
  fields.Read("rank", cause.rank);
  fields.Read("local_rank", cause.local_rank);
  fields.Read("node", cause.node);
  fields.Read("host", cause.host);
  fields.Read("pid", cause.pid);
  fields.Read("exit_code", cause.exit_code, 0, 255);
  fields.ReadSignal("signal", cause.signal);
  fields.Read("core_dumped", cause.core_dumped);
  fields.Read("oom_killed", cause.oom_killed);
  fields.Read("consequence", cause.consequence);
  fields.Read("ended_unix_ms", cause.unix_millis);
  fields.Read("error_message", cause.message);
  fields.Read("error_file", cause.error_file);
  fields.Read("stderr_tail", cause.stderr_tail);
  MUSTER_RETURN_IF_ERROR(fields.status());
  return cause;
}

}  // namespace

std::string EncodeTerminationMessage(const TerminationMessage& message, size_t limit) {
  return Cutter(message, std::max(limit, kMinTerminationMessage)).Run();
}

StatusOr<TerminationMessage> ParseTerminationMessage(std::string_view text) {
  if (text.size() > kMaxParsedTerminationMessage || NestsDeeply(text)) {
    return absl::InvalidArgumentError("termination message: longer or nested deeper than any of muster's");
  }
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return absl::InvalidArgumentError("termination message: not a JSON object");
  TerminationMessage message;
  Fields fields(document, "");
  for (const char* key : {"version", "exit_code", "class"}) fields.Require(key);
  fields.Read("version", message.version, 1);
  fields.Read("exit_code", message.exit_code, 0, 255);
  fields.Read("class", message.exit_class);
  fields.Read("reason", message.reason);
  fields.Read("run_id", message.run_id);
  fields.Read("node", message.node);
  fields.Read("host", message.host);
  fields.Read("node_rank", message.node_rank);
  fields.Read("round", message.round);
  fields.Read("restart_count", message.restart_count);
  fields.Read("max_restarts", message.max_restarts);
  fields.Read("truncated", message.truncated);
  MUSTER_RETURN_IF_ERROR(fields.status());
  if (const nlohmann::json* cause = fields.Find("cause")) {
    MUSTER_ASSIGN_OR_RETURN(message.cause, ParseCause(*cause));
  }
  return message;
}

}  // namespace muster
