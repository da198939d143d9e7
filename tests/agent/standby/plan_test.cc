// SPDX-License-Identifier: Apache-2.0
// When standbys are made, row by row. Moments are seconds.
#include "agent/standby/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent::standby {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using Kind = Step::Kind;
using Is = Seat::Standby;

TimePoint At(int second) { return TimePoint(seconds(1000 + second)); }
constexpr Duration kDelay = seconds(10);

View Quiet(std::vector<Seat> seats) {
  View view;
  view.quiet = At(0);
  view.imports = 5;
  view.seats = std::move(seats);
  return view;
}
Seat Empty() { return {.proven = true}; }
Seat Unproven() { return {}; }
Seat Busy(Is standby) { return {.standby = standby, .proven = true, .limit = At(50), .imports = 5}; }
Seat Importing() { return Busy(Is::kImporting); }
Seat Ready(size_t imports = 5) { return {.standby = Is::kReady, .proven = true, .imports = imports}; }
Seat Failed(int times, int second) { return {.proven = true, .failures = times, .failed = At(second)}; }
std::function<std::optional<int64_t>()> Free(int64_t memory) {
  return [memory] { return memory; };
}
Step Probe(int local_rank) { return {Kind::kProbe, local_rank, {}}; }
Step Start(int local_rank) { return {Kind::kStart, local_rank, {}}; }
Step More(int local_rank) { return {Kind::kMore, local_rank, {}}; }
Step Later(int second) { return {Kind::kLater, 0, At(second)}; }

struct Row {
  const char* name;
  View view;
  int now;
  Step want;
};

class StandbyPlan : public testing::TestWithParam<Row> {};

TEST_P(StandbyPlan, GivesTheNextStep) {
  const Row& row = GetParam();
  const Step step = NextStep(row.view, kDelay, At(row.now));
  EXPECT_EQ(step, row.want) << "kind " << static_cast<int>(step.kind) << ", local rank " << step.local_rank << ", at "
                            << (step.at - At(0)).count() / 1e9 << " s";
}

View With(View view, void (*change)(View&)) {
  change(view);
  return view;
}

INSTANTIATE_TEST_SUITE_P(
    Rows, StandbyPlan,
    testing::Values(
        Row{"waits for the delay", Quiet({Empty()}), 3, Later(10)},
        Row{"begins after it", Quiet({Empty(), Empty()}), 10, Start(0)},
        Row{"probes before it makes one", Quiet({Unproven(), Empty()}), 20, Probe(0)},
        Row{"probes each local rank", Quiet({Ready(), Unproven()}), 20, Probe(1)},
        Row{"probes without a list", With(Quiet({Unproven()}), [](View& v) { v.imports = 0; }), 20, Probe(0)},
        Row{"makes one at a time", Quiet({Importing(), Empty()}), 20, Later(50)},
        Row{"probes one at a time", Quiet({Busy(Is::kProbing), Empty()}), 20, Later(50)},
        Row{"ends a probe that takes too long", Quiet({Busy(Is::kProbing)}), 50, {Kind::kEnd, 0, {}}},
        Row{"makes several at once where it may",
            With(Quiet({Importing(), Unproven(), Empty()}), [](View& v) { v.at_once = 2; }), 20, Probe(1)},
        Row{"makes no more than it may",
            With(Quiet({Importing(), Importing(), Empty()}), [](View& v) { v.at_once = 2; }), 20, Later(50)},
        Row{"counts the memory of those that import",
            With(Quiet({Importing(), Empty()}),
                 [](View& v) { v.at_once = 2, v.memory = Free(219), v.standby_memory = 100; }),
            20, Later(30)},
        Row{"counts one that imports more", Quiet({Busy(Is::kMore), Empty()}), 20, Later(50)},
        Row{"ends one whose imports take too long", Quiet({Ready(), Importing()}), 50, {Kind::kEnd, 1, {}}},
        Row{"makes the next when one is ready", Quiet({Ready(), Empty()}), 20, Start(1)},
        Row{"rests when all are ready", Quiet({Ready(), Ready()}), 20, {}},
        Row{"names new modules to a ready one", Quiet({Ready(), Ready(3)}), 20, More(1)},
        Row{"makes a missing one first", Quiet({Ready(3), Empty()}), 20, Start(1)},
        Row{"pauses after a failure", Quiet({Failed(1, 15)}), 20, Later(25)},
        Row{"pauses longer after two", Quiet({Failed(2, 15)}), 20, Later(35)},
        Row{"goes on after the pause", Quiet({Failed(1, 15)}), 25, Start(0)},
        Row{"makes another meanwhile", Quiet({Failed(1, 15), Empty()}), 20, Start(1)},
        Row{"waits for the earlier of two pauses", Quiet({Failed(3, 15), Failed(1, 17)}), 20, Later(27)},
        Row{"nothing during a start", With(Quiet({Empty()}), [](View& v) { v.quiet.reset(); }), 20, {}},
        Row{"nothing without a list", With(Quiet({Empty()}), [](View& v) { v.imports = 0; }), 20, {}},
        Row{"nothing once they are off", With(Quiet({Empty()}), [](View& v) { v.on = false; }), 20, {}},
        Row{"needs a tenth more memory than one takes",
            With(Quiet({Empty()}), [](View& v) { v.memory = Free(109), v.standby_memory = 100; }), 20, Later(30)},
        Row{"with that memory it begins",
            With(Quiet({Empty()}), [](View& v) { v.memory = Free(110), v.standby_memory = 100; }), 20, Start(0)},
        Row{"needs no memory to name modules", With(Quiet({Ready(3)}), [](View& v) { v.memory = Free(0); }), 20,
            More(0)}),
    [](const auto& row) {
      std::string name = row.param.name;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == ' '; }, '_');
      return name;
    });

TEST(StandbyPreparation, EndsWhenNothingIsLeftToImportOrCanBe) {
  const auto prepared = [](const View& view, int now) {
    return IsPrepared(view, NextStep(view, kDelay, At(now)), kDelay, At(now));
  };
  EXPECT_FALSE(prepared(Quiet({Unproven()}), 3)) << "it has not begun";
  EXPECT_FALSE(prepared(Quiet({Unproven()}), 20)) << "a probe is due";
  EXPECT_FALSE(prepared(Quiet({Busy(Is::kProbing)}), 20));
  EXPECT_FALSE(prepared(Quiet({Ready(), Importing()}), 20));
  EXPECT_FALSE(prepared(Quiet({Ready(), Busy(Is::kMore)}), 20));
  EXPECT_FALSE(prepared(Quiet({Ready(), Ready(3)}), 20)) << "one has names to be told";
  EXPECT_TRUE(prepared(Quiet({Ready(), Ready()}), 20));
  EXPECT_TRUE(prepared(Quiet({Ready(), Failed(1, 15)}), 20));
  EXPECT_TRUE(prepared(With(Quiet({Empty()}), [](View& v) { v.imports = 0; }), 20)) << "nothing to import";
  EXPECT_TRUE(prepared(With(Quiet({Ready(), Empty()}), [](View& v) { v.memory = Free(0); }), 20)) << "no memory";
  EXPECT_TRUE(prepared(With(Quiet({Empty()}), [](View& v) { v.on = false; }), 20));
}

TEST(StandbyMemory, IsReadOnlyForAProcessToBeMade) {
  int reads = 0;
  const auto reads_at = [&](View view, int now) {
    reads = 0;
    view.memory = [&reads] { return ++reads, std::nullopt; };
    NextStep(view, kDelay, At(now));
    return reads;
  };
  EXPECT_EQ(reads_at(Quiet({Empty()}), 20), 1);
  EXPECT_EQ(reads_at(Quiet({Unproven()}), 20), 1);
  EXPECT_EQ(reads_at(Quiet({Empty()}), 3), 0);
  EXPECT_EQ(reads_at(Quiet({Ready(3), Ready()}), 20), 0);
  EXPECT_EQ(reads_at(Quiet({Importing(), Empty()}), 20), 0);
  EXPECT_EQ(reads_at(Quiet({Failed(1, 15)}), 20), 0);
}

TEST(StandbyPause, DoublesUpToALimit) {
  EXPECT_EQ(PauseAfter(1), seconds(10));
  EXPECT_EQ(PauseAfter(4), seconds(80));
  EXPECT_EQ(PauseAfter(1'000'000), std::chrono::minutes(10));
}

TEST(StandbysByDefault, NeedAPythonScriptAndRestarts) {
  RunOptions options;
  options.job.shared.max_restarts = 3;
  EXPECT_EQ(WhyNone(options), std::nullopt);
  options.job.shared.max_restarts = 0;
  EXPECT_EQ(WhyNone(options), "restarts are not allowed");
  options.job.shared.max_nodes = options.job.shared.min_nodes + 1;  // a node may join
  EXPECT_EQ(WhyNone(options), std::nullopt);
  options.command.no_python = true;
  EXPECT_EQ(WhyNone(options), "the command is not a Python script or module");
  options.wire = Wire::kMpi;
  EXPECT_EQ(WhyNone(options), "the command is not one of torchrun's");
}

TEST(StandbyEnvironment, LeavesOutWhatComesWithARound) {
  EXPECT_THAT(LocalPart({"A=1", "RANK=3", "LOCAL_RANK=0", "RANKS=4", "MASTER_PORT=1", "PATH=/bin",
                         "TORCHELASTIC_RESTART_COUNT=2", "OMP_NUM_THREADS=1", "MUSTER_ROUND=7"}),
              ElementsAre("A=1", "LOCAL_RANK=0", "RANKS=4", "PATH=/bin", "OMP_NUM_THREADS=1"));
}

TEST(StandbyEnvironment, NamesWhatComesWithARound) {
  EXPECT_THAT(NamesOfRound({"A=1", "RANK=3", "LOCAL_RANK=0", "MASTER_PORT=1"}), ElementsAre("RANK", "MASTER_PORT"));
}

TEST(StandbyProbe, HasNoScript) {
  EXPECT_THAT(ProbeCommand({"python3", "-u", "train.py", "--lr", "1"}),
              ElementsAre("python3", "-u", "-c", "pass", "--lr", "1"));
  EXPECT_THAT(ProbeCommand({"numactl", "--physcpubind=0", "python3", "-u", "-m", "pkg.train", "-u"}),
              ElementsAre("numactl", "--physcpubind=0", "python3", "-u", "-c", "pass", "-u"));
}

TEST(StandbyImports, AreNamesOnce) {
  Imports imports;
  for (const char* name : {"a", "a.b", "a", "", "c\nd", "e f"}) imports.Add(name);
  imports.Add(std::string(513, 'x'));
  EXPECT_THAT(imports.names(), ElementsAre("a", "a.b"));
  for (int number = 0; number < 100'000; ++number) imports.Add(std::to_string(number));
  EXPECT_EQ(imports.names().size(), 20'000u);
}

TEST(StandbyImports, KeepChangesInOrder) {
  Imports imports;
  for (const char* entry : {"a", "=environ:X", "=environ:X", "b", "=environ:X", "a", "=path:/a:/b"}) imports.Add(entry);
  EXPECT_THAT(imports.names(), ElementsAre("a", "=environ:X", "b", "=environ:X", "=path:/a:/b"));
  EXPECT_TRUE(imports.LeaveOut("a"));
  EXPECT_THAT(imports.names(), ElementsAre("=environ:X", "b", "=environ:X", "=path:/a:/b"));
}

TEST(StandbyImports, KeepPathsWithSpaces) {
  Imports imports;
  for (const char* entry : {"=file:own:/my folder/own.py", "=environ:A=0f", "=path:/a b", "=path:/a\tb", "=end:a\nb"}) {
    imports.Add(entry);
  }
  EXPECT_THAT(imports.names(), ElementsAre("=file:own:/my folder/own.py", "=environ:A=0f", "=path:/a b"));
}

TEST(StandbyImports, EndWhereTheScriptSaysSo) {
  Imports imports;
  for (const char* entry : {"a", "=end:sys.argv", "b", "=end:os.getcwd()"}) imports.Add(entry);
  EXPECT_THAT(imports.names(), ElementsAre("a", "=end:sys.argv"));
  EXPECT_EQ(imports.end(), "sys.argv");
  imports.Clear();
  for (const char* entry : {"a", "b", "c"}) imports.Add(entry);
  imports.EndAt("b", "loads a library");
  imports.Add("d");
  EXPECT_THAT(imports.names(), ElementsAre("a"));
  EXPECT_EQ(imports.end(), "loads a library");
  imports.Clear();
  imports.Add("b");
  EXPECT_THAT(imports.names(), ElementsAre("b"));
  EXPECT_EQ(imports.end(), "");
}

TEST(StandbyImports, LeaveOutAModuleAndAllBelowIt) {
  Imports imports;
  for (const char* name : {"a", "a.b", "ab", "c", "c.d", "c.e"}) imports.Add(name);
  EXPECT_TRUE(imports.LeaveOut("a"));
  EXPECT_TRUE(imports.LeaveOut("c.d"));
  imports.Add("a.new");
  EXPECT_THAT(imports.names(), ElementsAre("ab", "c", "c.e"));
  EXPECT_FALSE(imports.LeaveOut("a"));  // again: no progress
  for (int number = 0; number < 30; ++number) EXPECT_TRUE(imports.LeaveOut(std::to_string(number)));
  EXPECT_FALSE(imports.LeaveOut("one more"));
}

}  // namespace
}  // namespace muster::agent::standby
