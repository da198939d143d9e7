// SPDX-License-Identifier: Apache-2.0
// The end of this process: groups that got SIGKILL are waited for without the loop. A child that is traced.
#include <sys/ptrace.h>

#include "launcher/process.h"
#include "tests/launcher/harness.h"

namespace muster::launcher {
namespace {

using std::chrono::minutes;

class AwaitGroupsTest : public Harness {
 protected:
  ~AwaitGroupsTest() override {
    for (pid_t group : groups_) kill(-group, SIGKILL);
    reaper_->AwaitGroups(groups_, MonotonicClock::now() + minutes(1));
  }

  // A shell and a child of it, in one process group. Returns when both run.
  pid_t StartTwo(const std::string& up) {
    auto pid = StartProcess({.argv = {"sh", "-c", fmt::format("(echo up >{}; sleep 1000) & wait", Path(up))},
                             .environment = {"PATH=/usr/bin:/bin"}});
    EXPECT_TRUE(pid.ok()) << pid.status();
    if (!pid.ok()) return -1;
    groups_.push_back(*pid);
    EXPECT_TRUE(UntilFile(Path(up)));
    reaper_->Watch(*pid, [this](const Reaped& reaped) { reaped_.push_back(reaped); });
    return *pid;
  }

  std::vector<pid_t> groups_;
  std::vector<Reaped> reaped_;
};

TEST_F(AwaitGroupsTest, ReapsAllProcessesOfTheGroups) {
  StartTwo("a");
  StartTwo("b");
  for (pid_t group : groups_) ASSERT_EQ(kill(-group, SIGKILL), 0);
  reaper_->AwaitGroups(groups_, MonotonicClock::now() + minutes(1));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // not even an orphan
  ASSERT_EQ(reaped_.size(), 2u);
  for (size_t i = 0; i < groups_.size(); ++i) {
    EXPECT_EQ(reaped_[i].pid, groups_[i]);
    EXPECT_EQ(WTERMSIG(reaped_[i].wait_status), SIGKILL);
  }
}

TEST_F(AwaitGroupsTest, LeavesOtherGroups) {
  const pid_t other = StartTwo("other"), group = StartTwo("group");
  ASSERT_EQ(kill(-group, SIGKILL), 0);
  reaper_->AwaitGroups({group}, MonotonicClock::now() + minutes(1));
  ASSERT_EQ(reaped_.size(), 1u);
  EXPECT_EQ(reaped_[0].pid, group);
  EXPECT_TRUE(Exists(other));
}

TEST_F(AwaitGroupsTest, TellsTheStopOfATracedChildAndItsEnd) {
  const pid_t pid = StartTwo("child");
  const long seized = ptrace(PTRACE_SEIZE, pid, nullptr, nullptr);
  if (seized != 0 && errno == ENOSYS) GTEST_SKIP() << "no ptrace (under emulation)";
  ASSERT_EQ(seized, 0) << strerror(errno);
  bool stopped = false;
  reaper_->WatchTraced(pid, [&] { stopped = true; });
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr), 0) << strerror(errno);
  ASSERT_TRUE(Until([&] { return stopped; }));
  EXPECT_TRUE(reaped_.empty());
  ASSERT_EQ(ptrace(PTRACE_DETACH, pid, nullptr, nullptr), 0) << strerror(errno);
  ASSERT_EQ(kill(pid, SIGKILL), 0);
  ASSERT_TRUE(Until([&] { return !reaped_.empty(); }));
  EXPECT_EQ(WTERMSIG(reaped_[0].wait_status), SIGKILL);
}

TEST_F(AwaitGroupsTest, EndsAtTheDeadline) {
  const pid_t group = StartTwo("group");
  const TimePoint deadline = MonotonicClock::now() + std::chrono::milliseconds(20);
  reaper_->AwaitGroups({group}, deadline);
  EXPECT_GE(MonotonicClock::now(), deadline);
  EXPECT_TRUE(reaped_.empty());
}

}  // namespace
}  // namespace muster::launcher
