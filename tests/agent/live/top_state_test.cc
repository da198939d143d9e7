// SPDX-License-Identifier: Apache-2.0
// Keys, sorting, filters: what the table of `muster top` shows.
#include "agent/live/top_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/live/top_frame.h"
#include "agent/live/top_hints.h"
#include "base/text.h"
#include "tests/agent/live/top_run.h"

namespace muster::agent {
namespace {

using testing::HasSubstr;

constexpr Size kSize{.rows = 24, .columns = 80};

// "0 1 2 3 -": the ranks in the order of the table; a lost node is "-".
std::string Order(const LiveView& view, const TopChoice& choice) {
  std::vector<std::string> ranks;
  for (const TopRow& row : RowsOf(view, choice)) ranks.push_back(row.rank ? fmt::format("{}", *row.rank) : "-");
  return Join(ranks, " ");
}

TEST(TopRows, Orders) {
  const LiveView view = SmallRun();
  const struct {
    TopChoice choice;
    std::string order;
  } rows[] = {
      {{}, "0 1 2 3 -"},
      {{.reverse = true}, "3 2 1 0 -"},
      {{.sort = TopSort::kCpu}, "2 0 1 3 -"},
      {{.sort = TopSort::kCpu, .reverse = true}, "3 1 0 2 -"},
      {{.sort = TopSort::kMemory}, "2 0 1 3 -"},
      {{.sort = TopSort::kStepTime}, "0 1 2 3 -"},  // all the same
      {{.sort = TopSort::kSilent}, "1 3 0 2 -"},
      {{.folded = true}, "0 2 -"},
      {{.sort = TopSort::kCpu, .folded = true}, "2 0 -"},
      {{.filter = "WAITING"}, "2"},
      {{.filter = "node-0"}, "0 1"},
      {{.filter = "host-2"}, "-"},
      {{.filter = "lost"}, "-"},
      {{.filter = "no such text"}, ""},
  };
  for (const auto& row : rows) EXPECT_EQ(Order(view, row.choice), row.order) << row.choice.filter;
}

TEST(TopRows, ANodeIsTheSumOfItsWorkers) {
  LiveView view = SmallRun();
  view.report.nodes[0].telemetry->ranks[0].gpu_share = 0.5;
  view.report.nodes[0].telemetry->ranks[1].gpu_share = 1;
  view.report.nodes[0].telemetry->ranks[1].exit_code = 137;
  const TopRow node = RowsOf(view, {.folded = true}).front();
  EXPECT_DOUBLE_EQ(*node.cpus, 1.99);
  EXPECT_EQ(*node.memory_bytes, int64_t{2100} << 20);
  EXPECT_DOUBLE_EQ(*node.gpu_share, 0.75);
  EXPECT_EQ(node.workers, 2);
  EXPECT_TRUE(node.failed);
  EXPECT_EQ(node.last_line, "step 250 of 1000 loss 0.1234");  // the newest
  EXPECT_EQ(RowsOf(view, {})[1].state, "exit 137");
  EXPECT_TRUE(TellsGpus(view));
  EXPECT_FALSE(TellsGpus(SmallRun()));
}

TEST(TopRows, ANodeWithoutTelemetryHasOneRow) {
  LiveView view = SmallRun();
  view.report.nodes[0].telemetry.reset();
  view.report.nodes[1].rank.reset();
  EXPECT_EQ(Order(view, {}), "0 - - -");
  view.report = {};
  EXPECT_EQ(Order(view, {}), "");
}

// Presses the keys one after another: "s", "Down", "Enter".
struct Pressed {
  TopState state;
  TopWish wish = TopWish::kNothing;
};
Pressed Press(const LiveView& view, const std::vector<Key>& keys, TopState state) {
  Pressed pressed{std::move(state)};
  for (const Key& key : keys) {
    TopStep step = Apply(std::move(pressed.state), key, view, kSize, kNow);
    pressed = {std::move(step.state), step.wish};
  }
  return pressed;
}
Pressed Press(const LiveView& view, const std::vector<Key>& keys) { return Press(view, keys, StateOf(view, kSize)); }
Key Letter(std::string letter) { return {KeyKind::kText, std::move(letter)}; }
Key Of(KeyKind kind) { return {kind, ""}; }

TEST(TopState, KeysMoveTheSelection) {
  const LiveView view = SmallRun();
  const struct {
    std::vector<KeyKind> keys;
    size_t index;
  } rows[] = {
      {{}, 0},
      {{KeyKind::kUp}, 0},
      {{KeyKind::kDown}, 1},
      {{KeyKind::kEnd}, 4},
      {{KeyKind::kEnd, KeyKind::kDown}, 4},
      {{KeyKind::kEnd, KeyKind::kUp}, 3},
      {{KeyKind::kPageDown}, 4},
      {{KeyKind::kEnd, KeyKind::kPageUp}, 0},
      {{KeyKind::kEnd, KeyKind::kHome}, 0},
      {{KeyKind::kLeft, KeyKind::kRight, KeyKind::kClear}, 0},
  };
  for (const auto& row : rows) {
    std::vector<Key> keys;
    for (const KeyKind kind : row.keys) keys.push_back(Of(kind));
    EXPECT_EQ(Press(view, keys).state.index, row.index);
  }
}

TEST(TopState, ARowThatWasMovedToStaysSelected) {
  LiveView view = SmallRun();
  TopState state = Press(view, {Letter("s"), Of(KeyKind::kDown)}).state;  // by CPU: ranks 2 0 1 3
  EXPECT_EQ(state.selected, (TopRowName{"node-0", 0}));
  view.report.nodes[0].telemetry->ranks[0].cpus = 0;
  state = Settled(std::move(state), view, kSize, kNow);
  EXPECT_EQ(state.selected, (TopRowName{"node-0", 0}));
  EXPECT_EQ(state.index, 3u);
  // The first row is selected by its place.
  state = Press(view, {Of(KeyKind::kHome)}, std::move(state)).state;
  EXPECT_EQ(state.selected, (TopRowName{"node-1", 0}));
  view.report.nodes[0].telemetry->ranks[1].cpus = 9;
  state = Settled(std::move(state), view, kSize, kNow);
  EXPECT_EQ(state.selected, (TopRowName{"node-0", 1}));
}

TEST(TopState, ARowThatIsGoneGivesItsPlaceToAnother) {
  LiveView view = SmallRun();
  TopState state = Press(view, {Of(KeyKind::kEnd)}).state;
  view.report.lost.clear();
  state = Settled(std::move(state), view, kSize, kNow);
  EXPECT_EQ(state.index, 3u);
  view.report.nodes.clear();
  state = Settled(std::move(state), view, kSize, kNow);
  EXPECT_EQ(state.index, 0u);
  EXPECT_EQ(Press(view, {Of(KeyKind::kEnter)}, std::move(state)).wish, TopWish::kNothing);
}

TEST(TopState, FoldingKeepsTheNode) {
  const LiveView view = SmallRun();
  TopState state = Press(view, {Of(KeyKind::kDown), Of(KeyKind::kDown), Of(KeyKind::kDown), Letter("n")}).state;
  EXPECT_TRUE(state.choice.folded);
  EXPECT_EQ(state.selected, (TopRowName{"node-1", -1}));
  state = Press(view, {Letter("n")}, std::move(state)).state;
  EXPECT_EQ(state.selected, (TopRowName{"node-1", 0}));
}

TEST(TopState, TheFilterIsTyped) {
  const LiveView view = SmallRun();
  Pressed pressed = Press(view, {Letter("/"), Letter("q"), Letter("中"), Of(KeyKind::kBackspace),
                                 Of(KeyKind::kBackspace), Letter("w"), Letter("a")});
  EXPECT_TRUE(pressed.state.typing);
  EXPECT_EQ(pressed.state.choice.filter, "wa");
  EXPECT_EQ(pressed.state.selected, (TopRowName{"node-1", 0}));
  pressed = Press(view, {Of(KeyKind::kEnter)}, pressed.state);
  EXPECT_FALSE(pressed.state.typing);
  EXPECT_EQ(pressed.state.page, TopPage::kTable);
  // Esc gives the filter back that was there; in the table it drops it.
  pressed = Press(view, {Letter("/"), Of(KeyKind::kClear), Letter("x"), Of(KeyKind::kEscape)}, pressed.state);
  EXPECT_EQ(pressed.state.choice.filter, "wa");
  pressed = Press(view, {Of(KeyKind::kEscape)}, pressed.state);
  EXPECT_EQ(pressed.state.choice.filter, "");
  std::vector<Key> many(1000, Letter("中"));
  many.insert(many.begin(), Letter("/"));
  EXPECT_LE(Press(view, many).state.choice.filter.size(), 256u);
}

TEST(TopState, Wishes) {
  const LiveView view = SmallRun();
  const struct {
    std::vector<Key> keys;
    TopWish wish;
    TopPage page;
  } rows[] = {
      {{Letter("q")}, TopWish::kQuit, TopPage::kTable},
      {{Of(KeyKind::kInterrupt)}, TopWish::kQuit, TopPage::kTable},
      {{Letter("/"), Letter("q")}, TopWish::kNothing, TopPage::kTable},
      {{Letter("/"), Of(KeyKind::kInterrupt)}, TopWish::kQuit, TopPage::kTable},
      {{Of(KeyKind::kSuspend)}, TopWish::kSuspend, TopPage::kTable},
      {{Of(KeyKind::kRedraw)}, TopWish::kRedraw, TopPage::kTable},
      {{Of(KeyKind::kEnter)}, TopWish::kReadLog, TopPage::kDetails},
      {{Letter("k")}, TopWish::kReadStacks, TopPage::kStacks},
      {{Letter("S")}, TopWish::kReadStacks, TopPage::kStacks},
      {{Of(KeyKind::kEnter), Letter("k")}, TopWish::kReadStacks, TopPage::kStacks},
      {{Letter("?")}, TopWish::kNothing, TopPage::kHelp},
      {{Letter("?"), Letter("q")}, TopWish::kNothing, TopPage::kTable},
      {{Letter("?"), Of(KeyKind::kEscape)}, TopWish::kNothing, TopPage::kTable},
      {{Letter("?"), Letter("s")}, TopWish::kNothing, TopPage::kHelp},
  };
  for (const auto& row : rows) {
    const Pressed pressed = Press(view, row.keys);
    EXPECT_EQ(pressed.wish, row.wish);
    EXPECT_EQ(pressed.state.page, row.page);
  }
  EXPECT_TRUE(Press(view, {Letter("p")}).state.paused);
  EXPECT_FALSE(Press(view, {Letter("p"), Letter("p")}).state.paused);
  TopState state = StateOf(view, kSize);
  for (size_t i = 0; i < kTopSorts; ++i) state = Press(view, {Letter("s")}, std::move(state)).state;
  EXPECT_EQ(state.choice.sort, TopSort::kRank);
}

TEST(TopState, APageScrollsAsFarAsItIsLong) {
  const LiveView view = SmallRun();
  TopState state = Press(view, {Of(KeyKind::kEnter)}).state;
  for (int i = 0; i < 100; ++i) state.text.push_back(fmt::format("line {}", i));
  state.text_title = "log";
  state = Press(view, {Of(KeyKind::kEnd)}, std::move(state)).state;
  EXPECT_THAT(TextOf(Draw(view, state, kSize, kNow)), HasSubstr("line 99\n"));
  state = Press(view, {Of(KeyKind::kUp)}, std::move(state)).state;
  EXPECT_THAT(TextOf(Draw(view, state, kSize, kNow)), HasSubstr("line 98\n99-121 of 122  Esc"));
}

TEST(TopHints, SayWhereTheLogAndTheStacksAre) {
  const LiveView view = SmallRun();
  const std::vector<TopRow> rows = RowsOf(view, {});
  using Kind = TopTarget::Kind;
  const struct {
    Kind kind;
    std::string name_space, log, stacks;
  } table[] = {
      {Kind::kTrainJob, "", "kubectl logs host-1 -c node", "kubectl exec host-1 -c node -- /proc/101/exe stacks 201"},
      {Kind::kPyTorchJob, "a", "kubectl logs -n a host-1 -c pytorch",
       "kubectl exec -n a host-1 -c pytorch -- /proc/101/exe stacks 201"},
      {Kind::kPod, "a", "kubectl logs -n a host-1", "kubectl exec -n a host-1 -- /proc/101/exe stacks 201"},
      {Kind::kLocalJob, "", "muster logs digits --rank 3", "on host host-1: muster stacks 201"},
      {Kind::kAgent, "", "on host host-1, where its agent (process 101) writes: its console, or --log-dir",
       "on host host-1: muster stacks 201"},
  };
  for (const auto& row : table) {
    TopFacts facts;
    facts.target = {.kind = row.kind, .name = "digits"};
    facts.name_space = row.name_space;
    EXPECT_EQ(LogWay(facts, rows[3]), row.log);
    EXPECT_EQ(StacksWay(facts, rows[3]), row.stacks);
  }
  TopFacts facts;
  facts.target = {.kind = Kind::kPod, .name = "digits"};
  facts.pods = {{"host-1", "host-1-x7k2p"}};
  EXPECT_EQ(LogWay(facts, rows[3]), "kubectl logs host-1-x7k2p");
  EXPECT_EQ(StacksWay(facts, rows[4]), "its process is not known");
}

}  // namespace
}  // namespace muster::agent
