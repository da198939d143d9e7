// SPDX-License-Identifier: Apache-2.0
#include "base/guarded_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/close_from.h"
#include "base/exec_pointers.h"
#include "base/text.h"

namespace muster {
namespace {

int CodeOfWait(int how) { return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how); }

// All of this runs in a child of fork(2). It makes system calls only: another thread of the parent may have held any
// lock at the fork.
class Guard {
 public:
  Guard(char* const* arguments, char* const* variables, const GuardedCommand& command, int report, int life)
      : arguments_(arguments),
        variables_(variables),
        stdio_{command.in, command.out, command.err},
        holds_lease_(command.holds_lease),
        report_(report),
        life_(life),
        parent_(getpid()) {}

  // All signals are blocked: the handlers are the parent's, and signals to the group are for the command.
  [[noreturn]] void Run() const {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGHUP);
    signal(SIGCHLD, SIG_DFL);
    const pid_t child = fork();
    if (child == 0) BecomeCommand();
    if (child < 0) Fail();
    const int own[] = {report_, life_};
    if (!holds_lease_) CloseFrom(STDERR_FILENO + 1, Closing::kNow, own);
    close(report_);  // last: when StartGuarded reads its end, the others are closed
    sigset_t news;
    sigemptyset(&news);
    sigaddset(&news, SIGCHLD);
    sigaddset(&news, SIGHUP);
    while (true) {
      if (getppid() != parent_) kill(0, SIGKILL);  // the guard, too
      int how = 0;
      if (waitpid(child, &how, WNOHANG) == child) _exit(CodeOfWait(how));
      sigwaitinfo(&news, nullptr);
    }
  }

 private:
  [[noreturn]] void BecomeCommand() const {
    for (int target = 0; target <= STDERR_FILENO; ++target) {
      if (stdio_[target] != -1 && dup2(stdio_[target], target) == -1) Fail();
    }
    signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execvpe(arguments_[0], arguments_, variables_);
    Fail();
  }
  [[noreturn]] void Fail() const {
    const int error = errno;
    [[maybe_unused]] const ssize_t written = write(report_, &error, sizeof error);
    _exit(127);
  }

  char* const* const arguments_;
  char* const* const variables_;
  const int stdio_[3];
  const bool holds_lease_;
  const int report_;  // pipe: end of file tells the parent that the command runs
  const int life_;    // pipe: end of file tells the parent that the guard has ended
  const pid_t parent_;
};

}  // namespace

StatusOr<GuardedProcess> StartGuarded(const GuardedCommand& command) {
  std::vector<char*> arguments = ExecPointers(command.words);
  std::vector<char*> variables = ExecPointers(command.environment);
  const std::string& name = command.words.front();
  auto report = MakePipe();
  if (!report.ok()) return Annotate(report.status(), fmt::format("starting {}", name));
  auto life = MakePipe();  // not a pidfd, which Linux before 5.3 and some sandboxes lack
  if (!life.ok()) return Annotate(life.status(), fmt::format("starting {}", name));
  const Guard guard(arguments.data(), variables.data(), command, report->writing.get(), life->writing.get());
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) guard.Run();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return ErrnoStatus(errno, fmt::format("starting {}", name));
  report->writing.Close();
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(report->reading.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof error) {
    kill(pid, SIGKILL);
    CollectGuarded(pid);
    return ErrnoStatus(error, name);
  }
  return GuardedProcess{pid, std::move(life->reading)};  // closes the parent's writing end
}

int CollectGuarded(pid_t pid) {
  int how = 0;
  while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
  }
  return CodeOfWait(how);
}

}  // namespace muster
