// SPDX-License-Identifier: Apache-2.0
#include "agent/workers/failure_summary.h"

#include <algorithm>
#include <ctime>

#include "base/exit_codes.h"
#include "base/reason_line.h"
#include "base/stderr_lines.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr size_t kWidest = 60;        // of the border
constexpr size_t kMostFailures = 16;  // a job of 10,000 workers still gives a readable text
constexpr std::string_view kNoFile = "<N/A>";
constexpr std::string_view kHowToTrace = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";

std::string LocalTime(int64_t unix_millis) {
  std::time_t seconds = unix_millis / 1000;
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[32];
  size_t length = std::strftime(text, sizeof text, "%Y-%m-%d_%H:%M:%S", &local);
  return std::string(text, length);
}

// "line\n  line": a text of several lines under a label.
std::string Indented(std::string_view text, std::string_view blanks) {
  std::string indented;
  for (char c : text) {
    indented += c;
    if (c == '\n') indented += blanks;
  }
  return indented;
}

std::string ExitText(const WorkerFailure& failure) {
  if (failure.pid == 0) return std::to_string(failure.exit_code);  // the worker was never started
  if (failure.signal == 0) return fmt::format("{} (pid: {})", failure.exit_code, failure.pid);
  return fmt::format("-{} (pid: {})  ({})", failure.signal, failure.pid, SignalName(failure.signal));
}

std::string MessageText(const WorkerFailure& failure) {
  if (std::string_view message = Strip(failure.message); !message.empty()) return Indented(message, "  ");
  if (failure.signal == 0 && failure.oom_killed) return std::string(DescribeOom(failure.exit_code));
  if (failure.signal == 0) return std::string(kHowToTrace);
  std::string text =
      fmt::format("Signal {} ({}) received by PID {}", failure.signal, SignalName(failure.signal), failure.pid);
  if (failure.oom_killed) text += ": out of memory, killed by the kernel";
  if (failure.core_dumped) text += ", core dumped";
  return text;
}

std::string ErrorFileText(const WorkerFailure& failure, const std::string& this_node) {
  if (failure.error_file.empty()) return std::string(kNoFile);
  return failure.node == this_node ? failure.error_file : fmt::format("{} (on {})", failure.error_file, failure.node);
}

// The lines of `tail` without the traceback that `message` shows already.
std::vector<std::string> WithoutTraceback(std::vector<std::string> tail, const std::string& message) {
  if (!HasTraceback(message)) return tail;
  const std::string exception = ReasonLine(message, message.size());
  auto text_of = [](const std::string& line) {  // without "[rank0]: " and colours
    const std::vector<StderrLine> read = StderrLines(line);
    return read.empty() ? std::string() : std::string(Strip(read.front().text));
  };
  auto is_exception = [&](const std::string& line) {
    const std::string text = text_of(line);
    return !text.empty() && exception.starts_with(text);
  };
  const auto last = std::find_if(tail.rbegin(), tail.rend(), is_exception);
  if (last == tail.rend()) return tail;
  const std::vector<std::string_view> shown = Split(message, '\n');
  const auto chained = std::count_if(shown.begin(), shown.end(), HasTraceback);
  const auto behind = last.base();  // the exception
  auto begin = behind;
  std::ptrdiff_t found = 0;
  while (begin != tail.begin() && found < chained) found += HasTraceback(*--begin) ? 1 : 0;
  if (found == 0) {  // the tail begins inside the traceback: lines that the message lacks are older
    begin = behind;
    while (begin != tail.begin() && message.find(text_of(*std::prev(begin))) != std::string::npos) --begin;
  }
  auto end = behind;
  while (end != tail.end() && !Strip(*end).empty() && message.find(Strip(*end)) != std::string::npos) ++end;
  tail.erase(begin, end);
  return tail;
}

std::string FailureText(size_t index, const WorkerFailure& failure, const std::string& this_node, bool is_root) {
  std::string text = fmt::format("[{}]:\n", index);
  auto row = [&](std::string_view name, std::string_view value) { text += fmt::format("  {:<10}: {}\n", name, value); };
  row("time", LocalTime(failure.unix_millis));
  row("host", failure.node.empty() || failure.node == failure.host
                  ? failure.host
                  : fmt::format("{} (node: {})", failure.host, failure.node));
  row("rank", failure.rank < 0 ? "all" : fmt::format("{} (local_rank: {})", failure.rank, failure.local_rank));
  row("exitcode", ExitText(failure));
  row("error_file", ErrorFileText(failure, this_node));
  row("traceback", MessageText(failure));
  if (failure.late && !failure.consequence) {
    row("note", "it had written this error, and had not ended yet, when the workers were stopped");
  } else if (failure.late) {
    row("note", "it failed when the workers were being stopped: perhaps a consequence of another failure");
  } else if (failure.consequence) {
    row("note", is_root ? "it lost a peer, or waited for one in vain: no worker failed by itself"
                        : "it lost a peer: probably a consequence of another failure");
  }
  if (!is_root) return text;
  const std::vector<std::string> tail = WithoutTraceback(failure.stderr_tail, failure.message);
  if (!tail.empty()) row("stderr", tail.size() == 1 ? "last line" : fmt::format("last {} lines", tail.size()));
  for (const std::string& line : tail) text += fmt::format("    {}\n", line);
  return text;
}

size_t LongestLine(std::string_view text) {
  size_t longest = 0;
  for (std::string_view line : Split(text, '\n')) longest = std::max(longest, line.size());
  return longest;
}

}  // namespace

std::string FailureSummary(const rendezvous::Verdict& verdict, const std::string& script,
                           const std::string& this_node) {
  if (verdict.exit_code == 0 || !verdict.root_cause) return "";
  std::string title = fmt::format("{} FAILED", script);
  std::string others, root;
  size_t index = 0, left_out = 0;
  bool root_skipped = false;
  for (const WorkerFailure& failure : verdict.failures) {
    if (!root_skipped && failure == *verdict.root_cause) {
      root_skipped = true;
      continue;
    }
    if (++index > kMostFailures) {
      ++left_out;
    } else {
      others += FailureText(index, failure, this_node, false);
    }
  }
  if (others.empty()) others = "  <NO_OTHER_FAILURES>\n";
  if (left_out > 0) others += fmt::format("  ... and {} more\n", left_out);
  root = FailureText(0, *verdict.root_cause, this_node, true);

  size_t width = std::min(kWidest, std::max({title.size(), LongestLine(others), LongestLine(root)}));
  std::string border(width, '='), line(width, '-');
  return fmt::format("{}\n{}\n{}\nFailures:\n{}{}\nRoot Cause (first observed failure):\n{}{}\n", border, title, line,
                     others, line, root, border);
}

}  // namespace muster::agent
