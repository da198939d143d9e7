// SPDX-License-Identifier: Apache-2.0
#include "agent/workers/failure_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace muster::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FailureSummaryTest : public testing::Test {
 protected:
  FailureSummaryTest() {
    setenv("TZ", "UTC", 1);
    tzset();
    boom_.node = "node-1";
    boom_.host = "host1";
    boom_.rank = 3;
    boom_.local_rank = 1;
    boom_.pid = 12001;
    boom_.exit_code = 3;
    boom_.message = "Traceback (most recent call last):\n  File \"train.py\", line 3\nValueError: boom\n";
    boom_.error_file = "/logs/error.json";
    boom_.stderr_tail = {"last words", "ValueError: boom"};
    boom_.unix_millis = 1'700'000'000'123;
    killed_.node = killed_.host = "host0";
    killed_.rank = 0;
    killed_.local_rank = 0;
    killed_.pid = 12000;
    killed_.exit_code = 143;
    killed_.signal = 15;
    killed_.unix_millis = 1'700'000'001'000;
  }
  const std::string script_ = "train.py";
  WorkerFailure boom_, killed_;
};

TEST_F(FailureSummaryTest, ListsTheRootCauseAndTheOthers) {
  rendezvous::Verdict verdict{3, "rank 3 on node-1 failed and no restart is left", boom_, {boom_, killed_}};
  EXPECT_EQ(FailureSummary(verdict, script_, "node-1"),
            R"(=======================================================
train.py FAILED
-------------------------------------------------------
Failures:
[1]:
  time      : 2023-11-14_22:13:21
  host      : host0
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 12000)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 12000
-------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2023-11-14_22:13:20
  host      : host1 (node: node-1)
  rank      : 3 (local_rank: 1)
  exitcode  : 3 (pid: 12001)
  error_file: /logs/error.json
  traceback : Traceback (most recent call last):
    File "train.py", line 3
  ValueError: boom
  stderr    : last line
    last words
=======================================================
)");
}

TEST_F(FailureSummaryTest, ASingleFailureSaysThatThereAreNoOthers) {
  killed_.signal = 9;
  killed_.exit_code = 137;
  killed_.oom_killed = true;
  std::string text = FailureSummary({137, "", killed_, {killed_}}, script_, "node-1");
  EXPECT_THAT(text, HasSubstr("  <NO_OTHER_FAILURES>\n"));
  EXPECT_THAT(text, HasSubstr("exitcode  : -9 (pid: 12000)  (SIGKILL)"));
  EXPECT_THAT(text, HasSubstr("Signal 9 (SIGKILL) received by PID 12000: out of memory, killed by the kernel"));
}

TEST_F(FailureSummaryTest, AWorkerThatNeverStartedShowsItsStderr) {
  boom_.pid = 0;
  boom_.exit_code = 127;
  boom_.stderr_tail = {"one"};
  std::string text = FailureSummary({127, "", boom_, {boom_}}, script_, "node-1");
  EXPECT_THAT(text, HasSubstr("exitcode  : 127\n"));
  EXPECT_THAT(text, HasSubstr("stderr    : last line\n"));
}

TEST_F(FailureSummaryTest, NothingWhereNoWorkerFailed) {
  EXPECT_EQ(FailureSummary({}, script_, "node-1"), "");
  EXPECT_EQ(FailureSummary({200, "1 of 2 nodes came within 600 s", std::nullopt, {}}, script_, "node-1"), "");
}

TEST_F(FailureSummaryTest, WithoutAMessageItSaysHowToGetATraceback) {
  boom_.message.clear();
  EXPECT_THAT(FailureSummary({3, "", boom_, {boom_}}, script_, "node-1"),
              HasSubstr("To enable traceback see: https://pytorch.org"));
}

TEST_F(FailureSummaryTest, SaysWhoseTheErrorFileIs) {
  const rendezvous::Verdict verdict{3, "", boom_, {boom_}};
  EXPECT_THAT(FailureSummary(verdict, script_, "node-1"), HasSubstr("error_file: /logs/error.json\n"));
  EXPECT_THAT(FailureSummary(verdict, script_, "node-0"), HasSubstr("error_file: /logs/error.json (on node-1)\n"));
}

TEST_F(FailureSummaryTest, ATracebackIsShownOnce) {
  const std::string frame = "  File \"train.py\", line 3";
  const std::string header = "Traceback (most recent call last):";
  struct Row {
    std::vector<std::string> tail;
    std::string shown;
  };
  for (const Row& row : {
           Row{{header, "  File \"outer.py\", line 9", frame, "ValueError: boom"}, ""},
           Row{{frame, "ValueError: boom"}, ""},  // its header is too far above
           Row{{"[rank3]: " + header, "[rank3]: " + frame, "[rank3]: ValueError: boom"}, ""},
           Row{{"step 3", header, frame, "ValueError: boom", "", "Set the variable"},
               "last 3 lines\n    step 3\n    \n    Set the variable\n"},
           Row{{header, frame, "KeyError: other"}, "last 3 lines\n    " + header},
           Row{{header, "KeyError: before", header, frame, "ValueError: boom"},
               "last 2 lines\n    " + header + "\n    KeyError: before\n"},
           Row{{"step 3"}, "last line\n    step 3\n"},
       }) {
    boom_.stderr_tail = row.tail;
    const std::string text = FailureSummary({3, "", boom_, {boom_}}, script_, "node-1");
    if (row.shown.empty()) {
      EXPECT_THAT(text, Not(HasSubstr("stderr    :")));
    } else {
      EXPECT_THAT(text, HasSubstr("stderr    : " + row.shown));
    }
  }
}

TEST_F(FailureSummaryTest, LateOnesSaySo) {
  killed_.late = killed_.consequence = true;
  const std::string text = FailureSummary({3, "", boom_, {boom_, killed_}}, script_, "node-1");
  EXPECT_THAT(text, HasSubstr("it failed when the workers were being stopped"));
  EXPECT_THAT(text, Not(HasSubstr("it lost a peer")));
}

TEST_F(FailureSummaryTest, ConsequencesSaySo) {
  killed_.consequence = true;
  EXPECT_THAT(FailureSummary({3, "", boom_, {boom_, killed_}}, script_, "node-1"), HasSubstr("probably a consequence"));
}

TEST_F(FailureSummaryTest, ARootCauseIsNoConsequenceOfAnother) {
  boom_.consequence = true;
  const std::string text = FailureSummary({3, "", boom_, {boom_}}, script_, "node-1");
  EXPECT_THAT(text, HasSubstr("it lost a peer, or waited for one in vain: no worker failed by itself"));
  EXPECT_THAT(text, Not(HasSubstr("probably a consequence")));
}

TEST_F(FailureSummaryTest, ManyFailuresStayReadable) {
  rendezvous::Verdict verdict{3, "", boom_, {boom_}};
  for (int rank = 100; rank < 1100; ++rank) {
    killed_.rank = rank;
    verdict.failures.push_back(killed_);
  }
  std::string text = FailureSummary(verdict, script_, "node-1");
  EXPECT_THAT(text, HasSubstr("[16]:"));
  EXPECT_THAT(text, Not(HasSubstr("[17]:")));
  EXPECT_THAT(text, HasSubstr("  ... and 984 more\n"));
}

}  // namespace
}  // namespace muster::agent
