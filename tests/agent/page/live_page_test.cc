// SPDX-License-Identifier: Apache-2.0
#include "agent/page/live_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "agent/page/live_sections.h"
#include "agent/watch/status_text.h"
#include "base/text.h"
#include "tests/agent/page/live_sample.h"
#include "tests/agent/page/markup.h"

namespace muster::agent {
namespace {

using testing::HasSubstr;
using testing::Not;

LiveContent ContentAt(const LiveSample& sample, const LiveOptions& options = {}) {
  return MakeLiveContent(SampleFacts(sample), options);
}

struct PageEvent {
  std::string name;
  nlohmann::json data;
};
std::vector<PageEvent> Parse(const std::string& stream) {
  std::vector<PageEvent> events;
  for (const std::string_view line : Split(stream, '\n')) {
    if (line.starts_with("event: ")) events.push_back({std::string(line.substr(7)), {}});
    if (line.starts_with("data: ")) events.back().data = nlohmann::json::parse(line.substr(6));
  }
  return events;
}
// The events of that name; for sections their ids.
std::vector<std::string> Sections(const std::string& stream) {
  std::vector<std::string> ids;
  for (const PageEvent& event : Parse(stream)) {
    if (event.name == "section") ids.push_back(event.data["id"]);
  }
  return ids;
}

TEST(LivePage, IsCompleteWhenItIsLoaded) {
  const std::string page = LivePage(ContentAt({}, {.log_dir = "/logs/it's", .kube_namespace = "a b"}));
  for (const char* part :
       {"<title>Training 24 % - TrainJob digits</title>", "run <code>digits-7f</code>",
        "aria-live=\"polite\">Training: 16 workers on 4 nodes, in round 2</span>", ", for 13 min</span>",
        "<dt>Runs for</dt><dd>23 min 21 s", "Rank 6 is slower than the others: 472 ms", "<dt>Goodput</dt><dd>80.7 %",
        "<dt>Left</dt><dd>19 min 34 s", "muster report &#39;/logs/it&#39;\\&#39;&#39;s&#39;",
        "kubectl -n &#39;a b&#39; logs -f digits-node-0-0",
        "id=\"r6\"><th scope=\"row\">6</th><td data-state=\"slow\">slow</td>", "node-1 \u00B7 4\u20137</span>",
        "data-state=\"running\">running</td>", "worker rank 1 on node-0 ended with exit code 1"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  EXPECT_EQ(CountOf(page, "aria-live"), 1u);
  EXPECT_EQ(CountOf(page, "<h1>"), 1u);
  EXPECT_EQ(CountOf(page, "style=\""), 0u);  // the policy forbids it
  EXPECT_EQ(CountOf(page, "class=\"cross run\""), 2u);
}

TEST(LivePage, SaysWhereTheLastRankIsIfItIsFarBehind) {
  LiveFacts facts = SampleFacts({});
  facts.pace.behind = 1239;
  EXPECT_THAT(FiguresSection(facts), Not(HasSubstr("the last rank")));
  facts.pace.behind = 620;
  EXPECT_THAT(FiguresSection(facts), HasSubstr("of 5000; the last rank is at 620"));
  facts.pace.end.reset();
  EXPECT_THAT(FiguresSection(facts), HasSubstr(">the last rank is at 620"));
}

TEST(LivePage, TheTitleSaysWhatTheRunDoes) {
  const struct {
    std::string sentence, phase, job;
    LivePace pace;
    std::string title;
  } rows[] = {
      {"Training: 2 workers", "running", "digits", {.position = 427, .end = 1000}, "Training 42 % - digits"},
      {"Training: 2 workers", "running", "digits", {.position = 9999, .end = 10000}, "Training 99 % - digits"},
      {"Training: 2 workers", "running", "digits", {.position = 12, .end = 10}, "Training 100 % - digits"},
      {"Training: 2 workers", "running", "digits", {.position = 427}, "Training, step 427 - digits"},
      {"Training: 2 workers", "running", "digits", {.position = 4, .in_epochs = true}, "Training, epoch 4 - digits"},
      {"Running: 2 workers", "running", "", {}, "Running - uid"},
      {"Ending: 1 of 2", "running", "", {.position = 10, .end = 10}, "Ending 100 % - uid"},
      {"Restarting", "stopping", "", {.position = 5, .end = 10}, "Restarting - uid"},
      {"Waiting for the first round", "gathering", "a - b", {}, "Waiting - a - b"},
      {"Ended: all workers succeeded", "finished", "digits", {.position = 10, .end = 10}, "Ended - digits"},
      {"", "", "", {}, " - uid"},
  };
  for (const auto& row : rows) {
    LiveFacts facts;
    facts.sentence = row.sentence;
    facts.pace = row.pace;
    facts.view.job = row.job;
    facts.view.report.phase = row.phase;
    facts.view.report.run_id = "uid";
    EXPECT_EQ(MakeLiveContent(facts, {}).title, row.title);
  }
}

TEST(LivePage, TheTitleIsSentWhenItChanges) {
  const LiveContent before = ContentAt({});
  LiveContent now = before;
  const auto titles = [&](const LiveContent* known) {
    std::vector<std::string> told;
    for (const PageEvent& event : Parse(LiveEvents(known, now, {}))) {
      if (event.name == "title") told.push_back(event.data);
    }
    return told;
  };
  EXPECT_THAT(titles(nullptr), testing::ElementsAre(before.title));
  EXPECT_THAT(titles(&before), testing::IsEmpty());
  now.title = "Ended - <b>\"digits\"";
  EXPECT_THAT(titles(&before), testing::ElementsAre(now.title));
  const std::vector<PageEvent> end = Parse(EndedEvent("Ended: all workers succeeded", &before));
  ASSERT_EQ(end.size(), 2u);
  EXPECT_EQ(end[0].data, "Ended - TrainJob digits");
  EXPECT_EQ(end[1].name, "ended");
  EXPECT_EQ(Parse(EndedEvent("Ended: all workers succeeded", nullptr)).size(), 1u);
}

TEST(LivePage, SaysWhatToTypeInPods) {
  LiveFacts facts = SampleFacts({.nodes = 2, .slots = 2, .slow = -1});
  facts.pace.slow.reset();
  rendezvous::StatusReport& report = facts.view.report;
  report.nodes[0].host = "digits-node-0-0";
  report.nodes[1].host = "digits-node-0-1";
  for (rendezvous::StatusLine& node : report.nodes) node.pid = 7;
  LiveOptions options{.kube_namespace = "team"};
  std::string text = LookCloserSection(facts, options);
  EXPECT_THAT(text, HasSubstr("What rank 0 is doing now:"));
  EXPECT_THAT(text, HasSubstr("kubectl -n team exec digits-node-0-0 -- /proc/7/exe stacks 1000<"));
  EXPECT_THAT(text, HasSubstr("kubectl -n team logs -f digits-node-0-1<"));
  options.is_indexed = true;  // the names of its pods have an end that nobody knows here
  text = LookCloserSection(facts, options);
  EXPECT_THAT(text, HasSubstr("kubectl -n team exec &quot;$(kubectl -n team get pods -l "
                              "job-name=digits-node-0,batch.kubernetes.io/job-completion-index=0 "
                              "--field-selector status.phase=Running -o name)&quot; -- /proc/7/exe stacks 1000<"));
  EXPECT_THAT(text, HasSubstr("kubectl -n team logs -f -l "
                              "job-name=digits-node-0,batch.kubernetes.io/job-completion-index=1<"));
  report.nodes[0].telemetry->ranks[0].exit_code = 0;  // it has ended
  facts.pace.slow = LivePace::Slow{.rank = 3, .node = "node-1"};
  text = LookCloserSection(facts, options);
  EXPECT_THAT(text, HasSubstr("What rank 3 is doing now:"));
  EXPECT_THAT(text, HasSubstr("/proc/7/exe stacks 1003<"));
  report.nodes[0].host = "it's; rm -rf $HOME-0";
  EXPECT_THAT(LookCloserSection(facts, options), HasSubstr("&#39;job-name=it&#39;\\&#39;&#39;s; rm -rf $HOME,batch"));
  EXPECT_EQ(LookCloserSection(facts, {}), "");  // the processes of another machine, or of a container, are not here
}

TEST(LivePage, TheFactsFollowFromTheView) {
  const LiveFacts made = FactsOf(SampleFacts({}).view);
  EXPECT_EQ(made.pace.slow.value_or(LivePace::Slow{}).rank, 6);
  EXPECT_THAT(made.sentence, HasSubstr("16 workers on 4 nodes"));
  EXPECT_THAT(LivePage(MakeLiveContent(made, {})), HasSubstr("16 workers on 4 nodes"));
}

TEST(LivePage, WhatIsNotKnownIsLeftOut) {
  LiveFacts facts;
  facts.sentence = "Waiting for the first round: 3 of 4 nodes are here";
  facts.view.source = "node";
  facts.view.source_reason = "no coordinator <b>";
  const std::string page = LivePage(MakeLiveContent(facts, {}));
  EXPECT_THAT(page, HasSubstr("Waiting for the first round: 3 of 4 nodes are here"));
  EXPECT_THAT(page, HasSubstr("no coordinator &lt;b&gt;"));
  for (const char* id : {"curve", "time", "heat", "rounds", "closer"}) {
    EXPECT_THAT(page, testing::ContainsRegex(fmt::format("<section id=\"{}\" class=\"[a-z ]*\"></section>", id)));
  }
  EXPECT_THAT(page, HasSubstr("<section id=\"nodes\" class=\"panel\"></section>"));
}

TEST(LivePage, NothingFromARunIsMarkup) {
  LiveSample sample{.nodes = 2, .slots = 2, .text = kEvilText, .name = kEvilText};
  LiveFacts facts = SampleFacts(sample);
  rendezvous::StatusReport& report = facts.view.report;
  facts.view.job = facts.view.version = facts.view.source_reason = facts.sentence = kEvilText;
  facts.view.source = "node";
  report.run_id = report.phase = report.reason = kEvilText;
  for (rendezvous::StatusLine& node : report.nodes) node.host = node.state = node.remark = kEvilText;
  for (rendezvous::RoundMark& round : report.rounds) round.reason = round.stop_reason = kEvilText;
  for (LiveWarning& warning : facts.warnings) warning.text = kEvilText;
  const LiveContent content = MakeLiveContent(facts, {kEvilText, kEvilText, true, kEvilText});
  std::string page = LivePage(content);
  page.resize(page.rfind("<script>"));  // the page's own comes last
  ExpectNoMarkupOf(page);
  // Cells are texts: they keep the brackets, and lose what would turn the direction.
  for (const std::string& stream :
       {LiveEvents(nullptr, content, {.all_open = true, .open = {}, .outline = content.table.outline}),
        MovedEvent(kEvilText), EndedEvent(kEvilText, &content)}) {
    for (const char* part : {"\x1b", "\xE2\x80\xAE", "\xff"}) EXPECT_THAT(stream, Not(HasSubstr(part)));
    EXPECT_FALSE(Parse(stream).empty());
  }
}

TEST(LivePage, IsBounded) {
  EXPECT_LT(LivePage(ContentAt({.nodes = 40, .slots = 1, .text = std::string(1 << 20, 'x')})).size(), 120'000u);
  const LiveContent many = ContentAt({.nodes = 1250, .slots = 8});
  const std::string page = LivePage(many);
  EXPECT_LT(page.size(), 1'000'000u);
  EXPECT_EQ(CountOf(page, "<tr id=\"r"), 2048u);
  EXPECT_THAT(page, HasSubstr("994 nodes with 7952 ranks left out."));
  EXPECT_THAT(page, HasSubstr("5904 ranks left out."));  // of the step times
}

TEST(LivePage, RanksAreCountedByTheirNodesRanks) {
  LiveFacts facts = SampleFacts({.nodes = 3, .slots = 2, .slow = -1});
  std::swap(facts.view.report.nodes[0], facts.view.report.nodes[2]);
  facts.view.report.nodes[1].telemetry.reset();  // it has told nothing yet
  facts.view.report.nodes[2].telemetry->ranks[1].step_time = std::chrono::seconds(9);
  const std::vector<std::optional<int>> first = FirstRanks(facts.view.report.nodes);
  EXPECT_EQ(first, (std::vector<std::optional<int>>{4, 2, 0}));
  EXPECT_THAT(HeatSection(facts), HasSubstr("the slowest 9.00 s (rank 1)"));
  EXPECT_THAT(HeatSection(facts), HasSubstr("<path class=\"none\" d=\"M2 0.5h2\"/>"));
}

TEST(LivePage, ANodeMaySayAnyNumberOfSlots) {
  LiveFacts facts = SampleFacts({.nodes = 200, .slots = 1});
  for (rendezvous::StatusLine& node : facts.view.report.nodes) node.slots = 1 << 24;
  EXPECT_LT(LivePage(MakeLiveContent(facts, {})).size(), 250'000u);
}

TEST(LivePage, NodesWithTroubleAreKept) {
  LiveFacts facts = SampleFacts({.nodes = 40, .slots = 1});
  facts.view.report.nodes[33].telemetry->ranks[0].exit_code = 137;
  facts.view.report.nodes[35].remark = "slow: memory 3.1 GB/s";
  const RankTable table = MakeRankTable(facts.view.report, -1, {.nodes = 3, .ranks = 10, .open = 2});
  ASSERT_EQ(table.groups.size(), 3u);
  EXPECT_EQ(table.groups[1].rows.at(0).cells[1], "exit 137");
  EXPECT_EQ(table.groups[2].head.cells.back(), "slow: memory 3.1 GB/s");
  EXPECT_EQ(table.nodes_left_out, 37u);
  EXPECT_FALSE(table.open);
}

TEST(LiveEvents, OnlyWhatHasChangedIsSent) {
  const LiveContent before = ContentAt({.tick = 20}), now = ContentAt({.tick = 21});
  EXPECT_EQ(LiveEvents(&now, now, {}), "event: tick\ndata: 1\n\n");
  const std::string stream = LiveEvents(&before, now, ParseLiveRequest("open=all"));
  const std::vector<std::string> sections = Sections(stream);
  EXPECT_THAT(sections, testing::Contains("curve"));
  EXPECT_THAT(sections, Not(testing::Contains("sentence")));
  EXPECT_THAT(sections, Not(testing::Contains("heat")));
  EXPECT_THAT(sections, Not(testing::Contains("nodes")));
  const std::vector<PageEvent> events = Parse(stream);
  EXPECT_EQ(events.back().name, "tick");
  const nlohmann::json& cells = events.at(events.size() - 2).data;
  EXPECT_EQ(cells["r3"], nlohmann::json::parse(R"([3,"1.4",5,"1304 / 5000",7,"step 1304 loss 0.644"])"));
}

TEST(LiveEvents, RowsThatNobodySeesAreNotSent) {
  const LiveContent before = ContentAt({.tick = 20}), now = ContentAt({.tick = 21});
  const std::string second = now.table.groups.at(1).id;
  const auto cells = Parse(LiveEvents(&before, now, ParseLiveRequest("open=g-0," + second))).end()[-2].data;
  EXPECT_FALSE(cells.contains("r3"));
  EXPECT_TRUE(cells.contains("r4"));
  EXPECT_TRUE(cells.contains(now.table.groups[0].head.id));
}

TEST(LiveEvents, ANewStreamBringsEverything) {
  const LiveContent now = ContentAt({});
  const std::string unknown = LiveEvents(nullptr, now, ParseLiveRequest("open=all&outline=other"));
  EXPECT_EQ(Sections(unknown).size(), now.sections.size() + 1);
  const std::string known = LiveEvents(nullptr, now, ParseLiveRequest("outline=" + now.table.outline + "&open="));
  EXPECT_EQ(Sections(known).size(), now.sections.size());
  const auto cells = Parse(known).end()[-2].data;
  EXPECT_EQ(cells.size(), 4u);  // the nodes
}

TEST(LiveEvents, AnotherRosterBringsTheTable) {
  const LiveContent before = ContentAt({}), now = ContentAt({.nodes = 3});
  EXPECT_THAT(Sections(LiveEvents(&before, now, {})), testing::Contains("nodes"));
  EXPECT_EQ(before.table.groups[1].id, now.table.groups[1].id);  // what was open stays open
  EXPECT_NE(ContentAt({.gpu = true}).table.outline, before.table.outline);
}

TEST(LiveEvents, RequestsOfAnyForm) {
  EXPECT_TRUE(ParseLiveRequest("open=all").all_open);
  EXPECT_EQ(ParseLiveRequest("x=1&open=a,b&outline=7&y").open.size(), 2u);
  EXPECT_EQ(ParseLiveRequest("x=1&open=a,b&outline=7&y").outline, "7");
  EXPECT_EQ(ParseLiveRequest("").outline, "");
  EXPECT_EQ(ParseLiveRequest("outline").outline, "");
}

TEST(LiveEvents, ALargeRunCostsLittle) {
  const LiveContent before = ContentAt({.nodes = 128, .slots = 8, .tick = 20});
  const LiveContent now = ContentAt({.nodes = 128, .slots = 8, .tick = 21});
  EXPECT_LT(LivePage(now).size(), 400'000u);
  EXPECT_LT(LiveEvents(&before, now, {}).size(), 20'000u);
  EXPECT_LT(LiveEvents(&before, now, ParseLiveRequest("open=all")).size(), 120'000u);
}

TEST(Steady, LeavesOutWhatChangesByItself) {
  EXPECT_EQ(Steady("Training, in round 2, for 12 min"), "Training, in round 2");
  EXPECT_EQ(Steady("Training since 12 min"), "Training");
  EXPECT_EQ(Steady("Waiting"), "Waiting");
}

}  // namespace
}  // namespace muster::agent
