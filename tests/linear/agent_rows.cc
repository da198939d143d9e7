// SPDX-License-Identifier: Apache-2.0
// The agent: command lines, host files, scripts, records of attempts, notices of an end.
#include "agent/flags/mpi_hosts.h"
#include "agent/flags/torchrun_flags.h"
#include "agent/live/live_view.h"
#include "agent/live/terminal_keys.h"
#include "agent/live/terminal_text.h"
#include "agent/page/report_page.h"
#include "agent/progress/progress_reader.h"
#include "agent/report/attempt_history.h"
#include "agent/standby/frames.h"
#include "agent/standby/kept_imports.h"
#include "agent/standby/plan.h"
#include "agent/watch/preempt_rules.h"
#include "agent/workers/script_head.h"
#include "base/text.h"
#include "tests/linear/linear.h"

namespace muster::agent {
namespace {

using std::string_view_literals::operator""sv;

void Run(const std::string& text) {
  std::vector<std::string> arguments;
  for (const std::string_view line : Split(text, '\n')) arguments.emplace_back(line);
  (void)ParseRun(arguments, {{"PET_NNODES", "1"}});
}

void Conf(const std::string& text) { (void)ParseRun({"--rdzv-conf", text, "t.py"}, {}); }

void Hosts(const std::string& text) {
  const auto hosts = ParseMpiHosts(text);
  if (!hosts.ok()) return;
  OpenMpiHostFile(*hosts);
  HydraHostFile(*hosts);
}

void Script(const std::string& text) { ReadScriptHead(text); }

void Frames(const std::string& text) {
  standby::FrameReader reader;
  reader.Add(text);
  standby::Imports imports;
  for (auto next = reader.Next(); next.ok() && *next; next = reader.Next()) {
    for (const std::string& name : standby::SplitParts((*next)->body)) imports.Add(name);
  }
}

void Kept(const std::string& text) { standby::ParseKeptImports(text, "versions"); }

void Output(const std::string& text) {
  ProgressReader reader;
  TimePoint now{};
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(std::min<size_t>(rest.size(), 4096))) {
    reader.Add(ProgressReader::Stream::kErr, rest.substr(0, 4096), now += ProgressReader::kWindow);
  }
}

void Live(const std::string& text) {
  const auto view = ParseLiveView(text);
  if (!view.ok()) return;
  Sentence(*view);
  WarningsOf(*view);
  TimeOf(view->report);
  ToJson(*view);
}

void Keys(const std::string& text) {
  KeyReader reader;
  reader.Add(text);
  Wrapped(text, 80, text.size());
}

void Notice(const std::string& text) {
  JudgeNotice(200, text);
  const auto url = ParseHttpUrl(text);
  if (url.ok()) NextTarget(FirstTarget(url->target), "etag");
}

std::string HungWorker(size_t number) {
  return fmt::format(R"({{"pid":1,"exit_code":143,"hang":"no step","hang_place":{}}},)", 10'000'000 - number);
}

// A record, what a run comes to by it, and the page about it.
void Record(const std::string& text) {
  const auto record = ParseAttemptRecord(text);
  if (!record.ok()) return;
  ToJson(*record);
  const std::vector<AttemptFile> files = {{"folder", *record}};
  const std::vector<RunSummary> runs = Summarize(files);
  ReportPage("folder", "folder", runs, {});
  ToJson(runs, {});
}

void Job(const std::string& text) {
  const auto job = ParseJobRecord(text);
  if (!job.ok()) return;
  const std::vector<AttemptFile> files(1);
  std::vector<RunSummary> runs = Summarize(files);
  AddJob(*job, &runs);
  ReportPage("folder", "folder", runs, {});
}

const std::vector<LinearRow> kRows = {
    {"flags", "Flags", Repeats("--max-restarts=3\n--node_rank\n0\n", "", "t.py"), Run},
    {"flags", "ScriptArguments", Repeats("--flag=value\n", "t.py\n"), Run},
    {"flags", "Conf", Numbers([](size_t number) { return fmt::format("key{}=value,", number); }), Conf},
    {"flags", "Ranks",
     Numbers([](size_t rank) { return fmt::format("{},", rank); }, "--local-ranks-filter=", "0\nt.py"), Run},
    {"flags", "Codes", Repeats("1-255,", "--retry-codes=", "3\nt.py"), Run},
    {"mpi_hosts", "Hosts", Numbers([](size_t number) { return fmt::format("host-{} slots=2\n", number); }), Hosts},
    {"mpi_hosts", "OneHost", Repeats("host,"), Hosts},
    {"mpi_hosts", "Comments", Repeats("#\n"), Hosts},
    {"mpi_hosts", "OneEntry", Repeats("slots = 2 "), Hosts},
    {"script_head", "Words", Repeats(" a=b", "#!/usr/bin/env", " python3\n"), Script},
    {"script_head", "Quotes", Repeats("'a'\\b\"c\"", "#!/bin/sh\nexec "), Script},
    {"script_head", "Commands", Repeats("$(", "#!/bin/sh\nexec "), Script},
    {"attempt_record", "HungWorkers",
     Numbers(HungWorker, R"({"run_id":"a","node":"b","round":1,"started_unix_ms":1,"workers":[)", R"({"pid":1}]})"),
     Record},
    {"attempt_record", "Failures",
     Numbers(
         [](size_t number) {
           return fmt::format(R"({{"pid":{},"exit_code":1,"error_message":"gloo: connection reset by peer"}},)",
                              number);
         },
         R"({"run_id":"a","node":"b","round":1,"started_unix_ms":1,"workers":[)", R"({"pid":1}]})"),
     Record},
    {"job_record", "Drills",
     Repeats(R"({"time":"2026-01-01T00:00:00Z","order":"a","done":"b"},)", R"({"kind":"a","name":"b","drills":[)",
             R"({"time":"2026-01-01T00:00:00Z","order":"a","done":"b"}]})"),
     Job},
    {"standby", "Frames", Repeats("N\3\0\0\0a\0b"sv), Frames},
    {"standby", "Names", Numbers([](size_t number) {
       const std::string name = std::to_string(number);
       return standby::Encode(standby::Letter::kNames, name);
     }),
     Frames},
    {"standby", "Changes", Numbers([](size_t number) {
       const std::string entry = fmt::format("=environ:A{}=00ff", number);
       return standby::Encode(standby::Letter::kNames, entry);
     }),
     Frames},
    {"standby", "Kept", Repeats("name\n", "muster imports 2\nversions\n"), Kept},
    {"progress", "Lines", Repeats("epoch 3 step 4/9 loss 0.5\n"), Output},
    {"progress", "Bars", Repeats("12%|# | 12/100 [00:02<00:17, 4it/s]\r"), Output},
    {"progress", "OneLine", Repeats("1/2 [00:1"), Output},
    {"live_view", "Nodes",
     Numbers(
         [](size_t number) {
           return fmt::format(
               R"({{"node":"n{}","rank":{},"slots":1,"remark":"slow","ranks":[{{"step_seconds":{}}}]}},)", number,
               number, number);
         },
         R"({"phase":"running","nodes":[)", "{}]}"),
     Live},
    {"terminal_keys", "Arrows", Repeats("\x1b[1;5A"), Keys},
    {"terminal_keys", "OneSequence", Repeats("9", "\x1b["), Keys},
    {"terminal_keys", "Colours", Repeats("\x1b[31m"), Keys},
    {"terminal_keys", "Marks", Repeats("\u0301", "a"), Keys},
    {"preempt", "Events", Repeats(R"({"EventType":"Preempt","Resources":["a"]},)", R"({"Events":[)", "{}]}"), Notice},
    {"preempt", "Words", Repeats("word "), Notice},
    {"preempt", "Url", Repeats("a&wait_for_change=true&", "http://host/?"), Notice},
};

INSTANTIATE_TEST_SUITE_P(Agent, Linear, testing::ValuesIn(kRows), NameOfRow);

}  // namespace
}  // namespace muster::agent
