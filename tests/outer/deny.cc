// SPDX-License-Identifier: Apache-2.0
// muster_deny CALLS ERRNO COMMAND... runs the command such that these system calls fail with ERRNO, as in a
// sandbox or under a seccomp profile that lacks them.
//
// CALLS: names from the table below, with commas between; or since-3.11: every call that Linux 3.10 lacks. New calls
// get the next number, so these are all calls from one number on.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct Call {
  std::string_view name;
  unsigned number;
};
constexpr Call kCalls[] = {
    {"clone3", SYS_clone3},
    {"close_range", SYS_close_range},
    {"copy_file_range", SYS_copy_file_range},
    {"epoll_create1", SYS_epoll_create1},
    {"eventfd2", SYS_eventfd2},
    {"faccessat2", SYS_faccessat2},
    {"fallocate", SYS_fallocate},
    {"getrandom", SYS_getrandom},
    {"inotify_init1", SYS_inotify_init1},
    {"io_uring_setup", SYS_io_uring_setup},
    {"ioctl", SYS_ioctl},
    {"memfd_create", SYS_memfd_create},
    {"openat2", SYS_openat2},
    {"pidfd_open", SYS_pidfd_open},
    {"prctl", SYS_prctl},
    {"prlimit64", SYS_prlimit64},
    {"renameat2", SYS_renameat2},
    {"sched_getaffinity", SYS_sched_getaffinity},
    {"sched_setaffinity", SYS_sched_setaffinity},
    {"setsid", SYS_setsid},
    {"signalfd4", SYS_signalfd4},
    {"statx", SYS_statx},
    {"timerfd_create", SYS_timerfd_create},
    {"waitid", SYS_waitid},
};

int End(const std::string& what) {
  std::perror(what.c_str());
  return 99;
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) {
    std::fputs("muster_deny CALLS ERRNO COMMAND...\n", stderr);
    return 99;
  }
  const auto denied = SECCOMP_RET_ERRNO | static_cast<unsigned>(std::atoi(words[2]));
  std::vector<sock_filter> rules = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  std::istringstream names(words[1]);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "since-3.11") {
      rules.push_back(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SYS_finit_module, 0, 1));
    } else {
      const auto* call =
          std::find_if(std::begin(kCalls), std::end(kCalls), [&](const Call& c) { return c.name == name; });
      if (call == std::end(kCalls)) {
        std::fprintf(stderr, "muster_deny: no call '%s' in its table\n", name.c_str());
        return 99;
      }
      rules.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call->number, 0, 1));
    }
    rules.push_back(BPF_STMT(BPF_RET | BPF_K, denied));
  }
  rules.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(rules.size()), rules.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return End("prctl(PR_SET_NO_NEW_PRIVS)");
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return End("prctl(PR_SET_SECCOMP)");
  execvp(words[3], words + 3);
  return End(words[3]);
}
