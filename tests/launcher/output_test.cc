// SPDX-License-Identifier: Apache-2.0
// Tests that a worker's output goes to the right places, that none is lost, and that none blocks.
#include <algorithm>

#include "tests/launcher/harness.h"

namespace muster::launcher {
namespace {

using testing::ElementsAre;

class OutputTest : public Harness {};

TEST_F(OutputTest, PrefixOnTheConsoleOnly) {
  WorkerSpec spec = Shell("echo one; echo two; echo three >&2");
  spec.output.out = {.file = Path("log"), .console = true, .prefix = "[trainer0]:"};
  spec.output.err = {.file = Path("err"), .console = true, .prefix = "[trainer0]:"};
  RunOne(spec);
  EXPECT_EQ(ConsoleOut(), "[trainer0]:one\n[trainer0]:two\n");
  EXPECT_EQ(ConsoleErr(), "[trainer0]:three\n");
  EXPECT_EQ(ReadFile(Path("log")), "one\ntwo\n");
  EXPECT_EQ(ReadFile(Path("err")), "three\n");
}

TEST_F(OutputTest, InheritedStreamsAreOurs) {
  // A worker without settings inherits the descriptors 1 and 2 of this process.
  int saved = dup(1);
  dup2(out_, 1);
  WorkerSpec spec = Shell("echo direct");
  spec.output.out = {};
  RunOne(spec);
  dup2(saved, 1);
  close(saved);
  EXPECT_EQ(ConsoleOut(), "direct\n");
  EXPECT_TRUE(first_outputs_.empty());  // the agent does not see them
}

TEST_F(OutputTest, NeitherFileNorConsoleIsNull) {
  WorkerSpec spec = Shell("at=$(readlink /proc/$$/fd/1); echo $at >&2");
  spec.output.out = {.console = false};
  RunOne(spec);
  EXPECT_EQ(Err(), "/dev/null\n");
}

TEST_F(OutputTest, ObservedStreamsGoThroughPipesAndTellTheLastByte) {
  MakeFifo("go");
  WorkerSpec spec = Shell(fmt::format("stat -Lc %F /proc/$$/fd/1 >&2; read x < {}; echo late", Path("go")));
  spec.output.out.observed = spec.output.err.observed = true;
  ASSERT_TRUE(Start({spec}).ok());
  EXPECT_EQ(group_->LastOutput(), std::nullopt);
  ASSERT_TRUE(UntilFile(Path("err.0")));
  EXPECT_EQ(Err(), "fifo\n");
  auto first = group_->LastOutput();
  ASSERT_TRUE(first);
  std::ofstream(Path("go")) << "now\n";
  ASSERT_TRUE(UntilGone());
  EXPECT_EQ(Out(), "late\n");
  EXPECT_GT(group_->LastOutput(), first);
}

TEST_F(OutputTest, AStreamThatIsOnlyObservedIsPassedOnAsItComes) {
  MakeFifo("go");
  WorkerSpec spec = Shell(fmt::format("printf 'a part'; read x < {}; printf ' of\\rlines'", Path("go")));
  spec.output.out = {.observed = true};
  ASSERT_TRUE(Start({spec}).ok());
  EXPECT_TRUE(Until([&] { return ConsoleOut() == "a part"; }));
  std::ofstream(Path("go")) << "now\n";
  ASSERT_TRUE(UntilGone());
  EXPECT_EQ(ConsoleOut(), "a part of\rlines");
}

TEST_F(OutputTest, TheFirstOutputIsToldOnce) {
  MakeFifo("go");
  MakeFifo("later");
  const std::vector<WorkerSpec> specs = {
      Shell(fmt::format("read x < {}; echo second; echo third >&2", Path("later")), 0),
      Shell(fmt::format("read x < {}; echo first >&2", Path("go")), 1),
  };
  const TimePoint before = MonotonicClock::now();
  ASSERT_TRUE(Start(specs).ok());
  const TimePoint started = MonotonicClock::now();
  EXPECT_TRUE(first_outputs_.empty());
  const TimePoint let_go = MonotonicClock::now();
  std::ofstream(Path("go")) << "now\n";
  ASSERT_TRUE(UntilFile(Path("err.1")));
  ASSERT_EQ(first_outputs_.size(), 1u);
  EXPECT_GE(first_outputs_[0].first, let_go - started);
  EXPECT_LE(first_outputs_[0].first, MonotonicClock::now() - before);
  EXPECT_EQ(first_outputs_[0].second, Console::Stream::kErr);
  std::ofstream(Path("later")) << "now\n";
  ASSERT_TRUE(UntilGone());
  EXPECT_EQ(Err(0), "third\n");
  EXPECT_EQ(first_outputs_.size(), 1u);
}

TEST_F(OutputTest, TheFirstOutputIsToldBeforeTheEndOfItsWriter) {
  size_t told = 0;
  on_exit_ = [&](const ExitRecord&) { told = first_outputs_.size(); };
  RunOne(Shell("echo only"));
  EXPECT_EQ(told, 1u);
}

TEST_F(OutputTest, TheLastWordsAreKept) {
  WorkerSpec spec = Shell("echo first; printf 'last words'; kill -KILL $$");
  spec.output.out = {.file = Path("log"), .console = true, .prefix = "> "};
  RunOne(spec);
  EXPECT_EQ(ConsoleOut(), "> first\n> last words\n");
  EXPECT_EQ(ReadFile(Path("log")), "first\nlast words");
}

TEST_F(OutputTest, OutputIsCompleteWhenTheExitIsTold) {
  std::string seen;
  on_exit_ = [&](const ExitRecord&) { seen = ConsoleOut(); };
  WorkerSpec spec = Probe({"lines", "3"});
  spec.output.out = {.console = true, .prefix = "-"};
  RunOne(spec);
  EXPECT_EQ(seen, "-line 0\n-line 1\n-line 2\n");
}

TEST_F(OutputTest, AHundredThousandLinesArriveOnce) {
  std::vector<WorkerSpec> specs;
  for (int i = 0; i < 2; ++i) {
    specs.push_back(Probe({"lines", "100000"}, i));
    specs.back().output.out = {
        .file = Path(fmt::format("log.{}", i)), .console = true, .prefix = fmt::format("{}:", i)};
  }
  ASSERT_TRUE(Start(specs).ok());
  ASSERT_TRUE(UntilGone());
  std::string expected[2];
  std::string log;
  for (int line = 0; line < 100000; ++line) {
    for (int i = 0; i < 2; ++i) expected[i] += fmt::format("{}:line {}\n", i, line);
    log += fmt::format("line {}\n", line);
  }
  std::string got[2];
  const std::string console = ConsoleOut();
  for (std::string_view line : Split(console, '\n')) {
    if (line.empty()) continue;
    got[line[0] - '0'] += fmt::format("{}\n", line);
  }
  EXPECT_TRUE(got[0] == expected[0]);
  EXPECT_TRUE(got[1] == expected[1]);
  EXPECT_TRUE(ReadFile(Path("log.0")) == log);
}

TEST_F(OutputTest, ALongLineComesInBoundedPieces) {
  WorkerSpec spec = Probe({"fill", "200000"});
  spec.output.out = {.file = Path("log"), .console = true, .prefix = "P"};
  RunOne(spec);
  EXPECT_EQ(ReadFile(Path("log")).size(), 200000u);
  const std::string console = ConsoleOut();
  EXPECT_EQ(std::count(console.begin(), console.end(), 'x'), 200000);
  EXPECT_EQ(std::count(console.begin(), console.end(), 'P'), 4);
}

TEST_F(OutputTest, AProgressBarIsOneLineOfTheConsole) {
  const struct {
    const char* name;
    const char* written;
    const char* console;
    std::vector<std::string> tail;
  } rows[] = {
      {"begins with \\r", "\\r 10%%\\r 20%%\\r 30%%\\nend\\n", ">\r> 10%\r> 20%\r> 30%\n>end\n", {" 30%", "end"}},
      {"ends with \\r", "10%%\\r20%%\\r30%%\\nend\\n", ">10%\r>20%\r>30%\n>end\n", {"30%", "end"}},
      {"never ends", "\\r 10%%\\r 20%%", ">\r> 10%\r> 20%\n", {" 20%"}},
      {"never ends, and ends with \\r", "10%%\\r", ">10%\r\n", {"10%"}},
      {"a line in between", "\\r 10%%said\\n\\r 20%%\\n", ">\r> 10%said\n>\r> 20%\n", {" 10%said", " 20%"}},
      {"lines of Windows", "done\\r\\n\\n", ">done\r\n>\n", {"done", ""}},
  };
  std::string console;
  for (const auto& row : rows) {
    WorkerSpec spec = Shell(fmt::format("printf '{}' >&2", row.written));
    spec.output.err = {.file = Path("log"), .console = true, .prefix = ">", .keep_tail = true};
    ExitRecord record = RunOne(spec);
    console += row.console;
    EXPECT_EQ(ConsoleErr(), console) << row.name;
    EXPECT_EQ(record.stderr_tail, row.tail) << row.name;
    std::string bytes = row.console;  // in the file: no prefixes, and no added newline
    std::erase(bytes, '>');
    if (!std::string_view(row.written).ends_with("\\n")) bytes.pop_back();
    EXPECT_EQ(ReadFile(Path("log")), bytes) << row.name;
  }
}

TEST_F(OutputTest, AProgressBarIsDrawnAsItGrows) {
  MakeFifo("go");
  WorkerSpec spec = Shell(fmt::format("printf '\\r 10%%' >&2; read x < {0}; printf '\\r 20%%\\n' >&2", Path("go")));
  spec.output.err = {.console = true, .prefix = ">"};
  ASSERT_TRUE(Start({spec}).ok());
  ASSERT_TRUE(Until([&] { return ConsoleErr() == ">\r> 10%"; })) << ConsoleErr();
  console_->Write(Console::Stream::kErr, "whole\n");  // starts a line of its own
  std::ofstream(Path("go")) << "1\n";
  ASSERT_TRUE(UntilGone());
  EXPECT_EQ(ConsoleErr(), ">\r> 10%\nwhole\n\r> 20%\n");
}

TEST_F(OutputTest, ALongProgressBarIsCutAfterAnUpdate) {
  WorkerSpec spec = Shell("i=0; while [ $i -lt 2000 ]; do printf '\\r%99d' $i >&2; i=$((i+1)); done");
  spec.output.err = {.file = Path("log"), .console = true, .prefix = "P"};
  RunOne(spec);
  EXPECT_EQ(ReadFile(Path("log")).size(), 200000u);
  const std::string console = ConsoleErr();
  std::vector<std::string_view> lines = Split(console, '\n');
  ASSERT_EQ(lines.size(), 5u);  // the last one is the empty text after the last newline
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(lines[i][0], 'P');
    EXPECT_LE(lines[i].size(), 66400u);
    EXPECT_TRUE(i == 3 || lines[i].back() == '\r');
  }
  EXPECT_EQ(console.size(), 200000u + std::count(console.begin(), console.end(), 'P') + 4);
}

TEST_F(OutputTest, TheTailIsBounded) {
  WorkerSpec spec =
      Shell("i=0; while [ $i -lt 50 ]; do echo $i >&2; i=$((i+1)); done; head -c 9000 /dev/zero | tr '\\0' y >&2");
  spec.output.err = {.file = Path("err"), .console = false, .keep_tail = true};
  ExitRecord record = RunOne(spec);
  ASSERT_EQ(record.stderr_tail.size(), 20u);
  EXPECT_EQ(record.stderr_tail[0], "31");
  EXPECT_EQ(record.stderr_tail[18], "49");
  EXPECT_EQ(record.stderr_tail[19], std::string(2048, 'y'));
  EXPECT_EQ(ConsoleErr(), "");
}

TEST_F(OutputTest, FiltersCopyMatchingLinesOfAllWorkers) {
  std::vector<WorkerSpec> specs;
  for (int i = 0; i < 3; ++i) {
    specs.push_back(Shell(fmt::format("echo loss={}; echo noise; echo an error; echo lossless", i), i));
    specs.back().output.out = {.file = Path(fmt::format("log.{}", i)),
                               .console = false,
                               .prefix = "p:",
                               .filters = {"loss=", "error"},
                               .filter_file = Path("filtered")};
  }
  std::ofstream(Path("filtered")) << "before\n";
  ASSERT_TRUE(Start(specs).ok());
  ASSERT_TRUE(UntilGone());
  const std::string text = ReadFile(Path("filtered"));
  std::vector<std::string_view> lines = Split(text, '\n');
  std::sort(lines.begin(), lines.end());
  EXPECT_THAT(lines,
              ElementsAre("", "before", "p:an error", "p:an error", "p:an error", "p:loss=0", "p:loss=1", "p:loss=2"));
}

TEST_F(OutputTest, FoldersAreMadeAndBadOnesNamed) {
  WorkerSpec spec = Shell("echo deep");
  spec.output.out = {.file = Path("a/b/c/log"), .console = false};
  RunOne(spec);
  EXPECT_EQ(ReadFile(Path("a/b/c/log")), "deep\n");
  spec.output.out.file = Path("a/b/c/log/x");
  Status status = Start({spec});
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(Message(status)), testing::HasSubstr(spec.output.out.file));
}

TEST_F(OutputTest, AGrandchildThatHoldsThePipeDelaysNobody) {
  WorkerSpec spec = Shell("(read go < go; echo later) & echo now; printf partial; exit 5");
  spec.working_directory = folder_;
  spec.output.out = {.file = Path("log"), .console = true, .prefix = ">"};
  MakeFifo("go");
  ASSERT_TRUE(Start({spec}).ok());
  ASSERT_TRUE(Until([&] { return exits_.size() == 1; }));
  EXPECT_EQ(ConsoleOut(), ">now\n>partial\n");
  EXPECT_EQ(gone_, 0);
  std::ofstream(Path("go")) << "1\n";
  ASSERT_TRUE(UntilGone());
  EXPECT_EQ(ConsoleOut(), ">now\n>partial\n>later\n");
  EXPECT_EQ(ReadFile(Path("log")), "now\npartiallater\n");
}

}  // namespace
}  // namespace muster::launcher
