#include "agent/report/report_page.h"

#include <algorithm>
#include <map>

#include "agent/report/report_style.h"
#include "agent/report/report_text.h"
#include "base/exit_codes.h"
#include "base/reason_line.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster::agent {
namespace {

constexpr size_t kMostCauses = 4;       // shown in the head of a run
constexpr size_t kMostNodesNamed = 12;  // listed with their paths
constexpr size_t kLongestQuote = 400;
constexpr size_t kMostRunsListed = 100;
constexpr size_t kLongestReason = 600;

const rendezvous::Node& NodeOf(const FailedWorker& failed) { return failed.file->record.assignment.seat.node; }

// The CSS class of a class of exit codes; nullopt: no exit code is recorded.
std::string_view CodeClass(std::optional<ExitClass> exit_class) {
  if (!exit_class) return "open";
  switch (*exit_class) {
    case ExitClass::kSuccess:
      return "ok";
    case ExitClass::kFatal:
      return "fatal";
    case ExitClass::kRetryable:
      return "retry";
  }
  return "open";
}

std::string Reason(std::string_view text) { return EscapeHtml(Abbreviated(text, kLongestReason)); }

// "rank 3 on node-0: exit code 1"
std::string WhoAndHow(const FailedWorker& failed) {
  return fmt::format("rank {} on {}: {}", failed.rank(), NodeOf(failed).name, DescribeWorkerExit(*failed.exit));
}

// The shortest reason why the attempt ended.
std::string ShortReason(const AttemptSummary& attempt) {
  if (const FailedWorker* root = attempt.RootCause()) return WhoAndHow(*root);
  if (!attempt.end_reason.empty()) return attempt.end_reason;
  return "no end recorded";
}

// The worker's own reason: its error file's message, the exception of its traceback, or a line of its stderr.
std::string LastWords(const launcher::ExitRecord& exit) {
  const std::string_view message = Strip(exit.error_message);
  if (!message.empty() && !HasTraceback(message)) return std::string(Strip(message.substr(0, message.find('\n'))));
  for (std::string_view text : {message, std::string_view(exit.error_callstack)}) {
    if (std::string reason = ReasonLine(text, text.size()); !reason.empty()) return reason;
  }
  return exit.stderr_reason;
}

std::string Fact(std::string_view name, std::string_view value, std::string_view note = "") {
  std::string html = fmt::format("<div><dt>{}</dt><dd>{}", name, value);
  if (!note.empty()) html += fmt::format("<small>{}</small>", note);
  return html + "</dd></div>\n";
}

// A job of `muster local` counts its restarts itself. Of other runs each further attempt is one.
int RestartsOf(const RunSummary& run) {
  return run.job_name.empty() ? static_cast<int>(run.attempts.size()) - 1 : run.restarts;
}

std::string Facts(const RunSummary& run) {
  int64_t total = run.ended - run.started;
  size_t called_off =
      std::count_if(run.attempts.begin(), run.attempts.end(), [](auto& a) { return !a.workers_started; });
  const AttemptSummary& last = run.attempts.back();
  std::string share = total > 0 ? fmt::format("{:.1f} % of the total",
                                              100.0 * static_cast<double>(run.lost) / static_cast<double>(total))
                                : "";
  std::string html = "<dl class=\"facts\">\n";
  html += Fact("Total time", FormatSpan(total), run.end_recorded ? "" : "to the last record");
  html += Fact("Time lost", FormatSpan(run.lost), run.lost > 0 ? share : "");
  html += Fact("Attempts", std::to_string(run.attempts.size()),
               called_off > 0 ? fmt::format("{} called off early", called_off) : "");
  html += Fact("Restarts", std::to_string(RestartsOf(run)),
               run.job_name.empty() ? fmt::format("{} of {} in the budget", run.restarts, run.max_restarts)
                                    : fmt::format("of {} in the budget", run.max_restarts));
  html += Fact("Workers", std::to_string(last.world_size), fmt::format("on {}", Counted(last.node_count, "node")));
  return html + "</dl>\n";
}

struct Cause {
  std::string text;
  std::vector<int> attempts;
};

// What ended each attempt except the last. Equal causes are counted together, the most frequent first.
std::vector<Cause> Interruptions(const RunSummary& run, bool with_rank) {
  std::vector<Cause> causes;
  std::map<std::string, size_t> places;
  for (size_t at = 0; at + 1 < run.attempts.size(); ++at) {
    const AttemptSummary& attempt = run.attempts[at];
    std::string text;
    if (const FailedWorker* root = attempt.RootCause()) {
      text = with_rank ? WhoAndHow(*root) : "a worker: " + DescribeWorkerExit(*root->exit);
    } else {
      // The coordinator's reason for the next round says more than the reason of an attempt that was only stopped.
      text = run.attempts[at + 1].start_reason.empty() ? ShortReason(attempt) : run.attempts[at + 1].start_reason;
    }
    auto [place, is_new] = places.try_emplace(text, causes.size());
    if (is_new) causes.push_back({text, {}});
    causes[place->second].attempts.push_back(attempt.number);
  }
  std::stable_sort(causes.begin(), causes.end(),
                   [](const Cause& a, const Cause& b) { return a.attempts.size() > b.attempts.size(); });
  return causes;
}

std::string Causes(const RunSummary& run) {
  std::vector<Cause> causes = Interruptions(run, /*with_rank=*/true);
  if (causes.size() > kMostCauses) causes = Interruptions(run, /*with_rank=*/false);
  if (causes.empty()) return "";
  std::string html = "<ul class=\"why\">\n";
  for (size_t at = 0; at < std::min(causes.size(), kMostCauses); ++at) {
    const std::vector<int>& attempts = causes[at].attempts;
    std::string which =
        attempts.size() == 1 ? fmt::format("Attempt {}", attempts.front()) : Counted(attempts.size(), "attempt");
    html += fmt::format("<li><span class=\"muted\">{} ended:</span> {}</li>\n", which, Reason(causes[at].text));
  }
  if (causes.size() > kMostCauses) {
    html += fmt::format("<li class=\"muted\">and {}</li>\n", Counted(causes.size() - kMostCauses, "other reason"));
  }
  return html + "</ul>\n";
}

// The drills: what follows from them is no fault of the job.
std::string Drills(const RunSummary& run) {
  std::string html;
  for (const AttemptSummary& attempt : run.attempts) {
    for (const JobDrill& drill : attempt.drills) {
      html += fmt::format("<li><span class=\"muted\">Drill in attempt {}, by --kill {}:</span> {}</li>\n",
                          attempt.number, EscapeHtml(drill.order), EscapeHtml(drill.done));
    }
  }
  return html.empty() ? "" : fmt::format("<ul class=\"why\">\n{}</ul>\n", html);
}

std::string Head(const RunSummary& run, size_t index) {
  std::string css(CodeClass(run.exit_class));
  std::string badge = run.exit_code ? fmt::format("exit code {}", *run.exit_code) : "no exit code";
  if (run.exit_class && *run.exit_code != 0) badge += fmt::format(", {}", ExitClassName(*run.exit_class));
  std::string html = fmt::format("<section class=\"run {}\" id=\"run-{}\">\n", css, index);
  const std::string job = run.job_name.empty() ? "" : EscapeHtml(fmt::format("{} {}, ", run.job_kind, run.job_name));
  html += fmt::format("<p class=\"kicker\">{}{} <code>{}</code></p>\n", job, job.empty() ? "Run" : "run",
                      EscapeHtml(run.run_id));
  html += fmt::format("<h1>{} <span class=\"badge c-{}\">{}</span></h1>\n", EscapeHtml(Headline(run)), css, badge);
  const AttemptSummary& last = run.attempts.back();
  if (const FailedWorker* root = last.RootCause()) {
    html += fmt::format("<p>Rank {} on {} failed first: {}.</p>\n", root->rank(), EscapeHtml(NodeOf(*root).name),
                        DescribeWorkerExit(*root->exit));
    std::string words = LastWords(*root->exit);
    if (!words.empty())
      html += fmt::format("<blockquote>{}</blockquote>\n", EscapeHtml(Abbreviated(words, kLongestQuote)));
  } else if (!run.reason.empty() && run.exit_code != 0) {
    html += fmt::format("<p>{}</p>\n", Reason(run.reason));
  }
  if (!run.end_recorded) {
    html += fmt::format("<p>No end recorded on {} of {}: killed with the agent, or it still runs.</p>\n",
                        last.not_ended, Counted(last.nodes.size(), "node"));
  }
  html += Drills(run);
  html += Causes(run);
  html += Facts(run);
  html += fmt::format("<p class=\"muted\" style=\"margin-top:10px\">{} to {}, Muster {}</p>\n",
                      FormatMoment(run.started), FormatMoment(run.ended), EscapeHtml(run.version));
  return html;
}

std::string Pre(std::string_view name, std::string_view text, size_t limit, size_t& room) {
  text = Strip(text);
  if (text.empty()) return "";
  if (room == 0) return fmt::format("<p class=\"muted\">{}: left out here, see its file.</p>\n", name);
  std::string part = EscapeHtml(LastPart(text, std::min(limit, room)));
  room -= std::min(room, part.size());
  return fmt::format("<p class=\"muted\">{}</p><pre>{}</pre>\n", name, part);
}

std::string FailureDetails(const FailedWorker& failed, const PageLimits& limits, size_t& room) {
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
  html += Pre(exit.error_callstack.empty() ? "Error message" : "Traceback", message, limits.text, room);
  html += Pre("Last lines of stderr", Join(exit.stderr_tail, "\n"), limits.text, room);
  html +=
      fmt::format("<p class=\"muted\">Logs: <code>{}/{}</code>{}</p>\n", EscapeHtml(failed.file->folder),
                  exit.local_rank, failed.hang_place ? "; what it was doing is in <code>hang.txt</code> there" : "");
  return html;
}

std::string Details(const AttemptSummary& attempt, bool open, const PageLimits& limits, size_t& room) {
  std::string title = "Log files";
  if (!attempt.failures.empty()) {
    title = attempt.failures.size() == 1
                ? "Last lines and logs of the worker that failed"
                : fmt::format("Last lines and logs of {} workers that failed", attempt.failures.size());
  }
  std::string html = fmt::format("<details{}><summary>{}</summary>\n", open ? " open" : "", title);
  size_t shown = std::min(attempt.failures.size(), limits.failures);
  for (size_t at = 0; at < shown; ++at) html += FailureDetails(attempt.failures[at], limits, room);
  if (shown < attempt.failures.size()) {
    html +=
        fmt::format("<p class=\"muted\">and {}</p>\n", Counted(attempt.failures.size() - shown, "other failed worker"));
  }
  html += fmt::format("<h3>Log folders</h3><ul class=\"paths\">\n");
  size_t named = std::min(attempt.nodes.size(), kMostNodesNamed);
  for (size_t at = 0; at < named; ++at) {
    html += fmt::format("<li><code>{}</code></li>\n", EscapeHtml(attempt.nodes[at]->folder));
  }
  if (named < attempt.nodes.size())
    html += fmt::format("<li class=\"muted\">and of {}</li>\n", Counted(attempt.nodes.size() - named, "other node"));
  html += "</ul>";
  if (!attempt.start_reason.empty())
    html += fmt::format("<p class=\"muted\">Started because: {}</p>\n", Reason(attempt.start_reason));
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
  std::string why = Reason(attempt.end_reason.empty() ? "no end recorded" : attempt.end_reason);
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
  html += Cell("Time lost", attempt.lost ? FormatSpan(*attempt.lost) : "\u2013", "num");
  return html + "</tr>\n";
}

std::string RunHtml(const RunSummary& run, size_t index, const PageLimits& limits, size_t& room) {
  std::span<const AttemptSummary> shown(run.attempts);
  size_t left_out = shown.size() - std::min(shown.size(), limits.attempts);
  shown = shown.subspan(left_out);
  std::string html = Head(run, index);
  html += "<h2>Timeline</h2>\n" + Timeline(shown, limits.timeline);
  html += "<h2>Attempts</h2>\n";
  if (left_out > 0)
    html += fmt::format("<p class=\"muted\">The newest {}; {} before them left out, here and in the timeline.</p>\n",
                        shown.size(), left_out);
  html +=
      "<table><thead><tr><th>Attempt</th><th>Start</th><th>Nodes</th><th>Workers</th><th>Ran for</th>"
      "<th>Failed first</th><th>Why it ended</th><th>Time lost</th></tr></thead>\n";
  bool failed = run.exit_code.value_or(0) != 0;
  for (const AttemptSummary& attempt : shown) {
    bool open = failed && &attempt == &shown.back() && !attempt.failures.empty();
    html += fmt::format("<tbody>{}<tr class=\"more\"><td colspan=\"8\">{}</td></tr></tbody>\n",
                        AttemptRow(run, attempt), Details(attempt, open, limits, room));
  }
  return html + "</table>\n</section>\n";
}

std::string Problems(const std::vector<HistoryProblem>& problems, size_t most) {
  if (problems.empty()) return "";
  std::string html = fmt::format("<h2 id=\"problems\">Could not be used</h2>\n<ul class=\"paths\">\n");
  for (size_t at = 0; at < std::min(problems.size(), most); ++at) {
    html += fmt::format("<li><code>{}</code> {}</li>\n", EscapeHtml(problems[at].path), EscapeHtml(problems[at].what));
  }
  if (problems.size() > most) html += fmt::format("<li class=\"muted\">and {} more</li>\n", problems.size() - most);
  return html + "</ul>\n";
}

std::string OtherRuns(const std::vector<RunSummary>& runs, size_t told) {
  if (runs.size() < 2) return "";
  std::string html = fmt::format("<p class=\"kicker\">{} in this folder, the newest first:</p><ul class=\"paths\">\n",
                                 Counted(runs.size(), "run"));
  for (size_t at = 0; at < std::min(runs.size(), kMostRunsListed); ++at) {
    std::string id = EscapeHtml(runs[at].run_id);
    html += at < told ? fmt::format("<li><a href=\"#run-{}\">{}</a> ", at, id) : fmt::format("<li>{} ", id);
    html += fmt::format("<span class=\"muted\">{}, {}</span></li>\n", FormatMoment(runs[at].started),
                        EscapeHtml(Headline(runs[at])));
  }
  if (runs.size() > kMostRunsListed)
    html += fmt::format("<li class=\"muted\">and {} more</li>\n", runs.size() - kMostRunsListed);
  return html + "</ul>\n";
}

}  // namespace

std::string Headline(const RunSummary& run) {
  const int restarts = RestartsOf(run);
  std::string after = restarts == 0 ? "" : fmt::format(" after {}", Counted(restarts, "restart"));
  if (run.exit_code == 0) return "Succeeded" + after;
  const AttemptSummary& last = run.attempts.back();
  if (const FailedWorker* root = last.RootCause()) {
    return fmt::format("Failed{}: {}", after, DescribeWorkerExit(*root->exit));
  }
  if (!run.end_recorded) return "No end recorded";
  return (run.exit_code ? "Stopped" : "Ended") + after;
}

std::string ReportPage(const std::string& folder, const std::vector<RunSummary>& runs,
                       const std::vector<HistoryProblem>& problems, const PageLimits& limits) {
  std::string title = "no run";
  if (!runs.empty()) {
    const RunSummary& newest = runs.front();
    title = fmt::format("{}: {}", newest.job_name.empty() ? newest.run_id : newest.job_name, Headline(newest));
  }
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<title>{}</title>\n<style>{}</style></head>\n<body><main>\n",
      EscapeHtml(title), kReportStyle);
  size_t told = std::min(runs.size(), limits.runs);
  html += OtherRuns(runs, told);
  if (!problems.empty()) {
    html += fmt::format(
        "<p class=\"notice\">{} could not be used; this report is made from the rest. <a "
        "href=\"#problems\">Which</a></p>\n",
        Counted(problems.size(), "record"));
  }
  size_t room = limits.all_text;
  for (size_t at = 0; at < told; ++at) html += RunHtml(runs[at], at, limits, room);
  if (runs.empty()) html += "<h1>No attempt could be read</h1>\n";
  html += Problems(problems, limits.problems);
  html += fmt::format(
      "<footer>Made by muster report from <code>{}</code>. Times are the nodes' own clocks. Time lost runs from the "
      "first sign of a failure until all workers run again; work done again since a checkpoint is not in it."
      "</footer>\n</main></body></html>\n",
      EscapeHtml(folder));
  return html;
}

}  // namespace muster::agent
