// SPDX-License-Identifier: Apache-2.0
#include "agent/page/report_page.h"

#include <algorithm>
#include <map>

#include "agent/page/frame.h"
#include "agent/page/report_attempts.h"
#include "agent/page/report_training.h"
#include "agent/page/time_bar.h"
#include "agent/page/widgets.h"
#include "agent/report/report_text.h"
#include "base/exit_codes.h"
#include "base/reason_line.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster::agent {
namespace {

constexpr size_t kMostCauses = 4;  // shown in the head of a run
constexpr size_t kLongestQuote = 400;
constexpr size_t kMostRunsListed = 100;
constexpr size_t kMostMachines = 256;
constexpr size_t kOpenMachines = 16;  // with more, their table is closed at first

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

// A job of `muster local` counts its restarts itself. Of other runs each further attempt is one.
int RestartsOf(const RunSummary& run) {
  return run.job_name.empty() ? static_cast<int>(run.attempts.size()) - 1 : run.restarts;
}

std::string Figures(const RunSummary& run, const RunTraining& training) {
  const int64_t total = run.ended - run.started;
  const auto called_off =
      std::count_if(run.attempts.begin(), run.attempts.end(), [](auto& a) { return !a.workers_started; });
  const AttemptSummary& last = run.attempts.back();
  int64_t lost = run.lost;
  if (training.spent) {
    const Duration kept = (*training.spent)[static_cast<size_t>(TimeUse::kTraining)];
    lost = (TotalOf(*training.spent) - kept) / std::chrono::milliseconds(1);
  }
  const double share = total > 0 ? static_cast<double>(lost) / static_cast<double>(total) : 0;
  std::vector<Tile> tiles = {
      {"Total time", FormatSpan(total), run.end_recorded ? "" : "to the last record"},
      {"Time lost", FormatSpan(lost), share > 0 ? Percent(share) + " of the total" : ""},
      {"Attempts", std::to_string(run.attempts.size()),
       called_off > 0 ? fmt::format("{} called off early", called_off) : ""},
      {"Restarts", std::to_string(RestartsOf(run)),
       run.job_name.empty() ? fmt::format("{} of {} in the budget", run.restarts, run.max_restarts)
                            : fmt::format("of {} in the budget", run.max_restarts)},
      {"Workers", std::to_string(last.world_size), fmt::format("on {}", Counted(last.node_count, "node"))}};
  if (training.furthest) {
    const RankTraining& furthest = *training.furthest;
    const auto told = [&](double position) { return FormatPosition(position, furthest.in_epochs); };
    tiles.push_back({furthest.in_epochs ? "Epochs" : "Steps", told(furthest.position),
                     furthest.end ? "of " + told(*furthest.end) : ""});
    if (furthest.end && *furthest.end > 0) tiles.back().share = furthest.position / *furthest.end;
    if (furthest.loss) tiles.push_back({"Last loss", FormatLoss(*furthest.loss), ""});
  }
  if (training.spent) {
    if (const auto goodput = GoodputOf(*training.spent))
      tiles.push_back({"Goodput", Percent(*goodput), "of the time went into training"});
  }
  return Tiles(tiles);
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
      if (const std::string words = LastWords(*root->exit); !words.empty()) {
        text += fmt::format(": {}", Abbreviated(words, kLongestQuote));
      }
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
  std::string html = "<ul class=\"list\">\n";
  for (size_t at = 0; at < std::min(causes.size(), kMostCauses); ++at) {
    const std::vector<int>& attempts = causes[at].attempts;
    std::string which =
        attempts.size() == 1 ? fmt::format("Attempt {}", attempts.front()) : Counted(attempts.size(), "attempt");
    html += fmt::format("<li><span class=\"muted\">{} ended:</span> {}</li>\n", which, ReasonHtml(causes[at].text));
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
  return html.empty() ? "" : fmt::format("<ul class=\"list\">\n{}</ul>\n", html);
}

std::string Head(const RunSummary& run, const RunTraining& training, size_t index) {
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
    html += fmt::format("<p>{}</p>\n", ReasonHtml(run.reason));
  }
  if (!run.end_recorded) {
    html += fmt::format("<p>No end recorded on {} of {}: killed with the agent, or it still runs.</p>\n",
                        last.not_ended, Counted(last.nodes.size(), "node"));
  }
  html += Drills(run);
  html += Causes(run);
  return html + Figures(run, training);
}

// The nodes of the last attempt, each with its machine and the folder of its logs.
std::string Machines(const AttemptSummary& attempt) {
  if (attempt.nodes.empty()) return "";
  std::string html =
      "<table class=\"plain\"><thead><tr><th>Node</th><th>Host</th><th>Ranks</th><th class=\"num\">Most "
      "memory</th></tr></thead><tbody>\n";
  const size_t shown = std::min(attempt.nodes.size(), kMostMachines);
  for (const AttemptFile* file : std::span(attempt.nodes).first(shown)) {
    const rendezvous::Seat& seat = file->record.assignment.seat;
    int64_t memory = 0;
    for (const launcher::ExitRecord& exit : file->record.exits) memory = std::max(memory, exit.max_rss_bytes);
    const int last = seat.first_rank + std::max(seat.node.slots, 1) - 1;
    html += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td class=\"num\">{}</td></tr>\n",
        EscapeHtml(seat.node.name), EscapeHtml(seat.node.host),
        last > seat.first_rank ? fmt::format("{} to {}", seat.first_rank, last) : std::to_string(seat.first_rank),
        memory > 0 ? FormatBytes(memory) : "\u2013");
  }
  html += "</tbody></table>\n";
  if (shown < attempt.nodes.size()) {
    html += fmt::format("<p class=\"muted\">and {}</p>\n",
                        Counted(static_cast<int64_t>(attempt.nodes.size() - shown), "other node"));
  }
  return attempt.nodes.size() > kOpenMachines
             ? fmt::format("<details><summary>{}</summary>{}</details>\n",
                           Counted(static_cast<int64_t>(attempt.nodes.size()), "node"), html)
             : html;
}

std::string About(const RunSummary& run, const std::string& folder) {
  const Fact facts[] = {{"Run", run.run_id},
                        {"Begin", FormatMoment(run.started)},
                        {"End", FormatMoment(run.ended)},
                        {"Muster", run.version},
                        {"Logs", folder}};
  const Command commands[] = {
      {"This page again, from the same logs:", "muster report " + ShellWord(folder)},
      {"The same facts for a program:", fmt::format("muster report {} --json", ShellWord(folder))}};
  return Facts(facts) + "<h3>Commands</h3>\n" + Commands(commands);
}

std::string RunHtml(const RunSummary& run, size_t index, const std::string& folder, const std::string& place,
                    const PageLimits& limits, size_t& room) {
  std::span<const AttemptSummary> shown(run.attempts);
  const size_t left_out = shown.size() - std::min(shown.size(), limits.attempts);
  shown = shown.subspan(left_out);
  const RunTraining training = TrainingOf(run);
  std::string html = Head(run, training, index) + "<div class=\"panels\">\n";
  html += Panel("Timeline", Timeline(shown, limits.timeline));
  html += Panel("Loss", LossCurve(training.curves, training.in_epochs), true);
  if (training.spent) {
    const std::string bar = TimeBar(*training.spent);
    html += Panel("Where the time went",
                  bar.empty() ? ""
                              : fmt::format("<p class=\"muted\">By the agent of {}, since it began.</p>\n{}",
                                            EscapeHtml(training.spent_node), bar),
                  true);
  }
  html += Panel("Step times", HeatMapHtml(training.heat), true);
  html += Panel("Machines", Machines(run.attempts.back()), true);
  std::string attempts;
  if (left_out > 0)
    attempts = fmt::format("<p class=\"muted\">The newest {}; {} before them left out, here and in the timeline.</p>\n",
                           shown.size(), left_out);
  attempts += AttemptsTable(run, shown, {limits.failures, limits.text, place}, room);
  html += Panel("Attempts", attempts);
  html += Panel("About", About(run, folder));
  return html + "</div>\n</section>\n";
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

std::string ReportPage(const std::string& folder, const std::string& place, const std::vector<RunSummary>& runs,
                       const std::vector<HistoryProblem>& problems, const PageLimits& limits) {
  Frame frame{.title = "no run", .status = "<p>Report</p>"};
  if (!runs.empty()) {
    const RunSummary& newest = runs.front();
    frame.title = fmt::format("{}: {}", newest.job_name.empty() ? newest.run_id : newest.job_name, Headline(newest));
  }
  const size_t told = std::min(runs.size(), limits.runs);
  frame.main = OtherRuns(runs, told);
  if (!problems.empty()) {
    frame.main += fmt::format(
        "<p class=\"notice\">{} could not be used; this report is made from the rest. <a "
        "href=\"#problems\">Which</a></p>\n",
        Counted(static_cast<int64_t>(problems.size()), "record"));
  }
  size_t room = limits.all_text;
  for (size_t at = 0; at < told; ++at) frame.main += RunHtml(runs[at], at, folder, place, limits, room);
  if (runs.empty()) frame.main += "<h1>No attempt could be read</h1>\n";
  frame.main += Problems(problems, limits.problems);
  frame.footer = fmt::format(
      "<p>Made by muster report from <code>{}</code>. Times are the nodes' own clocks. The pause after an attempt is "
      "from the first sign of its end until all workers run again.</p>\n",
      EscapeHtml(folder));
  return FramedPage(frame);
}

}  // namespace muster::agent
