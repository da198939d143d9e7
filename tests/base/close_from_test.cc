// SPDX-License-Identifier: Apache-2.0
#include "base/close_from.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

namespace muster {
namespace {

// Makes the given system calls fail with EPERM in this process.
bool Deny(std::vector<long> calls) {
  std::vector<sock_filter> rules = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (long call : calls) {
    rules.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    rules.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  rules.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(rules.size()), rules.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Tests the three ways to close. Each runs in a child, which has its own descriptors and seccomp filter.
TEST(CloseFrom, ClosesAllButThoseThatAreKept) {
  struct Row {
    const char* name;
    std::vector<long> denied;
    Closing when;
  };
  for (const Row& row :
       {Row{"by range", {}, Closing::kNow}, Row{"by range", {}, Closing::kOnExec},
        Row{"by listing", {SYS_close_range}, Closing::kNow}, Row{"by listing", {SYS_close_range}, Closing::kOnExec},
        Row{"by number", {SYS_close_range, SYS_getdents64}, Closing::kNow},
        Row{"by number", {SYS_close_range, SYS_getdents64}, Closing::kOnExec}}) {
    if (!row.denied.empty() && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0) GTEST_SKIP() << "no seccomp (under emulation)";
    const pid_t child = fork();
    if (child == 0) {
      rlimit limit{};
      getrlimit(RLIMIT_NOFILE, &limit);
      limit.rlim_cur = std::min<rlim_t>(limit.rlim_cur, 256);
      setrlimit(RLIMIT_NOFILE, &limit);
      for (int fd = 3; fd < 200; ++fd) dup2(0, fd);
      const std::vector<int> kept = {150, 4, 5};
      if (!row.denied.empty() && !Deny(row.denied)) _exit(1);
      CloseFrom(3, row.when, kept);
      for (int fd = 0; fd < 256; ++fd) {
        const int flags = fcntl(fd, F_GETFD);
        const bool stays = fd < 3 || fd == 4 || fd == 5 || fd == 150;
        const bool right = stays                          ? flags == 0
                           : row.when == Closing::kOnExec ? flags == FD_CLOEXEC || (fd >= 200 && flags == -1)
                                                          : flags == -1;
        if (!right) _exit(2);
      }
      _exit(0);
    }
    int how = 0;
    ASSERT_EQ(waitpid(child, &how, 0), child);
    EXPECT_EQ(how, 0) << row.name << ", " << (row.when == Closing::kNow ? "now" : "on exec");
  }
}

}  // namespace
}  // namespace muster
