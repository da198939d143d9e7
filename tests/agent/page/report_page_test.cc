// SPDX-License-Identifier: Apache-2.0
#include "agent/page/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "agent/report/report_text.h"
#include "base/text.h"
#include "tests/agent/page/markup.h"

namespace muster::agent {
namespace {

using testing::HasSubstr;
using testing::Not;

// A job of `nodes` x `slots`; in every attempt but the last the first worker of node `attempt` is killed.
std::vector<AttemptFile> Job(int nodes, int slots, int attempts) {
  std::vector<AttemptFile> files;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    bool last = attempt + 1 == attempts;
    for (int node = 0; node < nodes; ++node) {
      AttemptFile file{fmt::format("logs/node-{}/job/attempt_{}", node, attempt), {}};
      AttemptRecord& record = file.record;
      record.run_id = "job";
      record.version = "1.2.3";
      record.attempt = attempt;
      rendezvous::Assignment& assignment = record.assignment;
      assignment.id = {1, attempt};
      assignment.restart_count = attempt;
      assignment.max_restarts = 50;
      assignment.world_size = nodes * slots;
      assignment.node_count = nodes;
      assignment.node_rank = node;
      assignment.seat.node.name = fmt::format("node-{}", node);
      assignment.seat.node.slots = slots;
      assignment.seat.first_rank = node * slots;
      record.started_unix_ms = 1'700'000'000'000 + attempt * 60'000;
      record.workers_started_unix_ms = record.started_unix_ms + 500;
      record.stopping_unix_ms = record.started_unix_ms + 50'000;
      record.ended_unix_ms = record.started_unix_ms + 51'000;
      record.end_reason = last ? "all workers succeeded" : "node node-0 (host h): worker rank 0 was killed by SIGKILL";
      for (int rank = 0; rank < slots; ++rank) {
        launcher::ExitRecord exit;
        exit.local_rank = rank;
        exit.ended_unix_millis = record.started_unix_ms + 50'000;
        bool killed = !last && node == attempt % nodes && rank == 0;
        exit.exit_code = last ? 0 : killed ? 137 : 143;
        exit.signal = last ? 0 : killed ? 9 : 15;
        exit.oom_killed = killed;
        exit.after_stop = !last && !killed;
        if (killed) exit.stderr_tail = {"RuntimeError: it broke", "noise"};
        if (killed) exit.stderr_reason = "RuntimeError: it broke";
        record.exits.push_back(exit);
      }
      files.push_back(std::move(file));
    }
  }
  return files;
}

TEST(EscapeHtml, LeavesNoMarkupAndNoControlCharacter) {
  struct Case {
    std::string_view raw;
    std::string_view html;
  };
  const Case cases[] = {
      {"", ""},
      {"plain \xC3\xA4 \xF0\x9F\x98\x80", "plain \xC3\xA4 \xF0\x9F\x98\x80"},
      {"<a href=\"x\" b='y'>&amp;", "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;"},
      {"a\nb\tc\r\nd\re", "a\nb\tc\nd\ne"},
      {std::string_view("nul\0x", 5), "nul\xEF\xBF\xBDx"},
      {"\x1b[31;1mred\x1b[0m", "red"},
      {"\x1b]0;title\x07", "\xEF\xBF\xBD]0;title\xEF\xBF\xBD"},
      {"\x1b[", "\xEF\xBF\xBD["},
      {"\xff", "\xEF\xBF\xBD"},
      {"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},                  // overlong
      {"\xE0\x80\xBC", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},  // an overlong "<"
      {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},  // a surrogate
      {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"cut \xE2\x82", "cut \xEF\xBF\xBD\xEF\xBF\xBD"},
      {"\xC2\x85", "\xEF\xBF\xBD"},      // a control character of C1
      {"\xE2\x80\xAE", "\xEF\xBF\xBD"},  // turns the direction of writing
      {"\xEF\xBF\xBF", "\xEF\xBF\xBD"},  // no character
  };
  for (const Case& c : cases) EXPECT_EQ(EscapeHtml(c.raw), c.html);
}

TEST(ReportText, SpansHaveTwoUnitsAtMost) {
  EXPECT_EQ(FormatSpan(-5), "0 ms");
  EXPECT_EQ(FormatSpan(999), "999 ms");
  EXPECT_EQ(FormatSpan(1250), "1.25 s");
  EXPECT_EQ(FormatSpan(12'340), "12.3 s");
  EXPECT_EQ(FormatSpan(59'999), "59.9 s");
  EXPECT_EQ(FormatSpan(245'000), "4 min 05 s");
  EXPECT_EQ(FormatSpan(3 * 3'600'000 + 12 * 60'000), "3 h 12 min");
  EXPECT_EQ(FormatSpan(52 * 3'600'000), "2 d 4 h");
  EXPECT_EQ(FormatSeconds(0.0296), "30 ms");
  EXPECT_EQ(FormatSeconds(1.25), "1.25 s");
  EXPECT_EQ(FormatMoment(1'700'000'000'000), "2023-11-14 22:13:20 UTC");
  EXPECT_EQ(FormatMoment(-1), "");
}

TEST(ReportText, CutsBetweenCharacters) {
  EXPECT_EQ(LastPart("x\xC3\xA4yz", 3), "...\nyz");
  EXPECT_EQ(LastPart("first\nsecond", 8), "...\nsecond");
}

TEST(ReportText, TicksStayReadable) {
  for (int64_t span = 1; span < int64_t{1} << 52; span *= 3) {
    std::vector<int64_t> ticks = AxisTicks(span, 5);
    EXPECT_GE(ticks.size(), span < 5 ? 1u : 2u) << span;
    EXPECT_LE(ticks.size(), 6u) << span;
    EXPECT_LE(ticks.back(), span);
    EXPECT_LE(FormatTick(ticks.back()).size(), 12u) << FormatTick(ticks.back());
  }
  EXPECT_EQ(FormatTick(1500), "1.5 s");
  EXPECT_EQ(FormatTick(600'000), "10 min");
}

TEST(ReportPage, TellsWhatHappenedWhyAndWhatItCost) {
  std::vector<AttemptFile> files = Job(2, 2, 3);
  std::string page = ReportPage("logs", "", Summarize(files), {});
  EXPECT_THAT(page, HasSubstr("Succeeded after 2 restarts"));
  EXPECT_THAT(page, HasSubstr("exit code 0"));
  EXPECT_THAT(page, HasSubstr("rank 0 on node-0: killed by SIGKILL (out of memory)"));
  EXPECT_THAT(page, HasSubstr("rank 2 on node-1: killed by SIGKILL (out of memory)"));
  EXPECT_THAT(page, HasSubstr("killed by SIGKILL (out of memory): RuntimeError: it broke"));
  EXPECT_THAT(page, HasSubstr("<dt>Time lost</dt><dd>21.0 s"));  // twice 10.5 s
  EXPECT_THAT(page, HasSubstr("RuntimeError: it broke"));
  EXPECT_THAT(page, HasSubstr("logs/node-1/job/attempt_1"));
  EXPECT_EQ(CountOf(page, "class=\"cross retry\" x="), 2u);
}

// With the agent's ledger all that is not training is lost.
TEST(ReportPage, TimeIsLostByMoreThanPauses) {
  std::vector<AttemptFile> files = Job(2, 2, 3);
  for (AttemptFile& file : files) {
    file.record.spent = TimeSpent{};
    (*file.record.spent)[static_cast<size_t>(TimeUse::kTraining)] = std::chrono::seconds(60);
    (*file.record.spent)[static_cast<size_t>(TimeUse::kStart)] = std::chrono::seconds(15);
    (*file.record.spent)[static_cast<size_t>(TimeUse::kRedone)] = std::chrono::seconds(25);
  }
  const std::string page = ReportPage("logs", "", Summarize(files), {});
  EXPECT_THAT(page, HasSubstr("<dt>Time lost</dt><dd>40.0 s"));
}

TEST(ReportPage, SaysHowManyWorkersBeganInAStandby) {
  std::vector<AttemptFile> files = Job(2, 2, 2);
  files[2].record.standby_workers = 2;
  files[3].record.standby_workers = 1;
  const std::vector<RunSummary> runs = Summarize(files);
  const std::string page = ReportPage("logs", "", runs, {});
  EXPECT_THAT(page, HasSubstr(">4 <span class=\"muted\">(3 from standby)</span><"));
  EXPECT_EQ(CountOf(page, "from standby"), 1u);
  EXPECT_THAT(ToJson(runs, {}), HasSubstr("\"standby_workers\": 3"));
}

TEST(ReportPage, SaysWhenTheFirstOutputCame) {
  std::vector<AttemptFile> files = Job(2, 2, 2);  // both nodes of attempt 0, then of attempt 1
  EXPECT_THAT(ReportPage("logs", "", Summarize(files), {}), Not(HasSubstr("first output")));
  EXPECT_EQ(CountOf(ToJson(Summarize(files), {}), "\"first_output_seconds\": null"), 2u);
  files[0].record.first_output_seconds = 4.1;
  files[2].record.first_output_seconds = 0.25;
  files[3].record.first_output_seconds = 0.0304;
  const std::vector<RunSummary> runs = Summarize(files);
  EXPECT_EQ(runs.at(0).attempts.at(0).first_output_seconds, 4.1);  // a node that saw no output does not count
  EXPECT_EQ(runs[0].attempts.at(1).first_output_seconds, 0.0304);
  const std::string page = ReportPage("logs", "", runs, {});
  EXPECT_EQ(CountOf(page, "<br><span class=\"muted\">first output after 4.10 s</span>"), 1u);
  EXPECT_EQ(CountOf(page, "<br><span class=\"muted\">first output after 30 ms</span>"), 1u);
  EXPECT_THAT(ToJson(runs, {}), HasSubstr("\"first_output_seconds\": 0.0304,"));
}

TEST(ReportPage, AJobOfMusterLocal) {
  std::vector<AttemptFile> files = Job(2, 2, 2);
  std::vector<RunSummary> runs = Summarize(files);
  AddJob({.kind = "TrainJob",
          .name = "<hello>",
          .restarts = 4,
          .max_restarts = 6,
          .drills = {{files[0].record.started_unix_ms, "rank:0@<b>", "SIGKILL to rank 0 on hello-node-0-0"}}},
         &runs);
  const std::string page = ReportPage("logs", "", runs, {});
  EXPECT_THAT(page, HasSubstr("<title>&lt;hello&gt;: Succeeded after 4 restarts</title>"));
  EXPECT_THAT(page, HasSubstr("TrainJob &lt;hello&gt;, run <code>job</code>"));
  EXPECT_THAT(page, HasSubstr("<dt>Restarts</dt><dd>4<small>of 6 in the budget"));
  EXPECT_THAT(page,
              HasSubstr("Drill in attempt 0, by --kill rank:0@&lt;b&gt;:</span> SIGKILL to rank 0 on hello-node-0-0"));
  EXPECT_THAT(page, HasSubstr("drill: SIGKILL to rank 0 on hello-node-0-0"));
}

TEST(ReportPage, AFailedRunShowsItsLastWords) {
  std::vector<AttemptFile> files = Job(2, 2, 3);
  files.resize(4);
  std::vector<RunSummary> runs = Summarize(files);
  EXPECT_EQ(Headline(runs[0]), "Failed after 1 restart: killed by SIGKILL (out of memory)");
  std::string page = ReportPage("logs", "", runs, {});
  EXPECT_THAT(page, HasSubstr("<blockquote>RuntimeError: it broke</blockquote>"));
  EXPECT_THAT(page, HasSubstr("exit code 137, retryable"));
  EXPECT_EQ(CountOf(page, "<details open>"), 1u);
  const size_t at = files[2].record.exits[0].exit_code == 137 ? 2 : 3;
  launcher::ExitRecord& failed = files[at].record.exits[0];
  failed.error_message = "RuntimeError: CUDA error\nCompile with it";
  EXPECT_THAT(ReportPage("logs", "", Summarize(files), {}),
              HasSubstr("<blockquote>RuntimeError: CUDA error</blockquote>"));
  failed.error_message.clear();
  failed.error_callstack = "Traceback (most recent call last):\n  File \"t.py\", line 3, in f\nKeyError: 'x'\na note\n";
  EXPECT_THAT(ReportPage("logs", "", Summarize(files), {}), HasSubstr("<blockquote>KeyError: "));
}

TEST(ReportPage, ManyReasonsAreToldByKind) {
  std::vector<AttemptFile> files = Job(8, 1, 9);
  std::string page = ReportPage("logs", "", Summarize(files), {});
  EXPECT_THAT(page, HasSubstr("8 attempts ended:</span> a worker: killed by SIGKILL (out of memory)"));
  EXPECT_EQ(CountOf(page, " ended:</span>"), 1u);
}

TEST(ReportPage, NoEndRecorded) {
  std::vector<AttemptFile> files = Job(2, 1, 1);
  for (AttemptFile& file : files) {
    file.record.exits.clear();
    file.record.stopping_unix_ms.reset();
    file.record.ended_unix_ms.reset();
    file.record.end_reason.clear();
  }
  std::string page = ReportPage("logs", "", Summarize(files), {});
  EXPECT_THAT(page, HasSubstr("<h1>No end recorded"));
  EXPECT_THAT(page, HasSubstr("rect class=\"open\""));
}

TEST(ReportPage, NothingFromAWorkerIsMarkup) {
  const std::string evil = "<script>alert(1)</script>\"'><img src=x onerror=y>&\xff";
  std::vector<AttemptFile> files = Job(1, 2, 2);
  files.resize(1);
  AttemptRecord& record = files[0].record;
  record.run_id = record.version = record.end_reason = record.start_reason = files[0].folder = evil;
  record.assignment.seat.node.name = record.assignment.seat.node.host = evil;
  for (launcher::ExitRecord& exit : record.exits) {
    exit.error_message = exit.error_callstack = evil;
    exit.stderr_tail = {evil};
  }
  std::string page = ReportPage(evil, "", Summarize(files), {{evil, evil}});
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("\xff")));
  EXPECT_THAT(page, Not(HasSubstr("\"'>")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
}

TEST(ReportPage, ProblemsAreSaid) {
  std::string page = ReportPage("logs", "", {}, {{"logs/job/attempt_0/attempt.json", "is not JSON, or was cut off"}});
  EXPECT_THAT(page, HasSubstr("1 record could not be used"));
  EXPECT_THAT(page, HasSubstr("logs/job/attempt_0/attempt.json"));
  EXPECT_THAT(page, HasSubstr("No attempt could be read"));
}

TEST(ReportPage, ManyWorkersAreFoldedToNodes) {
  std::vector<AttemptFile> files = Job(128, 8, 50);
  std::string page = ReportPage("logs", "", Summarize(files), {});
  EXPECT_LT(page.size(), 3u << 20);
  EXPECT_EQ(CountOf(page, "<div class=\"node\""), 129u);  // and the job's row
  EXPECT_THAT(page, HasSubstr("there are 1024 workers"));
}

TEST(ReportPage, MoreNodesThanRowsKeepThoseThatFailed) {
  std::vector<AttemptFile> files = Job(40, 4, 3);
  PageLimits limits;
  limits.timeline.node_rows = 10;
  std::swap(files[0].record.assignment.seat.node.name, files[39].record.assignment.seat.node.name);
  std::string page = ReportPage("logs", "", Summarize(files), {}, limits);
  EXPECT_EQ(CountOf(page, "<div class=\"node\""), 11u);
  EXPECT_THAT(page, HasSubstr("30 nodes left out"));
  EXPECT_THAT(page, HasSubstr("<div class=\"node\" title=\"node-39\">"));
}

TEST(ReportPage, EverythingIsBounded) {
  std::vector<AttemptFile> files = Job(2, 16, 60);
  for (AttemptFile& file : files) {
    for (launcher::ExitRecord& exit : file.record.exits) {
      exit.after_stop = false;
      exit.exit_code = 1;
      exit.stderr_tail.assign(20, std::string(2000, '<'));
    }
  }
  PageLimits limits;
  limits.attempts = 30;
  limits.all_text = 200'000;
  std::string page = ReportPage("logs", "", Summarize(files), {}, limits);
  EXPECT_LT(page.size(), 1'500'000u);
  EXPECT_THAT(page, HasSubstr("30 before them left out"));
  EXPECT_THAT(page, HasSubstr("and 24 other failed workers"));
  EXPECT_THAT(page, HasSubstr("left out here, see its file"));
}

TEST(ReportJson, HasTheSameFacts) {
  std::vector<AttemptFile> files = Job(2, 2, 2);
  auto json = nlohmann::json::parse(ToJson(Summarize(files), {{"p\xff", "w"}}));
  EXPECT_EQ(json["runs"][0]["exit_code"], 0);
  EXPECT_EQ(json["runs"][0]["lost_ms"], 10'500);
  EXPECT_EQ(json["runs"][0]["attempts"][0]["failures"][0]["signal"], "SIGKILL");
  EXPECT_EQ(json["runs"][0]["attempts"][0]["failures"][0]["class"], "retryable");
  EXPECT_EQ(json["problems"].size(), 1u);
}

}  // namespace
}  // namespace muster::agent
