// SPDX-License-Identifier: Apache-2.0
// Texts as in the source code of programs or as users show them. Whole outputs: reason_outputs_test.cc.
#include "base/reason_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/stderr_lines.h"
#include "base/utf8.h"

namespace muster {
namespace {

using testing::ElementsAre;

constexpr std::string_view kTrace = "Traceback (most recent call last):\n  File \"t.py\", line 3, in main\n    f()\n";

std::string After(std::string_view what, std::string_view behind = "") {
  return std::string(kTrace).append(what).append("\n").append(behind);
}

TEST(ReasonLine, OfTexts) {
  struct Row {
    std::string text, line;
  };
  const Row rows[] = {
      {"", ""},
      {"\n \n", ""},
      {"one\ntwo \r\n", "two"},
      // PyTorch: messages of destructors after the exception, rank marks, the watchdog of NCCL
      {After("ValueError: bad batch",
             "[W1126 ProcessGroup.cpp:1] Warning: process group has NOT been destroyed before we destruct "
             "ProcessGroupNCCL. (function operator())\n"),
       "ValueError: bad batch"},
      {"bad batch\n[rank0]:[W1126 02:19:50.862656321 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has "
       "NOT "
       "been destroyed before we destruct ProcessGroupNCCL.\n",
       "bad batch"},
      {"[rank0]: Traceback (most recent call last):\n[rank1]: Traceback (most recent call last):\n[rank0]:   File "
       "\"t.py\", line 3, in <module>\n[rank1]:   File \"t.py\", line 3, in <module>\n[rank0]: ValueError: bad batch\n"
       "[rank1]:     f()\n",
       "ValueError: bad batch"},
      {"[rank1]:[E1126 02:19:50.1 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout\n"
       "terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [PG ID 0 PG GUID 0 Rank 1] "
       "Process group watchdog thread terminated with exception: [Rank 1] Watchdog caught collective operation "
       "timeout\nException raised from checkTimeout at ProcessGroupNCCL.cpp:618\nframe #0: c10::Error::Error + 0x96\n"
       "\nFatal Python error: Aborted\n\nThread 0x00007f3dac1e72c0 (most recent call first):\n  <no Python frame>\n",
       "terminate called after throwing an instance of 'c10::DistBackendError': [PG ID 0 PG GUID 0 Rank 1] Process "
       "group watchdog thread terminated with exception: [Rank 1] Watchdog caught collective operation timeout"},
      {After("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has 1 MiB free."),
       "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has 1 MiB free."},
      {After("RuntimeError: Error(s) in loading state_dict for Net:",
             "\tMissing key(s) in state_dict: \"fc.weight\".\n"),
       "RuntimeError: Error(s) in loading state_dict for Net: Missing key(s) in state_dict: \"fc.weight\"."},
      {After("ValueError: bad batch") + After("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
                                              std::string(60, '=') + "\nt.py FAILED\n" + std::string(60, '-') +
                                                  "\nFailures:\n  <NO_OTHER_FAILURES>\n" + std::string(60, '-') + "\n"),
       "ValueError: bad batch"},
      {"host:1:2 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.1<45678> failed\n"
       "host:1:2 [0] NCCL INFO comm 0x1 rank 0 - Abort COMPLETE\n",
       "host:1:2 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.1<45678> failed"},
      // Python
      {"Exception ignored in: <function P.__del__ at 0x7f>\n" + After("KeyError: 'a'"), ""},
      {"Exception ignored in: <function P.__del__ at 0x7f>\n" +
           After("KeyError: 'a'", "\nDuring handling of the above exception, another exception occurred:\n\n") +
           After("ValueError: b"),
       ""},
      {"Exception ignored in: <module 'threading'>\nTypeError: 'NoneType' object is not callable\n", ""},
      {" 45%|\u2588\u2588  | 45/100 [00:01<00:01, 40.00it/s]" + After("ValueError: bad batch"),
       "ValueError: bad batch"},
      {"\x1b[31m" + After("\x1b[1mValueError\x1b[0m: bad \x1b]8;;file:///t.py\x1b\\batch\x1b]8;;\x1b\\"),
       "ValueError: bad batch"},
      {After("AssertionError"), "AssertionError"},
      {After("socket.timeout: timed out"), "socket.timeout: timed out"},
      {After("__main__.f.<locals>.Odd: x"), "__main__.f.<locals>.Odd: x"},
      {std::string(kTrace) + "INFO: step 3\nwandb: syncing\nValueError: between others' lines\n",
       "ValueError: between others' lines"},
      {After("ValueError: bad batch", "wandb: Find logs at: ./wandb/run-1/logs\n"), "ValueError: bad batch"},
      {After("ValueError: bad batch",
             "/usr/lib/python3.11/multiprocessing/resource_tracker.py:224: UserWarning: "
             "resource_tracker: There appear to be 5 leaked semaphore objects\n"
             "  warnings.warn('resource_tracker: There appear to be %d '\n"),
       "ValueError: bad batch"},
      {"Fatal Python error: init_fs_encoding: failed to get the Python codec of the filesystem encoding\n"
       "Python runtime state: core initialized\nModuleNotFoundError: No module named 'encodings'\n",
       "Fatal Python error: init_fs_encoding: failed to get the Python codec of the filesystem encoding"},
      // The frames of a dump are no traceback, and the line below them is not an exception.
      {"Stack (most recent call last):\n  File \"t.py\", line 3, in f\nDone\n", "Done"},
      // Other launchers and languages
      {std::string(74, '-') +
           "\nprterun noticed that process rank 3 with PID 123 on node n1 exited on\nsignal 9 "
           "(Killed).\n" +
           std::string(74, '-') + "\n",
       "prterun noticed that process rank 3 with PID 123 on node n1 exited on signal 9 (Killed)."},
      {"(train_fn pid=123, ip=10.0.0.1) Traceback (most recent call last):\n(train_fn pid=123, ip=10.0.0.1)   File "
       "\"t.py\", line 3, in f\n(train_fn pid=123, ip=10.0.0.1) ValueError: bad batch\n",
       "ValueError: bad batch"},
      {"F1126 02:19:50.862656 32697 a.cc:3] Check failed: x == 7\n*** Check failure stack trace: ***\n    @ 0x7f\n",
       "F1126 02:19:50.862656 32697 a.cc:3] Check failed: x == 7"},
      {"2026-11-26 02:50:00.123456: F tensorflow/core/a.cc:3] Check failed\n2026-11-26 02:50:00.123456: I b.cc:1] x\n",
       "2026-11-26 02:50:00.123456: F tensorflow/core/a.cc:3] Check failed"},
      {"thread 'main' panicked at 'boom', src/main.rs:2:5\nnote: run with `RUST_BACKTRACE=1`\n",
       "thread 'main' panicked at 'boom', src/main.rs:2:5"},
      {"Exception in thread \"main\" java.lang.RuntimeException: boom\n\tat Main.main(Main.java:3)\n",
       "Exception in thread \"main\" java.lang.RuntimeException: boom"},
      {"==12==ERROR: AddressSanitizer: heap-use-after-free on address 0x60\n    #0 0x1 in f a.cc:3\n==12==ABORTING\n",
       "==12==ERROR: AddressSanitizer: heap-use-after-free on address 0x60"},
      {"libc++abi: terminating due to uncaught exception of type std::bad_alloc: std::bad_alloc\n",
       "libc++abi: terminating due to uncaught exception of type std::bad_alloc: std::bad_alloc"},
      // The last line counts if it is neither a warning nor a log line.
      {"no such dataset\nWARNING: the cache is cold\n", ""},
      {"no such dataset\n2026-11-26 02:50:00,123 INFO root: step 3\n", ""},
      {"cannot read\n  /data/1\n  /data/2\n", "cannot read"},
      {"cannot read\n" + std::string(40, '=') + "\n\n", "cannot read"},
  };
  for (const Row& row : rows) EXPECT_EQ(ReasonLine(row.text), row.line) << row.text;
}

// A lost peer is a consequence of the program's own error, if that is not old.
TEST(ReasonLine, ALostPeerYieldsToAnErrorOfTheProgram) {
  const std::string gloo = "RuntimeError: [pair.cc:534] gloo: Connection closed by peer [127.0.1.1]:2";
  const std::string chain = "\nDuring handling of the above exception, another exception occurred:\n\n";
  const std::string direct = "\nThe above exception was the direct cause of the following exception:\n\n";
  const std::string key = "KeyError: 'x'", value = "ValueError: bad batch";
  struct Row {
    const char* what;
    std::string old, fresh;
    std::string line;
  };
  const Row rows[] = {
      {"its own error first", "", After(key) + After(gloo), key},
      {"its own error last", "", After(gloo) + After(key), key},
      {"two of its own", "", After(key) + After(gloo) + After(value), value},
      {"nothing of its own", "", After(gloo), gloo},
      {"an old error that it went on from", After(key), After(gloo), gloo},
      {"an old error that it fails by in the end", After(key) + chain + After(gloo), "", key},
      {"an error of its own because of it", "", After(gloo) + chain + After(key), gloo},
      {"an error that wraps it", "", After(gloo) + direct + After(value), value + " (cause: " + gloo + ")"},
      {"an error that wraps one of its own", "", After(key) + direct + After(value), value + " (cause: " + key + ")"},
      {"log lines", "", "ERROR: no such data\nERROR: gloo: Connection closed by peer\n", "ERROR: no such data"},
  };
  for (const Row& row : rows) EXPECT_EQ(ReasonLine(row.old + row.fresh, row.old.size()), row.line) << row.what;
}

TEST(ReasonLine, KnowsAnErrorByItsForm) {
  for (const char* line : {"KeyError: 'x'", "torch.OutOfMemoryError: CUDA out of memory", "panic: boom",
                           "terminate called after throwing an instance of 'int'"}) {
    EXPECT_TRUE(IsError(line)) << line;
  }
  for (const char* line : {"", "ERROR: it failed", "step 3", "sh: 1: foo: not found", "Fatal Python error: Aborted",
                           "*** SIGSEGV received"})
    EXPECT_FALSE(IsError(line)) << line;
  EXPECT_TRUE(ReportsAnotherProcess("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: t.py FAILED"));
  EXPECT_FALSE(ReportsAnotherProcess("KeyError: 'ChildFailedError'"));
}

TEST(ReasonLine, OldLinesSayNothing) {
  struct Row {
    std::string old, fresh, line;
  };
  const std::string error = "2026-11-26 02:50:00,123 ERROR root: no checkpoint\n";
  for (const Row& row : {
           Row{"starting\n", "", ""},
           Row{"", "starting\n", "starting"},
           Row{error, "", ""},
           Row{"", error, "2026-11-26 02:50:00,123 ERROR root: no checkpoint"},
           Row{"starting\n", "\n" + std::string(20, '-') + "\n", ""},
           Row{After("ValueError: bad batch"), "", "ValueError: bad batch"},  // kind 1 counts even if it is not fresh
           Row{After("ValueError: bad batch"), "giving up\n", "ValueError: bad batch"},
       }) {
    EXPECT_EQ(ReasonLine(row.old + row.fresh, row.old.size()), row.line) << row.old << row.fresh;
  }
}

TEST(ReasonLine, IsBoundedAndValid) {
  const std::string line = ReasonLine(After("ValueError: " + std::string(9000, 'x')));
  EXPECT_EQ(line.size(), kMaxReasonLine);
  EXPECT_TRUE(line.ends_with("xxx..."));
  std::string wide = "x";
  for (int i = 0; i < 900; ++i) wide += "\u20ac";
  const std::string cut = ReasonLine(wide);
  EXPECT_LE(cut.size(), kMaxReasonLine);
  EXPECT_TRUE(IsUtf8(cut));
  EXPECT_EQ(ReasonLine("a\x01\x7f\tb\n"), "a b");
  EXPECT_EQ(ReasonLine("\ta.cu:3:\tAssertion `x` failed.\n"), "a.cu:3: Assertion `x` failed.");
  EXPECT_EQ(ReasonLine("{\"x\": \"Traceback (most recent call last):\\nKeyError: \t1\"}"), "KeyError: 1");
}

TEST(ReasonLine, OfAnyPartOfAnOutput) {
  const std::string text = After("ValueError: bad batch", std::string(74, '-') + "\nmpirun noticed\n");
  for (size_t at = 0; at < text.size(); ++at) {
    EXPECT_LE(ReasonLine(text.substr(at)).size(), kMaxReasonLine);
    EXPECT_LE(ReasonLine(text.substr(0, at)).size(), kMaxReasonLine);
  }
}

TEST(StderrLines, EndsAndMarks) {
  const std::string text = "\r 10%\r 20%\na\r\n\n[rank0]: b\n[1,0]<stderr>:c[1,0]<stderr>: d\nlast\r";
  const auto lines = StderrLines(text);
  std::vector<std::string> seen;
  for (const StderrLine& line : lines) {
    seen.push_back(line.mark + "|" + line.text + (line.overwritten ? "|overwritten" : ""));
  }
  EXPECT_THAT(seen, ElementsAre("||overwritten", "| 10%|overwritten", "| 20%", "|a", "|", "[rank0]: |b",
                                "[1,0]<stderr>:|c d", "|last"));
  EXPECT_EQ(lines.back().begins, text.size() - 5);
}

TEST(StderrLines, MarksOfLaunchers) {
  struct Row {
    std::string line, mark, text;
  };
  const Row rows[] = {
      {"[1,0]<stderr>:  File", "[1,0]<stderr>:", "  File"},   // Open MPI 4
      {"[1,0]<stderr>:   File", "[1,0]<stderr>:", "  File"},  // Open MPI 5
      {"[1,0]<stderr>: KeyError", "[1,0]<stderr>:", "KeyError"},
      {"Sat Nov  8 08:16:00 2026[1,0]<stderr>:aSat Nov  8 08:16:00 2026[1,0]<stderr>:b", "[1,0]<stderr>:", "ab"},
      {"[Sat Nov 28 08:15:54 2026][1]<stderr>:   File", "[1]<stderr>:", "  File"},
      {"28 08:15:54 2026][1]<stderr>: a", "[1]<stderr>:", "28 08:15:54 2026]a"},
      {"[12]   File", "[12] ", "  File"},  // Hydra
      {"[12]", "", "[12]"},
      {"[]<stderr>:a", "", "[]<stderr>:a"},
      {"]<stderr>:a", "", "]<stderr>:a"},
      {"1]<stderr>:a", "", "1]<stderr>:a"},
  };
  for (const Row& row : rows) {
    const std::vector<StderrLine> lines = StderrLines(row.line);
    ASSERT_EQ(lines.size(), 1u) << row.line;
    EXPECT_EQ(lines[0].mark, row.mark) << row.line;
    EXPECT_EQ(lines[0].text, row.text) << row.line;
  }
}

TEST(StderrLines, TheLevelOfALogLineIsRecognized) {
  for (const auto& [line, level] : std::initializer_list<std::pair<const char*, LineLevel>>{
           {"W1126 02:19:50.862656 32697 client.h:80] x", LineLevel::kQuiet},
           {"[E ProcessGroupNCCL.cpp:475] x", LineLevel::kError},
           {"F20261126 02:19:50 1 a.cc:3] x", LineLevel::kFatal},
           {"2026-11-26 02:50:00.123456: W a.cc:3] x", LineLevel::kQuiet},
           {"2026-11-26 02:50:00.123 E muster node a: x", LineLevel::kError},
           {"2026-11-26 02:50:00.123 I muster x", LineLevel::kQuiet},
           {"2026-11-26 02:50:00", LineLevel::kNone},
           {"2026-11-26 02:50:00 W", LineLevel::kNone},
           {"[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] x", LineLevel::kError},
           {"2026-11-26 02:50:01 [error    ] x", LineLevel::kError},
           {"{\"event\": \"x\", \"level\": \"info\"}", LineLevel::kQuiet},
           {"{\"event\": \"x\", \"levelname\":\"error\"}", LineLevel::kError},
           {"time=\"2026-11-26\" level=warning msg=\"x\"", LineLevel::kQuiet},
           {"level info is missing", LineLevel::kNone},
           {"the level: \"", LineLevel::kNone},
           {"[0, 1] x", LineLevel::kNone},
           {"ERROR:root:x", LineLevel::kError},
           {"2026-11-26 02:46:29.867 | CRITICAL | __main__:<module>:8 - x", LineLevel::kError},
           {"[2026-11-26 02:46:29,202][root][INFO] - x", LineLevel::kQuiet},
           {"t.py:3: FutureWarning: x", LineLevel::kQuiet},
           {"t.py: error: x", LineLevel::kError},
           {"RuntimeError: x", LineLevel::kNone},
           {"INFORMATION", LineLevel::kNone},
           {"Washington 1126", LineLevel::kNone},
           {"", LineLevel::kNone},
       }) {
    EXPECT_EQ(LevelOf(line), level) << line;
  }
}

}  // namespace
}  // namespace muster
