// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/process_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "tests/base/fake_machine.h"

namespace muster::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string Described(const HostFs& fs, pid_t root, const StackLimits& limits = {}) {
  std::string text;
  DescribeTree(fs, root, limits, [&](std::string_view piece) { text += piece; });
  return text;
}

// A machine with a few processes.
class Machine : public FakeMachine {
 public:
  void Process(int pid, const std::string& name, char state, int parent, int group) {
    std::string folder = "/proc/" + std::to_string(pid);
    std::string stat = fmt::format("{} ({}) {} {} {} {} 0 -1 4194304", pid, name, state, parent, group, group);
    File(folder + "/stat", stat);
    File(folder + "/cmdline", std::string("cmd\0of\0", 7) + std::to_string(pid));
    File(fmt::format("{}/task/{}/stat", folder, pid), stat);
  }
};

TEST(ProcessStacks, ShowDescendantsAndTheRestOfTheGroup) {
  Machine machine;
  machine.Process(1, "init", 'S', 0, 1);
  machine.Process(10, "python3", 'S', 1, 10);
  machine.Process(12, "a) R 1 1 (b", 'D', 10, 10);  // the name looks like other fields
  machine.Process(11, "loader", 'S', 12, 11);       // leads a session of its own
  machine.Process(13, "orphan", 'T', 1, 10);        // adopted by init, still in the group
  machine.Process(20, "other", 'S', 1, 20);
  EXPECT_THAT(ProcessTree(machine.fs(), 10), ElementsAre(10, 11, 12, 13));
  EXPECT_THAT(ProcessTree(machine.fs(), 99), ElementsAre());
  std::string text = Described(machine.fs(), 10);
  EXPECT_THAT(text, HasSubstr("process 12 (a) R 1 1 (b): D (uninterruptible, in the kernel), parent 10, group 10\n"));
  EXPECT_THAT(text, HasSubstr("process 13 (orphan): T (stopped by a signal)"));
  EXPECT_THAT(text, HasSubstr("  12: cmd of 12\n"));
  EXPECT_THAT(text, Not(HasSubstr("other")));
  EXPECT_EQ(Described(machine.fs(), 99), "process 99: gone\n");
}

TEST(ProcessStacks, SayWhatOfAThreadIsReadable) {
  Machine machine;
  machine.Process(10, "python3", 'S', 1, 10);
  machine.File("/proc/10/task/10/wchan", "futex_wait_queue");
  machine.File("/proc/10/task/10/syscall", "202 0x7f 0x0 0x1\n");
  machine.File("/proc/10/task/10/stack", "[<0>] futex_wait_queue+0x5a/0x90\n[<0>] do_futex+0x1/0x2\n");
  machine.File("/proc/10/task/15/stat", "15 (pt_nccl_watchdg) S 1 10 10");
  EXPECT_EQ(Described(machine.fs(), 10),
            "process 10 (python3): S (sleeping), parent 1, group 10\n"
            "  thread 10 (python3): S (sleeping), wchan futex_wait_queue, syscall 202 0x7f 0x0 0x1\n"
            "    [<0>] futex_wait_queue+0x5a/0x90\n"
            "    [<0>] do_futex+0x1/0x2\n"
            "  thread 15 (pt_nccl_watchdg): S (sleeping), wchan not readable, syscall not readable\n"
            "    kernel stack: not readable (it needs CAP_SYS_ADMIN)\n"
            "command lines:\n  10: cmd of 10\n");
}

TEST(ProcessStacks, CutLongListsAndTexts) {
  Machine machine;
  for (int pid = 10; pid < 20; ++pid) machine.Process(pid, "p", 'S', pid == 10 ? 1 : 10, 10);
  for (int thread = 100; thread < 110; ++thread) {
    machine.File(fmt::format("/proc/10/task/{}/stat", thread), fmt::format("{} (t) S 1 10 10", thread));
  }
  machine.File("/proc/10/task/10/stack", std::string(100'000, 'x'));
  std::string text = Described(machine.fs(), 10, {3, 4, 1000});
  EXPECT_THAT(text, HasSubstr("10 processes, the first 3 follow\n"));
  EXPECT_THAT(text, HasSubstr("  ... 7 threads more\n"));
  EXPECT_THAT(text, HasSubstr("    ... cut\n"));
  EXPECT_THAT(text, Not(HasSubstr("process 13 ")));
  EXPECT_LT(text.size(), 5000u);
}

TEST(ProcessStacks, ShowAStoppedChildAsStopped) {
  pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  std::string text = Described(HostFs(), child);
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  EXPECT_THAT(text, HasSubstr(fmt::format("process {} (", child)));
  EXPECT_THAT(text, HasSubstr("T (stopped by a signal)"));
  EXPECT_THAT(text, HasSubstr(fmt::format("  thread {} (", child)));
  EXPECT_FALSE(IsPython(getpid()));
}

}  // namespace
}  // namespace muster::agent
