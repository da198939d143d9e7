#include "initializers/guarded_shell.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/descriptors.h"

namespace muster::initializers {
namespace {

// Everything in here runs between fork and exec, or after fork for good: system calls only, as other threads may hold
// any lock.
class Guard {
 public:
  Guard(char* const* arguments, char* const* variables, int report)
      : arguments_(arguments), variables_(variables), report_(report), parent_(getpid()) {}

  // Every signal is blocked: handlers are the parent's, and what it sends to the group is for the others.
  [[noreturn]] void Run() const {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGHUP);
    signal(SIGCHLD, SIG_DFL);
    const pid_t shell = fork();
    if (shell == 0) BecomeShell();
    if (shell < 0) Fail();
    close(report_);
    sigset_t news;
    sigemptyset(&news);
    sigaddset(&news, SIGCHLD);
    sigaddset(&news, SIGHUP);
    while (true) {
      if (getppid() != parent_) kill(0, SIGKILL);  // us, too
      int how = 0;
      if (waitpid(shell, &how, WNOHANG) == shell) _exit(WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how));
      sigwaitinfo(&news, nullptr);
    }
  }

 private:
  [[noreturn]] void BecomeShell() const {
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
  const int report_;  // its end tells that the shell runs
  const pid_t parent_;
};

}  // namespace

StatusOr<pid_t> StartGuardedShell(const std::string& command, const std::vector<std::string>& environment) {
  const std::array<const char*, 4> arguments = {"sh", "-c", command.c_str(), nullptr};
  std::vector<const char*> variables;
  for (const std::string& entry : environment) variables.push_back(entry.c_str());
  variables.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "starting sh");
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  const Guard guard(const_cast<char* const*>(arguments.data()), const_cast<char* const*>(variables.data()), ends[1]);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) guard.Run();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return ErrnoStatus(errno, "starting sh");
  writing.Close();
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(reading.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof error) return pid;
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return ErrnoStatus(error, "sh");
}

}  // namespace muster::initializers
