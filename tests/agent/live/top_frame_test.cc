// SPDX-License-Identifier: Apache-2.0
// Whole screens of `muster top`.
#include "agent/live/top_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/live/terminal_text.h"
#include "agent/live/top_head.h"
#include "base/text.h"
#include "base/utf8.h"
#include "tests/agent/live/top_run.h"

namespace muster::agent {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string ScreenOf(const LiveView& view, Size size) { return TextOf(Draw(view, StateOf(view, size), size, kNow)); }

TEST(TopFrame, OfAnUsualTerminal) {
  EXPECT_EQ(ScreenOf(SmallRun(), {.rows = 24, .columns = 80}),
            "muster top  TrainJob digits  run digits                           10.0.0.7:29400\n"
            "Training: 4 workers on 2 nodes, in round 2, for 9 min 00 s\n"
            "█████░░░░░░░░░░░░░░░ 25%  step 250 of 1000 · 4 min 22 s left · loss 0.1234\n"
            "goodput 93% (5% restart, 2% start) · restarts 1 of 3 · 2 nodes (2 to 3)\n"
            "rounds ━━━━━━━━━━━━━━━━━━┃━━━━━━━━━━━━━━━━━━━━━━━━━┃━━━━━━━ 3 rounds, 1 h 00 min\n"
            "! node node-2 was lost 30.0 s ago: its connection closed\n"
            "RANK NODE   STATE     HEARD CPU%   MEM     POS  STEP SILENT LAST LINE\n"
            "   0 node-0 running      0s  102  1.2G     250 350ms     0s step 250 of 1000 lo…\n"
            "   1 node-0 running      0s   97  900M     249 350ms     1s\n"
            "   2 node-1 running      0s  350  2.0G     250 350ms     0s Waiting for data\n"
            "   3 node-1 running      0s    1  700M     249 350ms     1s 中文 é\n"
            "   - node-2 lost        31s    -     -       -     -      - its connection clos…\n"
            "\n\n\n\n\n\n\n\n\n\n"
            "node node-2 is lost: its connection closed\n"
            "s sort  / filter  n nodes  Enter details  k stacks  p pause  ? help  q quit\n");
}

TEST(TopFrame, OfASmallTerminal) {
  EXPECT_EQ(ScreenOf(SmallRun(), {.rows = 10, .columns = 40}),
            "muster top  TrainJob digits  run digits…\n"
            "Training: 4 workers on 2 nodes, in roun…\n"
            "██░░░░░░░░ 25%  step 250 of 1000\n"
            "goodput 93% (5% restart, 2% start)\n"
            "! node node-2 was lost 30.0 s ago: its …\n"
            "RANK NODE   STATE     CPU%   MEM  STEP\n"
            "   0 node-0 running    102  1.2G 350ms\n"
            "   1 node-0 running     97  900M 350ms\n"
            "   2 node-1 running    350  2.0G 350ms\n"
            "1-3 of 5  s sort  / filter  n nodes\n");
}

TEST(TopFrame, OfALargeTerminal) {
  LiveView view = SmallRun();
  view.report.nodes[0].telemetry->ranks[0].gpu_share = 0.42;
  view.report.nodes[0].telemetry->ranks[0].gpu_memory_bytes = int64_t{40} << 30;
  const std::string text = ScreenOf(view, {.rows = 60, .columns = 200});
  EXPECT_THAT(text, HasSubstr("RANK NODE   STATE     ROUND HEARD CPU%   MEM GPU%  GMEM     POS  STEP SILENT LAST LINE\n"
                              "   0 node-0 running       2    0s  102  1.2G   42   40G     250 350ms     0s "
                              "step 250 of 1000 loss 0.1234\n"
                              "   1 node-0 running       2    0s   97  900M    -     -     249 350ms     1s\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 60);
}

TEST(TopFrame, FoldsToNodes) {
  const LiveView view = SmallRun();
  const Size size{.rows = 24, .columns = 80};
  TopState state = StateOf(view, size);
  state.choice.folded = true;
  state = Settled(std::move(state), view, size, kNow);
  EXPECT_THAT(TextOf(Draw(view, state, size, kNow)),
              HasSubstr(" 0-1 node-0 running      0s  199  2.1G     250 350ms     1s step 250 of 1000 lo…\n"
                        " 2-3 node-1 running      0s  351  2.7G     250 350ms     1s Waiting for data\n"));
}

TEST(TopFrame, SaysWhatItDoes) {
  const LiveView view = SmallRun();
  const Size size{.rows = 24, .columns = 80};
  TopState state = StateOf(view, size);
  EXPECT_THAT(TextOf(Draw(view, state, size, kNow + std::chrono::seconds(12))), HasSubstr("no news for 12s\n"));
  EXPECT_THAT(TextOf(Draw(view, state, size, kNow + std::chrono::seconds(12))), HasSubstr("running     12s"));
  state.paused = true;
  EXPECT_THAT(TextOf(Draw(view, state, size, kNow)), HasSubstr("   paused\n"));
  state.facts.trouble = "the coordinator was lost; looking for its successor";
  EXPECT_THAT(TextOf(Draw(view, state, size, kNow)), HasSubstr("\nthe coordinator was lost; looking for its succ"));
  state.choice = {.sort = TopSort::kCpu, .reverse = true, .folded = false, .filter = "node"};
  EXPECT_THAT(TextOf(Draw(view, state, size, kNow)), HasSubstr("\nonly 'node'  by cpu, reversed  s sort"));
  state.typing = true;
  EXPECT_THAT(TextOf(Draw(view, state, size, kNow)), HasSubstr("\nfilter: node_  Enter keeps it, Esc drops it\n"));
}

TEST(TopFrame, BeforeTheFirstView) {
  TopState state;
  state.facts.trouble = "waiting for trainjob/digits";
  const std::string text = TextOf(Draw({}, state, {.rows = 24, .columns = 80}, kNow));
  EXPECT_THAT(text, StartsWith("muster top"));
  EXPECT_THAT(text, HasSubstr("\nwaiting for trainjob/digits\nRANK NODE"));
}

TEST(TopFrame, AllAboutARank) {
  const LiveView view = SmallRun();
  const Size size{.rows = 40, .columns = 60};
  TopState state = StateOf(view, size);
  state.page = TopPage::kDetails;
  state.text_title = "/logs/attempt_2/0/stdout.log";
  state.text = {"the last line"};
  EXPECT_THAT(TextOf(Draw(view, state, size, kNow)),
              StartsWith("rank 0 on node-0\n"
                         "state         running\n"
                         "heard         400 ms ago\n"
                         "host          host-0\n"
                         "node rank     0\n"
                         "workers       2\n"
                         "agent         process 100\n"
                         "round         2 (term 1), after 1 restart\n"
                         "process       200\n"
                         "local rank    0\n"
                         "cpu           1.02 cores\n"
                         "memory        1.2 GiB\n"
                         "step          250 of 1000\n"
                         "loss          0.1234\n"
                         "step time     350 ms\n"
                         "last output   0 ms ago\n"
                         "last line     step 250 of 1000 loss 0.1234\n"
                         "log           on host host-0, where its agent (process 100)\n"
                         "              writes: its console, or --log-dir\n"
                         "stacks        on host host-0: muster stacks 200\n"
                         "\n"
                         "/logs/attempt_2/0/stdout.log\n"
                         "the last line\n"));
  state.page = TopPage::kStacks;
  EXPECT_THAT(TextOf(Draw(view, state, size, kNow)), StartsWith("stacks of rank 0 on node-0\n"));
  state.selected = {"gone", 0};
  EXPECT_THAT(TextOf(Draw(view, state, size, kNow)), StartsWith("node gone is not in the report any more\n"));
}

// The columns of each line, and whether anything in it could be an order to a terminal.
void CheckPicture(const Picture& picture, Size size) {
  EXPECT_LE(picture.lines.size(), size.rows);
  for (const Line& line : picture.lines) {
    size_t columns = 0;
    for (const Span& span : line.spans()) {
      for (std::string_view text = span.text; !text.empty();) {
        const Utf8Character character = FirstCharacter(text);
        EXPECT_TRUE(character.valid && character.code >= 0x20 && (character.code < 0x7F || character.code >= 0xA0));
        EXPECT_FALSE(character.code >= 0x202A && character.code <= 0x202E);
        columns += ColumnsOf(character.code);
        text.remove_prefix(character.size);
      }
    }
    EXPECT_EQ(columns, line.columns());
    EXPECT_LE(columns, size.columns);
  }
}

TEST(TopFrame, FitsIntoEachSize) {
  const LiveView view = SmallRun();
  for (size_t rows = 0; rows <= 26; ++rows) {
    for (size_t columns = 0; columns <= 100; columns += columns < 12 ? 1 : 11) {
      const Size size{.rows = rows, .columns = columns};
      TopState state = StateOf(view, size);
      for (const TopPage page : {TopPage::kTable, TopPage::kDetails, TopPage::kStacks, TopPage::kHelp}) {
        state.page = page;
        CheckPicture(Draw(view, state, size, kNow), size);
        CheckPicture(Draw({}, {}, size, kNow), size);
      }
    }
  }
}

TEST(TopFrame, HostileTextIsText) {
  const std::string hostile[] = {
      "\x1b[2J\x1b]0;owned\x07\x1b[31m", "<script>alert(1)</script>", "\u202Eright to left\u202C \u05D0\u05D1",
      std::string(1 << 20, 'x'),         "\U0001F600 wide 中文字体",  std::string("\0\x9b\xff\r\n\t", 6),
      std::string(1 << 20, '\x1b'),
  };
  const Size size{.rows = 30, .columns = 90};
  for (const std::string& text : hostile) {
    LiveView view = SmallRun();
    view.job = view.report.run_id = view.report.reason = view.source_reason = text;
    view.source = "node";
    view.report.nodes[0].node = view.report.nodes[0].host = view.report.nodes[0].remark = text;
    view.report.nodes[0].state = view.report.lost[0].node = text;
    view.report.nodes[0].telemetry->ranks[0].last_line = text;
    TopState state = StateOf(view, size);
    state.facts.trouble = state.choice.filter = state.text_title = text;
    state.text = {text};
    for (const TopPage page : {TopPage::kTable, TopPage::kDetails, TopPage::kStacks}) {
      state.page = page;
      CheckPicture(Draw(view, state, size, kNow), size);
      state.choice.filter.clear();
      CheckPicture(Draw(view, Settled(state, view, size, kNow), size, kNow), size);
    }
    for (const char byte : PlainTable(view, StateOf(view, size), 90, kNow)) {
      EXPECT_TRUE(byte == '\n' || static_cast<unsigned char>(byte) >= 0x20);
    }
  }
}

TEST(TopFrame, ManyRanks) {
  LiveView view = SmallRun();
  view.report.nodes.clear();
  for (int node = 0; node < 128; ++node) {
    std::vector<rendezvous::RankTelemetry> workers;
    for (int rank = 0; rank < 8; ++rank) workers.push_back(WorkerOf(rank, rank, node, "step 1"));
    view.report.nodes.push_back(NodeOf(node, std::move(workers)));
  }
  const Size size{.rows = 24, .columns = 80};
  TopState state = StateOf(view, size);
  state = Apply(std::move(state), {KeyKind::kEnd, ""}, view, size, kNow).state;
  const std::string text = TextOf(Draw(view, state, size, kNow));
  EXPECT_THAT(text, HasSubstr("\n1023 node-127 running"));
  EXPECT_THAT(text, HasSubstr("1011-1025 of 1025"));
}

TEST(TopFrame, TheHeadNamesTheJob) {
  using Kind = TopTarget::Kind;
  const struct {
    TopTarget target;
    std::string told, run_id, head;
  } rows[] = {
      {{.kind = Kind::kAgent, .host = "a", .port = 80}, "digits", "7f", "muster top  digits  run 7f  "},
      {{.kind = Kind::kAgent, .host = "a", .port = 80}, "", "7f", "muster top  run 7f  "},
      {{.kind = Kind::kTrainJob, .name = "digits"}, "", "7f", "muster top  digits  run 7f  "},
      {{.kind = Kind::kLocalJob, .name = "digits"}, "", "digits", "muster top  digits  "},
      {{.kind = Kind::kPod, .name = "digits-node-0-0-x7k2p"}, "", "7f", "muster top  run 7f  "},
      {{.kind = Kind::kPod, .name = "digits-node-0-0-x7k2p"}, "digits", "7f", "muster top  digits  run 7f  "},
      {{.kind = Kind::kAgent, .host = "a", .port = 80}, "a\x1b[2J\nb", "7f", "muster top  a"},
  };
  for (const auto& row : rows) {
    LiveView view = SmallRun();
    view.job = row.told;
    view.report.run_id = row.run_id;
    TopState state = StateOf(view, {.rows = 24, .columns = 100});
    state.facts.target = row.target;
    const std::string text = PlainTable(view, state, 100, kNow);
    EXPECT_THAT(text, StartsWith(row.head));
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  }
}

TEST(PlainTable, HasAllRowsAndNoColours) {
  const LiveView view = SmallRun();
  const std::string text = PlainTable(view, StateOf(view, {}), 160, kNow);
  EXPECT_THAT(text, StartsWith("muster top  TrainJob digits  run digits"));
  EXPECT_THAT(text, HasSubstr("\n   3 node-1 running       2    0s    1  700M     249 350ms     1s 中文 é\n"));
  EXPECT_THAT(text, testing::EndsWith("\nnode node-2 is lost: its connection closed\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(PlainTable, OfARunThatHasEnded) {
  LiveView view;
  view.report.run_id = "digits";
  view.report.phase = "finished";
  view.report.reason = "all workers succeeded";
  EXPECT_EQ(PlainTable(view, StateOf(view, {}), 60, kNow),
            "muster top  run digits                        10.0.0.7:29400\n"
            "Ended: all workers succeeded\n"
            "restarts 0 of 0\n");
}

TEST(RoundsLine, HasAMarkForEachRestart) {
  const LiveView view = SmallRun();
  const Line line = RoundsLine(view.report, 50);
  EXPECT_EQ(line.Text(), "rounds ━━━━━━━┃━━━━━━━━━━┃━━━ 3 rounds, 1 h 00 min");
  std::vector<Ink> marks;
  for (const Span& span : line.spans()) {
    if (span.text == "┃") marks.push_back(span.style.ink);
  }
  EXPECT_THAT(marks, testing::ElementsAre(Ink::kRed, Ink::kBlue));
  EXPECT_EQ(RoundsLine(view.report, 10).columns(), 0u);
  EXPECT_EQ(RoundsLine({}, 80).columns(), 0u);
}

}  // namespace
}  // namespace muster::agent
