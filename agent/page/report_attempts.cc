// SPDX-License-Identifier: Apache-2.0
#include "agent/page/report_attempts.h"

#include <algorithm>

#include "agent/page/file_link.h"
#include "agent/report/report_text.h"
#include "base/exit_codes.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster::agent {
namespace {

constexpr size_t kMostNodesNamed = 12;  // listed with their paths
constexpr size_t kLongestReason = 600;

const rendezvous::Node& NodeOf(const FailedWorker& failed) { return failed.file->record.assignment.seat.node; }

std::string Pre(std::string_view name, std::string_view text, size_t limit, size_t& room) {
  text = Strip(text);
  if (text.empty()) return "";
  if (room == 0) return fmt::format("<p class=\"muted\">{}: left out here, see its file.</p>\n", name);
  std::string part = EscapeHtml(LastPart(text, std::min(limit, room)));
  room -= std::min(room, part.size());
  return fmt::format("<p class=\"muted\">{}</p><pre tabindex=\"0\">{}</pre>\n", name, part);
}

std::string FailureDetails(const FailedWorker& failed, const AttemptsView& view, size_t& room) {
  const launcher::ExitRecord& exit = *failed.exit;
  std::string html = fmt::format("<h3>{}</h3>\n", EscapeHtml(WhoAndHow(failed)));
  std::vector<std::string> facts = {fmt::format("lived {}", FormatSpan(exit.lived / std::chrono::milliseconds(1)))};
  if (exit.pid > 0) facts.push_back(fmt::format("pid {}", exit.pid));
  if (exit.max_rss_bytes > 0) facts.push_back(fmt::format("at most {} of memory", FormatBytes(exit.max_rss_bytes)));
  const rendezvous::Node& node = NodeOf(failed);
  if (!node.host.empty() && node.host != node.name) facts.push_back(fmt::format("host {}", EscapeHtml(node.host)));
  if (failed.consequence) facts.push_back("lost a peer: probably a consequence of another failure");
  html += fmt::format("<p class=\"muted\">{}</p>\n", Join(facts, ", "));
  std::string_view message = exit.error_callstack.empty() ? exit.error_message : exit.error_callstack;
  html += Pre(exit.error_callstack.empty() ? "Error message" : "Traceback", message, view.text, room);
  html += Pre("Last lines of stderr", Join(exit.stderr_tail, "\n"), view.text, room);
  html += fmt::format("<p class=\"muted\">Logs: {}{}</p>\n",
                      PathLink(fmt::format("{}/{}", failed.file->folder, exit.local_rank), view.place),
                      failed.hang_place ? "; what it was doing is in <code>hang.txt</code> there" : "");
  return html;
}

std::string Details(const AttemptSummary& attempt, bool open, const AttemptsView& view, size_t& room) {
  std::string title = "Log files";
  if (!attempt.failures.empty()) {
    title = attempt.failures.size() == 1
                ? "Last lines and logs of the worker that failed"
                : fmt::format("Last lines and logs of {} workers that failed", attempt.failures.size());
  }
  std::string html = fmt::format("<details{}><summary>{}</summary>\n", open ? " open" : "", title);
  size_t shown = std::min(attempt.failures.size(), view.failures);
  for (size_t at = 0; at < shown; ++at) html += FailureDetails(attempt.failures[at], view, room);
  if (shown < attempt.failures.size()) {
    html +=
        fmt::format("<p class=\"muted\">and {}</p>\n", Counted(attempt.failures.size() - shown, "other failed worker"));
  }
  html += fmt::format("<h3>Log folders</h3><ul class=\"paths\">\n");
  size_t named = std::min(attempt.nodes.size(), kMostNodesNamed);
  for (size_t at = 0; at < named; ++at) {
    html += fmt::format("<li>{}</li>\n", PathLink(attempt.nodes[at]->folder, view.place));
  }
  if (named < attempt.nodes.size())
    html += fmt::format("<li class=\"muted\">and of {}</li>\n", Counted(attempt.nodes.size() - named, "other node"));
  html += "</ul>";
  if (!attempt.start_reason.empty())
    html += fmt::format("<p class=\"muted\">Started because: {}</p>\n", ReasonHtml(attempt.start_reason));
  return html + "</details>\n";
}

std::string Cell(std::string_view label, std::string_view html, std::string_view css = "") {
  return fmt::format("<td data-label=\"{}\" class=\"{}\"><div>{}</div></td>", label, css, html);
}

std::string_view ColourOf(WorkerEnd end) {
  switch (end) {
    case WorkerEnd::kSucceeded:
      return "ok";
    case WorkerEnd::kFatal:
      return "fatal";
    case WorkerEnd::kRetryable:
      return "retry";
    case WorkerEnd::kStopped:
    case WorkerEnd::kNotRecorded:
      break;
  }
  return "open";
}

std::string AttemptRow(const RunSummary& run, const AttemptSummary& attempt) {
  std::string nodes = std::to_string(attempt.node_count);
  if (attempt.nodes.size() < static_cast<size_t>(attempt.node_count)) {
    nodes += fmt::format(" <span class=\"muted\">(logs of {})</span>", attempt.nodes.size());
  }
  std::string workers = std::to_string(attempt.world_size);
  if (attempt.standby_workers > 0) {
    workers += fmt::format(" <span class=\"muted\">({} from standby)</span>", attempt.standby_workers);
  }
  int64_t stop = attempt.stopping.value_or(attempt.ended);
  std::string ran = attempt.workers_started ? FormatSpan(stop - *attempt.workers_started) : "not at all";
  if (attempt.first_output_seconds) {
    ran += fmt::format("<br><span class=\"muted\">first output after {}</span>",
                       FormatSeconds(*attempt.first_output_seconds));
  }
  std::string why = ReasonHtml(attempt.end_reason.empty() ? "no end recorded" : attempt.end_reason);
  if (!attempt.end_reason.empty() && attempt.not_ended > 0) {
    why += fmt::format(" <span class=\"muted\">(no end recorded on {})</span>", Counted(attempt.not_ended, "node"));
  }
  for (const JobDrill& drill : attempt.drills) {
    why += fmt::format("<br><span class=\"muted\">drill: {}</span>", EscapeHtml(drill.done));
  }
  std::string first = "<span class=\"muted\">nobody</span>";
  if (const FailedWorker* root = attempt.RootCause()) {
    first = fmt::format("rank {} on {}<br><span class=\"c-{}\">{}</span>", root->rank(), EscapeHtml(NodeOf(*root).name),
                        ColourOf(attempt.end), DescribeWorkerExit(*root->exit));
  } else if (attempt.end == WorkerEnd::kSucceeded) {
    first = "<span class=\"c-ok\">nobody: succeeded</span>";
  }
  std::string html = "<tr>";
  html += Cell("Attempt", std::to_string(attempt.number), "num");
  html += Cell("Start", "+" + FormatSpan(attempt.started - run.started), "num");
  html += Cell("Nodes", nodes, "num");
  html += Cell("Workers", workers, "num");
  html += Cell("Ran for", ran, "num");
  html += Cell("Failed first", first);
  html += Cell("Why it ended", why);
  html += Cell("Pause after", attempt.lost ? FormatSpan(*attempt.lost) : "\u2013", "num");
  return html + "</tr>\n";
}

}  // namespace

std::string WhoAndHow(const FailedWorker& failed) {
  return fmt::format("rank {} on {}: {}", failed.rank(), NodeOf(failed).name, DescribeWorkerExit(*failed.exit));
}

std::string ReasonHtml(std::string_view text) { return EscapeHtml(Abbreviated(text, kLongestReason)); }

std::string AttemptsTable(const RunSummary& run, std::span<const AttemptSummary> shown, const AttemptsView& view,
                          size_t& room) {
  std::string html =
      "<table class=\"attempts\"><thead><tr><th>Attempt</th><th>Start</th><th>Nodes</th><th>Workers</th><th>Ran "
      "for</th>"
      "<th>Failed first</th><th>Why it ended</th><th>Pause after</th></tr></thead>\n";
  const bool failed = run.exit_code.value_or(0) != 0;
  for (const AttemptSummary& attempt : shown) {
    const bool open = failed && &attempt == &shown.back() && !attempt.failures.empty();
    html += fmt::format("<tbody>{}<tr class=\"more\"><td colspan=\"8\">{}</td></tr></tbody>\n",
                        AttemptRow(run, attempt), Details(attempt, open, view, room));
  }
  return html + "</table>\n";
}

}  // namespace muster::agent
