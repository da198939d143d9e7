// SPDX-License-Identifier: Apache-2.0
#include "launcher/process_table.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "base/text.h"

namespace muster::launcher {
namespace {

// A child with exactly the given environment. It is killed and reaped at the end.
class Child {
 public:
  Child(const std::vector<std::string>& argv, const std::vector<std::string>& environment) {
    std::vector<char*> arguments, entries;
    for (const std::string& text : argv) arguments.push_back(const_cast<char*>(text.c_str()));
    for (const std::string& text : environment) entries.push_back(const_cast<char*>(text.c_str()));
    arguments.push_back(nullptr);
    entries.push_back(nullptr);
    // ThreadSanitizer replaces vfork by fork, but does not change this call.
    EXPECT_EQ(posix_spawn(&pid_, arguments[0], nullptr, nullptr, arguments.data(), entries.data()), 0);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

// The answer once the child has its environment: posix_spawn returns earlier.
Holds Settled(const Child& child, const std::vector<std::string>& entries) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  Holds holds = Holds::kStarting;
  while (holds == Holds::kStarting && std::chrono::steady_clock::now() < deadline) {
    holds = StartedWith(child.pid(), entries);
  }
  return holds;
}

const std::vector<std::string> kSleep = {"/bin/sleep", "1000"};

TEST(StartedWith, EachOfTheEntries) {
  const Child child(kSleep, {"A=1", "B=2", "C="});
  EXPECT_EQ(Settled(child, {"A=1"}), Holds::kYes);
  EXPECT_EQ(Settled(child, {"B=2", "A=1", "C="}), Holds::kYes);
  EXPECT_EQ(Settled(child, {"A=1", "B=3"}), Holds::kNo);
  EXPECT_EQ(Settled(child, {"A"}), Holds::kNo);
  EXPECT_EQ(Settled(child, {}), Holds::kNo);
}

TEST(StartedWith, NobodyAndNothing) {
  const Child empty(kSleep, {});
  EXPECT_EQ(Settled(empty, {"A=1"}), Holds::kNo);
  EXPECT_EQ(StartedWith(0x7fffffff, {"A=1"}), Holds::kNo);
}

// While a process execs itself again and again, every answer is kYes or kStarting.
TEST(StartedWith, IsNeverLostInExec) {
  const std::string again = "[ $1 = 0 ] && exec /bin/sleep 1000; exec /bin/sh -c \"$0\" \"$0\" $(($1 - 1))";
  const Child child({"/bin/sh", "-c", again, again, "3000"}, {"MARK=1"});
  int looks = 0;
  for (std::string name; name != "sleep"; ++looks) {
    ASSERT_NE(StartedWith(child.pid(), {"MARK=1"}), Holds::kNo) << "at look " << looks;
    std::getline(std::ifstream(fmt::format("/proc/{}/comm", child.pid())), name);
  }
  EXPECT_GT(looks, 100);
}

TEST(OwnChildren, OfAllThreadsAlsoThoseThatHaveEnded) {
  EXPECT_TRUE(OwnChildren().empty());
  std::optional<Child> child;
  std::thread([&child] { child.emplace(kSleep, std::vector<std::string>()); }).join();
  EXPECT_EQ(OwnChildren(), std::vector<pid_t>{child->pid()});
  kill(child->pid(), SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child->pid()), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(OwnChildren(), std::vector<pid_t>{child->pid()});
  child.reset();
  EXPECT_TRUE(OwnChildren().empty());
}

TEST(LivingMembers, OfAGroup) {
  const Child child(kSleep, {});
  const auto living = LivingMembers({getpgrp(), 0x7ffffff0});
  EXPECT_NE(std::find(living.begin(), living.end(), child.pid()), living.end());
  EXPECT_TRUE(LivingMembers({0x7ffffff0}).empty());
}

// Processes end while they are read: read() of /proc/PID/stat gives ESRCH when the process is gone.
TEST(LivingMembers, BearsThoseThatAreGoing) {
  const std::string crowd = "i=0; while [ $i -lt 3000 ]; do ( : ); i=$((i + 1)); done; exec /bin/sleep 1000";
  const std::vector<std::string> command = {"/bin/sh", "-c", crowd};
  const Child first(command, {}), second(command, {}), third(command, {});
  int looks = 0;
  for (const Child* child : {&first, &second, &third}) {
    for (std::string name; name != "sleep"; ++looks) {
      EXPECT_NO_THROW(LivingMembers({0x7ffffff0}));
      std::getline(std::ifstream(fmt::format("/proc/{}/comm", child->pid())), name);
    }
  }
  EXPECT_GT(looks, 100);
}

}  // namespace
}  // namespace muster::launcher
