// SPDX-License-Identifier: Apache-2.0
// Tests that Stop leaves no process of a worker, whatever the worker does.
#include "tests/launcher/harness.h"

namespace muster::launcher {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
constexpr Duration kLong = minutes(10);

class StopTest : public Harness {
 protected:
  pid_t PidFrom(const std::string& path) {
    EXPECT_TRUE(UntilFile(path));
    return static_cast<pid_t>(ParseInt(Strip(ReadFile(path))).value_or(0));
  }
};

TEST_F(StopTest, TermEndsAllAndIsNoFailure) {
  ASSERT_TRUE(Start({Shell("exec sleep 1000", 0), Shell("exec sleep 1000", 1)}).ok());
  EXPECT_TRUE(group_->running());
  group_->Stop(SIGTERM, kLong);
  ASSERT_TRUE(UntilGone());
  EXPECT_TRUE(exits_.empty());
  ASSERT_EQ(group_->records().size(), 2u);
  for (const ExitRecord& record : group_->records()) {
    EXPECT_EQ(record.signal, SIGTERM);
    EXPECT_TRUE(record.after_stop);
  }
  EXPECT_FALSE(group_->running());
  EXPECT_EQ(gone_, 1);
}

TEST_F(StopTest, WhoIgnoresTermIsKilledAfterTheGrace) {
  ASSERT_TRUE(Start({Shell("trap '' TERM; echo up; while :; do sleep 1000; done")}).ok());
  ASSERT_TRUE(UntilFile(Path("out.0")));
  group_->Stop(SIGTERM, std::chrono::milliseconds(50));
  ASSERT_TRUE(UntilGone());
  EXPECT_EQ(group_->records()[0].signal, SIGKILL);
}

TEST_F(StopTest, AShorterGraceShortens) {
  ASSERT_TRUE(Start({Shell("trap '' TERM; echo up; while :; do sleep 1000; done")}).ok());
  ASSERT_TRUE(UntilFile(Path("out.0")));
  group_->Stop(SIGTERM, kLong);
  group_->Stop(SIGTERM, kLong * 2);  // does not lengthen the grace
  group_->Stop(SIGTERM, Duration(0));
  ASSERT_TRUE(UntilGone());
  EXPECT_EQ(group_->records()[0].signal, SIGKILL);
}

TEST_F(StopTest, AStoppedWorkerStops) {
  ASSERT_TRUE(Start({Shell("trap 'exit 7' TERM; echo up; kill -STOP $$; sleep 1000 & wait")}).ok());
  ASSERT_TRUE(UntilFile(Path("out.0")));
  ASSERT_TRUE(Until(
      [&] { return ReadFile(fmt::format("/proc/{}/stat", group_->pids()[0])).find(") T ") != std::string::npos; }));
  group_->Stop(SIGTERM, kLong);
  ASSERT_TRUE(UntilGone());
  EXPECT_EQ(group_->records()[0].exit_code, 7);
}

TEST_F(StopTest, GrandchildrenGoToo) {
  ASSERT_TRUE(Start({Shell("sleep 1000 & echo $! > pid; mv pid " + Path("child") + "; wait")}).ok());
  pid_t child = PidFrom(Path("child"));
  ASSERT_TRUE(Exists(child));
  group_->Stop(SIGTERM, kLong);
  ASSERT_TRUE(UntilGone());
  EXPECT_FALSE(Exists(child));
}

TEST_F(StopTest, GrandchildrenOfADeadWorkerGoToo) {
  WorkerSpec spec = Shell("(trap '' TERM; echo up > child; while :; do sleep 1000; done) & read up < child; exit 3");
  spec.working_directory = folder_;
  MakeFifo("child");
  ASSERT_TRUE(Start({spec}).ok());
  ASSERT_TRUE(Until([&] { return exits_.size() == 1; }));
  EXPECT_EQ(exits_[0].exit_code, 3);
  EXPECT_TRUE(group_->running());
  EXPECT_EQ(gone_, 0);
  group_->Stop(SIGTERM, std::chrono::milliseconds(50));
  ASSERT_TRUE(UntilGone());
  // Zombies are reaped at the next SIGCHLD.
  EXPECT_TRUE(Until([&] { return kill(-static_cast<pid_t>(group_->pids()[0]), 0) == -1; }));
}

TEST_F(StopTest, AllGoneComesWithoutStopWhenTheLastGrandchildEnds) {
  MakeFifo("go");
  ASSERT_TRUE(Start({Shell("(read go < " + Path("go") + ") & exit 0")}).ok());
  ASSERT_TRUE(Until([&] { return exits_.size() == 1; }));
  EXPECT_EQ(gone_, 0);
  std::ofstream(Path("go")) << "1\n";
  ASSERT_TRUE(UntilGone());
}

TEST_F(StopTest, ADaemonOfAWorkerGoesToo) {
  ASSERT_TRUE(Start({Probe({"daemon", Path("pid")})}).ok());
  pid_t daemon = PidFrom(Path("pid"));
  ASSERT_NE(daemon, 0);
  group_->Stop(SIGTERM, kLong);
  ASSERT_TRUE(UntilGone());
  EXPECT_FALSE(Exists(daemon));
}

TEST_F(StopTest, OtherChildrenOfOursAreLeftAlone) {
  pid_t other = fork();
  if (other == 0) {
    setsid();
    for (;;) pause();
  }
  const Killed killed{other};
  ASSERT_TRUE(Start({Shell("exec sleep 1000")}).ok());
  group_->Stop(SIGTERM, kLong);
  ASSERT_TRUE(UntilGone());
  EXPECT_TRUE(Exists(other));
}

TEST_F(StopTest, SignalOnlyForwards) {
  ASSERT_TRUE(Start({Probe({"usr1"})}).ok());
  ASSERT_TRUE(UntilFile(Path("out.0")));
  group_->Signal(SIGUSR1);
  ASSERT_TRUE(UntilGone());
  ASSERT_EQ(exits_.size(), 1u);
  EXPECT_EQ(exits_[0].exit_code, 9);
  EXPECT_FALSE(exits_[0].after_stop);
}

TEST_F(StopTest, StopWithinTheCallbackOfAnExit) {
  on_exit_ = [this](const ExitRecord&) { group_->Stop(SIGTERM, kLong); };
  ASSERT_TRUE(Start({Shell("exec sleep 1000", 0), Shell("exit 4", 1), Shell("exec sleep 1000", 2)}).ok());
  ASSERT_TRUE(UntilGone());
  EXPECT_EQ(exits_.size(), 1u);
  ASSERT_EQ(group_->records().size(), 3u);
  EXPECT_EQ(group_->records()[0].exit_code, 4);
}

TEST_F(StopTest, StopAfterTheEndAndOfNothing) {
  RunOne(Shell("exit 0"));
  group_->Stop(SIGTERM, kLong);
  group_->Signal(SIGTERM);
  loop_.restart();
  loop_.poll();
  EXPECT_EQ(gone_, 1);

  gone_ = 0;
  ASSERT_TRUE(Start({}).ok());
  group_->Stop(SIGTERM, kLong);
  EXPECT_EQ(gone_, 0);  // not called before Stop returns
  EXPECT_TRUE(UntilGone());
}

TEST_F(StopTest, TheDestructorKills) {
  ASSERT_TRUE(Start({Shell("trap '' TERM; sleep 1000 & echo $! > pid; mv pid " + Path("child") + "; wait")}).ok());
  pid_t child = PidFrom(Path("child"));
  group_.reset();
  EXPECT_TRUE(Until([&] { return reaper_->watched().empty() && !Exists(child); }));
}

}  // namespace
}  // namespace muster::launcher
