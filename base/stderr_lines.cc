// SPDX-License-Identifier: Apache-2.0
#include "base/stderr_lines.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "base/visible_text.h"

namespace muster {
namespace {

constexpr size_t kLongRule = 70;      // torchrun's rules have at most 60 dashes, Open MPI's 74
constexpr size_t kLevelWithin = 100;  // bytes at the start of a log line that contain its level
constexpr size_t kMarkWithin = 120;
constexpr size_t kLongestRank = 24;  // bytes of a tag's numbers
constexpr std::string_view kTime = "Sat Nov 28 08:16:00 2026";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsCapital(char c) { return c >= 'A' && c <= 'Z'; }
bool IsLetter(char c) { return IsCapital(c) || (c >= 'a' && c <= 'z') || c == '_'; }

size_t DigitsAt(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && IsDigit(text[end])) ++end;
  return end - at;
}

// Whether `text` ends with a time as of ctime(), "Sat Nov 28 08:16:00 2026".
bool EndsWithTime(std::string_view text) {
  if (text.size() < kTime.size()) return false;
  text.remove_prefix(text.size() - kTime.size());
  for (size_t at = 0; at < kTime.size(); ++at) {
    if ((kTime[at] == ' ' || kTime[at] == ':') && text[at] != kTime[at]) return false;
  }
  return true;
}

// Where the tag begins whose last bracket is at `end`: "[1,0]<stderr>:", "[0]<stderr>:", perhaps with a time before it,
// which may have brackets. npos: it is none.
size_t TagBegin(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && end - begin < kLongestRank && (IsDigit(text[begin - 1]) || text[begin - 1] == ',')) --begin;
  if (begin == end || begin == 0 || text[begin - 1] != '[') return std::string_view::npos;
  const std::string_view before = text.substr(0, begin - 1);
  if (EndsWithTime(before)) return before.size() - kTime.size();
  const size_t bracketed = kTime.size() + 2;
  const bool brackets = before.ends_with(']') && before.size() >= bracketed && before[before.size() - bracketed] == '[';
  return before.size() - (brackets && EndsWithTime(before.substr(0, before.size() - 1)) ? bracketed : 0);
}

// Removes the tags; the first one, without the time, is the mark. mpirun writes one before each piece of output, so
// also within a line. Open MPI 5 writes a blank behind it; Python indents by an even number of blanks.
void TakeTags(StderrLine& line) {
  constexpr std::string_view kEnd = "]<stderr>:";
  std::string text;
  size_t from = 0;
  for (size_t end = line.text.find(kEnd); end != std::string::npos; end = line.text.find(kEnd, end + 1)) {
    const size_t begin = TagBegin(line.text, end);
    if (begin == std::string::npos || begin < from) continue;
    text.append(line.text, from, begin - from);
    from = end + kEnd.size();
    if (!line.mark.empty()) continue;
    const size_t rank = line.text.rfind('[', end);
    line.mark = line.text.substr(rank, from - rank);
    const size_t blanks = std::min(line.text.find_first_not_of(' ', from), line.text.size()) - from;
    from += blanks % 2;
  }
  if (from > 0) line.text = text.append(line.text, from);
}

// Size of "[rank0]: ", "[trainer1]:" or Hydra's "[0] " at the beginning of `text`.
size_t RankMarkSize(std::string_view text) {
  if (!text.starts_with('[')) return 0;
  size_t at = 1;
  while (at < text.size() && at < kMarkWithin && IsLetter(text[at])) ++at;
  const size_t number = DigitsAt(text, at);
  at += number;
  const std::string_view behind = text.substr(std::min(at, text.size()));
  if (number > 0 && at == number + 1 && behind.starts_with("] ")) return at + 2;
  if (number == 0 || !behind.starts_with("]:")) return 0;
  at += 2;
  return at < text.size() && text[at] == ' ' ? at + 1 : at;
}

size_t RayMarkSize(std::string_view text) {
  if (!text.starts_with('(')) return 0;
  const size_t end = text.substr(0, kMarkWithin).find(") ");
  return end != std::string_view::npos && text.substr(0, end).find("pid=") != std::string_view::npos ? end + 2 : 0;
}

void TakeMarks(StderrLine& line) {
  TakeTags(line);
  for (int nested = 0; nested < 3; ++nested) {
    const size_t size = std::max(RankMarkSize(line.text), RayMarkSize(line.text));
    if (size == 0) return;
    line.mark += line.text.substr(0, size);
    line.text.erase(0, size);
  }
}

StderrLine MakeLine(std::string_view bytes, size_t begins, bool overwritten) {
  StderrLine line{VisibleText(bytes), "", begins, overwritten};
  TakeMarks(line);
  line.text.erase(line.text.find_last_not_of(" \t") + 1);
  return line;
}

std::optional<LineLevel> OfLetter(char letter) {
  switch (letter) {
    case 'D':
    case 'I':
    case 'W':
      return LineLevel::kQuiet;
    case 'E':
      return LineLevel::kError;
    case 'F':
      return LineLevel::kFatal;
    default:
      return std::nullopt;
  }
}

// "W1126 02:19:50.862656 32697 client.h:80] ", "[W1126 02:...", "[E ProcessGroupNCCL.cpp:475] ".
std::optional<LineLevel> GlogLevel(std::string_view line) {
  const bool bracket = line.starts_with('[');
  if (bracket) line.remove_prefix(1);
  if (line.empty() || !OfLetter(line.front())) return std::nullopt;
  const size_t date = DigitsAt(line, 1);  // PyTorch writes the month without a leading zero
  const bool file = bracket && line.substr(1, kLevelWithin).find(".cpp:") != std::string_view::npos;
  const bool dated = date >= 3 && line.substr(1 + date).starts_with(' ');
  return dated || (file && line.substr(1).starts_with(' ')) ? OfLetter(line.front()) : std::nullopt;
}

// "2026-11-26 02:50:00.123456: W tensorflow/core/...", "2026-11-26 02:50:00.123 E muster ..."
std::optional<LineLevel> DatedLevel(std::string_view line) {
  constexpr size_t kDate = std::string_view("2026-11-26 02:50:00").size();
  if (DigitsAt(line, 0) != 4 || line.size() < kDate) return std::nullopt;
  const size_t at = line.find(' ', kDate);
  if (at > kDate + 10 || at + 2 >= line.size() || line[at + 2] != ' ') return std::nullopt;
  return OfLetter(line[at + 1]);
}

struct LevelName {
  std::string_view name;
  LineLevel level;
};
constexpr auto kLevelNames = std::to_array<LevelName>({{"TRACE", LineLevel::kQuiet},
                                                       {"DEBUG", LineLevel::kQuiet},
                                                       {"INFO", LineLevel::kQuiet},
                                                       {"SUCCESS", LineLevel::kQuiet},
                                                       {"NOTICE", LineLevel::kQuiet},
                                                       {"WARN", LineLevel::kQuiet},
                                                       {"WARNING", LineLevel::kQuiet},
                                                       {"ERROR", LineLevel::kError},
                                                       {"CRITICAL", LineLevel::kError},
                                                       {"FATAL", LineLevel::kError}});

std::optional<LineLevel> NamedLevel(std::string_view line) {
  if (line.find("NCCL WARN") != std::string_view::npos) return LineLevel::kError;  // NCCL's name for an error
  line = line.substr(0, kLevelWithin);
  for (size_t at = 0; at < line.size();) {
    size_t end = at;
    while (end < line.size() && (IsLetter(line[end]) || IsDigit(line[end]))) ++end;
    const std::string_view word = line.substr(at, end - at);
    for (const LevelName& known : kLevelNames) {
      if (word == known.name) return known.level;
    }
    at = std::max(end, at + 1);
  }
  return std::nullopt;
}

// The value of the field "level" or "levelname" of JSON ("level": "error") or logfmt (level=error); "": there is none.
std::string_view LevelField(std::string_view line) {
  constexpr std::string_view kField = "level";
  const size_t field = line.find(kField);
  if (field == std::string_view::npos) return "";
  line.remove_prefix(field + kField.size());
  if (line.starts_with("name")) line.remove_prefix(4);
  const size_t value = line.find_first_not_of("\": =");
  if (value == std::string_view::npos || line.substr(0, value).find_first_of(":=") == std::string_view::npos) return "";
  line.remove_prefix(value);
  return line.substr(0, static_cast<size_t>(std::find_if_not(line.begin(), line.end(), IsLetter) - line.begin()));
}

// The word in the first brackets, as in structlog's "[error    ]"; "": there is none.
std::string_view BracketedWord(std::string_view line) {
  const size_t begin = line.substr(0, kLevelWithin).find('[') + 1;  // npos + 1 is 0
  const size_t end = line.find(']', begin);
  return begin == 0 || end == std::string_view::npos ? "" : Strip(line.substr(begin, end - begin));
}

std::optional<LineLevel> MarkedLevel(std::string_view line) {
  for (const std::string_view word : {LevelField(line), BracketedWord(line)}) {
    for (const LevelName& known : kLevelNames) {
      if (word.size() == known.name.size() && Upper(word) == known.name) return known.level;
    }
  }
  return std::nullopt;
}

// "t.py:3: UserWarning: text", "warning: text"; "Error: text", "t.py: error: text", not "RuntimeError: text".
LineLevel WordedLevel(std::string_view line) {
  if (line.find("Warning: ") != std::string_view::npos || line.find("warning: ") != std::string_view::npos) {
    return LineLevel::kQuiet;
  }
  for (std::string_view word : {"error: ", "Error: "}) {
    const size_t at = line.find(word);
    if (at != std::string_view::npos && (at == 0 || line[at - 1] == ' ')) return LineLevel::kError;
  }
  return LineLevel::kNone;
}

bool IsRule(std::string_view line) { return line.find_first_not_of("-=_*#~ ") == std::string_view::npos; }

bool IsProgressBar(std::string_view line) {
  auto holds = [&](std::string_view part) { return line.find(part) != std::string_view::npos; };
  return holds("%|") || holds("it/s") || holds("s/it") || holds("\u2501\u2501");  // tqdm, Rich
}

constexpr std::string_view kBelowAnError[] = {
    "Set the environment variable HYDRA_FULL_ERROR",
    "note: run with `RUST_BACKTRACE",
    "note: Some details are omitted",
    "For simplicity, JAX has removed",
    "wandb: ",
    "exit status ",     // go run
    "==== backtrace ",  // UCX
    "huggingface/tokenizers: ",
    "To disable this warning",
    "Exception ignored",
};
constexpr std::string_view kOnTheWay[] = {
    "resource_tracker",
    "process group has NOT been destroyed",
    "destroy_process_group() was not called",
    "View run ",  // MLflow
    "View experiment at",
    " more process has sent help message",
    " more processes have sent help message",
    "Set MCA parameter \"orte_base_help_aggregate\"",
    "Unable to register cu",  // cuDNN, cuFFT, cuBLAS: TensorFlow beside JAX or PyTorch, at level error
};

}  // namespace

std::vector<StderrLine> StderrLines(std::string_view text) {
  std::vector<StderrLine> lines;
  for (size_t begins = 0; begins < text.size();) {
    const size_t end = std::min(text.find_first_of("\r\n", begins), text.size());
    size_t next = std::min(end + 1, text.size());
    bool overwritten = end < text.size() && text[end] == '\r';
    if (overwritten && next < text.size() && text[next] == '\n') {
      overwritten = false;
      ++next;
    }
    lines.push_back(MakeLine(text.substr(begins, end - begins), begins, overwritten && next < text.size()));
    begins = next;
  }
  return lines;
}

LineLevel LevelOf(std::string_view line) {
  if (auto level = GlogLevel(line)) return *level;
  if (auto level = DatedLevel(line)) return *level;
  if (auto level = NamedLevel(line)) return *level;
  if (auto level = MarkedLevel(line)) return *level;
  return WordedLevel(line);
}

bool IsDecoration(std::string_view line) {
  if (IsRule(line) || IsProgressBar(line)) return true;
  return std::any_of(std::begin(kBelowAnError), std::end(kBelowAnError),
                     [&](std::string_view known) { return line.starts_with(known); }) ||
         std::any_of(std::begin(kOnTheWay), std::end(kOnTheWay),
                     [&](std::string_view known) { return line.find(known) != std::string_view::npos; });
}

bool IsLongRule(std::string_view line) {
  return line.size() >= kLongRule && (line.front() == '-' || line.front() == '=') &&
         line.find_first_not_of(line.front()) == std::string_view::npos;
}

bool IsIndented(std::string_view line) { return line.starts_with(' ') || line.starts_with('\t'); }

}  // namespace muster
