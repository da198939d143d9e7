#include "agent/failure_summary.h"

#include <algorithm>
#include <ctime>

#include "base/exit_codes.h"
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
  if (failure.pid == 0) return std::to_string(failure.exit_code);  // it was never started
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

std::string FailureText(size_t index, const WorkerFailure& failure, bool with_tail) {
  std::string text = fmt::format("[{}]:\n", index);
  auto row = [&](std::string_view name, std::string_view value) { text += fmt::format("  {:<10}: {}\n", name, value); };
  row("time", LocalTime(failure.unix_millis));
  row("host", failure.node.empty() || failure.node == failure.host
                  ? failure.host
                  : fmt::format("{} (node: {})", failure.host, failure.node));
  row("rank", fmt::format("{} (local_rank: {})", failure.rank, failure.local_rank));
  row("exitcode", ExitText(failure));
  row("error_file", failure.error_file.empty() ? kNoFile : failure.error_file);
  row("traceback", MessageText(failure));
  if (failure.consequence) row("note", "it lost a peer: probably a consequence of another failure");
  if (with_tail && !failure.stderr_tail.empty()) {
    row("stderr",
        failure.stderr_tail.size() == 1 ? "last line" : fmt::format("last {} lines", failure.stderr_tail.size()));
    for (const std::string& line : failure.stderr_tail) text += fmt::format("    {}\n", line);
  }
  return text;
}

size_t LongestLine(std::string_view text) {
  size_t longest = 0;
  for (std::string_view line : Split(text, '\n')) longest = std::max(longest, line.size());
  return longest;
}

}  // namespace

std::string FailureSummary(const rendezvous::Verdict& verdict, const RunOptions& options) {
  if (verdict.exit_code == 0 || !verdict.root_cause) return "";
  std::string title = fmt::format("{} FAILED", options.script);
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
      others += FailureText(index, failure, false);
    }
  }
  if (others.empty()) others = "  <NO_OTHER_FAILURES>\n";
  if (left_out > 0) others += fmt::format("  ... and {} more\n", left_out);
  root = FailureText(0, *verdict.root_cause, true);

  size_t width = std::min(kWidest, std::max({title.size(), LongestLine(others), LongestLine(root)}));
  std::string border(width, '='), line(width, '-');
  return fmt::format("{}\n{}\n{}\nFailures:\n{}{}\nRoot Cause (first observed failure):\n{}{}\n", border, title, line,
                     others, line, root, border);
}

}  // namespace muster::agent
