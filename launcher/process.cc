// SPDX-License-Identifier: Apache-2.0
#include "launcher/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/close_from.h"
#include "base/descriptors.h"
#include "base/exec_pointers.h"
#include "base/kernel_calls.h"
#include "base/text.h"

namespace muster::launcher {
namespace {

enum class Stage : int { kSession, kDeathSignal, kStdio, kDirectory, kExec };

// Sent by the child through the pipe if it fails before or at exec. End of file means success.
struct ChildError {
  Stage stage = Stage::kExec;
  int error = 0;
};

// The child's data, all made before vfork.
struct Child {
  const char* executable;
  char* const* arguments;
  char* const* environment;
  const ProcessSpec& spec;
  std::array<int, 3> streams;  // in place of those of `spec`: -1 or above 2
  int report;                  // close-on-exec: end of file tells the parent that exec succeeded
  pid_t parent;
};

[[noreturn]] void Fail(const Child& child, Stage stage) {
  ChildError failure{stage, errno};
  [[maybe_unused]] ssize_t written = write(child.report, &failure, sizeof failure);
  _exit(127);
}

// Uses the system call: glibc refuses the signals 32 and 33, which it uses itself. A parent may have ignored them too.
void ResetSignals() {
  const char plain[64] = {};  // the kernel's struct sigaction, all zero: SIG_DFL
  for (int number = 1; number < NSIG; ++number) syscall(SYS_rt_sigaction, number, plain, nullptr, NSIG / 8);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Runs in the child between vfork and exec. The child shares the parent's memory, so it makes system calls only.
[[noreturn]] void Become(const Child& child) {
  const ProcessSpec& spec = child.spec;
  CloseFrom(3, Closing::kOnExec);  // marks instead of closing: `report` must live until exec
  for (int descriptor : spec.kept) fcntl(descriptor, F_SETFD, 0);
  if ((spec.own_session ? setsid() : setpgid(0, 0)) == -1) Fail(child, Stage::kSession);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1) Fail(child, Stage::kDeathSignal);
  if (getppid() != child.parent) _exit(1);  // the parent died before the line above
  for (int target = 0; target < 3; ++target) {
    const int source = child.streams[target];
    if (source != -1 && dup2(source, target) == -1) Fail(child, Stage::kStdio);  // the copy stays open over exec
  }
  // SIGTTOU is blocked here. Start also if the foreground cannot be given.
  if (spec.foreground) tcsetpgrp(STDIN_FILENO, getpid());
  if (!spec.working_directory.empty() && chdir(spec.working_directory.c_str()) == -1) Fail(child, Stage::kDirectory);
  ResetSignals();
  execve(child.executable, child.arguments, child.environment);
  Fail(child, Stage::kExec);
}

// A separate function: the caller of vfork must not return before the child has called exec, and must keep no variable
// in a register across it.
__attribute__((noinline)) pid_t StartChild(const Child& child) {
  // posix_spawn cannot set the death signal.
  const pid_t pid = vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
  if (pid == 0) Become(child);
  return pid;
}

// Blocks every signal: no handler may run in the child while it shares the parent's memory.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// Explains E2BIG. Linux limits each string, and the sum of all strings to a quarter of the stack limit.
std::string WhatIsTooLong(const ProcessSpec& spec) {
  constexpr size_t kLongest = size_t{32} * 4096;  // MAX_ARG_STRLEN, with the NUL
  size_t arguments = 0, environment = 0;
  for (size_t i = 0; i < spec.argv.size(); ++i) {
    if (spec.argv[i].size() >= kLongest) {
      return fmt::format("its argument {} is too long ({} bytes, at most {}); pass it in a file", i,
                         spec.argv[i].size(), kLongest - 1);
    }
    arguments += spec.argv[i].size() + 1;
  }
  for (const std::string& entry : spec.environment) {
    if (entry.size() >= kLongest) {
      return fmt::format("the variable {} is too long ({} bytes, at most {}); pass it in a file",
                         entry.substr(0, entry.find('=')), entry.size(), kLongest - 1);
    }
    environment += entry.size() + 1;
  }
  return fmt::format(
      "its arguments ({} bytes) and environment ({} bytes) are too long together (at most {}); pass long values in "
      "files, leave variables out (Kubernetes: enableServiceLinks: false), or raise the stack limit (ulimit -s)",
      arguments, environment, sysconf(_SC_ARG_MAX));
}

Status Explain(const ChildError& failure, const ProcessSpec& spec, const std::string& executable) {
  const std::string& command = spec.argv.front();
  const std::string preparing = fmt::format("preparing the process for '{}'", command);
  switch (failure.stage) {
    case Stage::kSession:
      return CallStatus(failure.error, spec.own_session ? "setsid" : "setpgid", preparing);
    case Stage::kDeathSignal:
      return CallStatus(failure.error, "prctl(PR_SET_PDEATHSIG)", preparing);
    case Stage::kStdio:
      return CallStatus(failure.error, "dup2", preparing);
    case Stage::kDirectory:
      return absl::FailedPreconditionError(
          fmt::format("'{}' cannot be started: entering its working directory '{}': {}", command,
                      spec.working_directory, strerror(failure.error)));
    case Stage::kExec:
      break;
  }
  switch (failure.error) {
    case ENOENT: {
      struct stat found {};
      const bool relative = executable[0] != '/' && !spec.working_directory.empty();
      const std::string path = relative ? spec.working_directory + "/" + executable : executable;
      if (stat(path.c_str(), &found) == 0) {
        return absl::NotFoundError(
            fmt::format("'{}' exists, but the interpreter it names (its #! line or loader) was not found", executable));
      }
      return absl::NotFoundError(fmt::format("'{}' was not found: {}", command, strerror(failure.error)));
    }
    case ENOTDIR:
    case ENAMETOOLONG:
      return absl::NotFoundError(fmt::format("'{}' was not found: {}", command, strerror(failure.error)));
    case ENOEXEC:
      return absl::PermissionDeniedError(fmt::format(
          "'{}' cannot be executed: exec format error; a script needs a first line such as #!/bin/sh, a binary must be "
          "built for this machine",
          executable));
    case E2BIG:
      return absl::PermissionDeniedError(fmt::format("'{}' cannot be executed: {}", executable, WhatIsTooLong(spec)));
    case EACCES:
    case EPERM:
    case EISDIR:
    case ETXTBSY:
    case ELIBBAD:
    case ELOOP:
      return absl::PermissionDeniedError(
          fmt::format("'{}' cannot be executed: {}", executable, strerror(failure.error)));
    default:
      return ErrnoStatus(failure.error, fmt::format("'{}' cannot be executed", executable));
  }
}

std::string_view PathOf(const std::vector<std::string>& environment) {
  for (const std::string& entry : environment) {
    if (entry.starts_with("PATH=")) return std::string_view(entry).substr(5);
  }
  return "/usr/local/bin:/bin:/usr/bin";
}

// A copy of a descriptor with a number above 2, so that setting up one stream cannot overwrite the source of another.
struct SafeDescriptor {
  int fd = -1;
  bool own = false;
  ~SafeDescriptor() {
    if (own) close(fd);
  }
  bool Take(int source) {
    fd = source;
    if (source < 0 || source > 2) return true;
    fd = fcntl(source, F_DUPFD_CLOEXEC, 3);
    own = fd != -1;
    return own;
  }
};

}  // namespace

StatusOr<std::string> FindExecutable(const std::string& command, const std::vector<std::string>& environment,
                                     const std::string& working_directory) {
  if (command.empty()) return absl::NotFoundError("the command is empty");
  if (command.find('/') != std::string::npos) return command;
  std::string denied;
  std::string_view path = PathOf(environment);
  for (size_t start = 0; start <= path.size();) {
    size_t end = std::min(path.find(':', start), path.size());
    std::string_view folder = path.substr(start, end - start);
    start = end + 1;
    std::string candidate = folder.empty() ? "./" + command : fmt::format("{}/{}", folder, command);
    std::string seen = candidate;
    if (candidate[0] != '/' && !working_directory.empty()) seen = fmt::format("{}/{}", working_directory, candidate);
    struct stat found {};
    if (stat(seen.c_str(), &found) == -1) continue;
    // Not by the effective ids: glibc asks faccessat2(2) for them, and returns a seccomp profile's EPERM as the answer.
    if (S_ISREG(found.st_mode) && access(seen.c_str(), X_OK) == 0) return candidate;
    if (denied.empty()) denied = candidate;
  }
  if (!denied.empty()) {
    return absl::PermissionDeniedError(
        fmt::format("'{}' was found in PATH as '{}', which is not executable", command, denied));
  }
  constexpr size_t kMostShown = 60;  // of a message; a longer PATH hides what it says
  const std::string shown = path.size() > kMostShown ? "" : fmt::format(" ({})", path);
  return absl::NotFoundError(fmt::format("'{}' was not found in PATH{}", command, shown));
}

StatusOr<pid_t> StartProcess(const ProcessSpec& spec) {
  if (spec.argv.empty()) return absl::InvalidArgumentError("a command line is empty");
  MUSTER_ASSIGN_OR_RETURN(const std::string executable,
                          FindExecutable(spec.argv.front(), spec.environment, spec.working_directory));
  SafeDescriptor in, out, err;
  if (!in.Take(spec.in) || !out.Take(spec.out) || !err.Take(spec.err)) {
    return ErrnoStatus(errno, fmt::format("preparing the streams of '{}'", spec.argv.front()));
  }
  const std::vector<char*> environment = ExecPointers(spec.environment), arguments = ExecPointers(spec.argv);
  auto report = MakePipe();
  if (!report.ok()) return Annotate(report.status(), fmt::format("starting '{}'", spec.argv.front()));
  pid_t pid = -1;
  int error = 0;
  {
    SignalsBlocked blocked;
    pid = StartChild({executable.c_str(),
                      arguments.data(),
                      environment.data(),
                      spec,
                      {in.fd, out.fd, err.fd},
                      report->writing.get(),
                      getpid()});
    error = errno;
  }
  if (pid == -1) {
    return CallStatus(error, "vfork", fmt::format("starting '{}' (limit of processes or memory)", spec.argv.front()));
  }
  report->writing.Close();
  ChildError failure;
  ssize_t got;
  do {
    got = read(report->reading.get(), &failure, sizeof failure);
  } while (got == -1 && errno == EINTR);
  if (got == sizeof failure) {
    waitpid(pid, nullptr, 0);
    return Explain(failure, spec, executable);
  }
  return pid;
}

}  // namespace muster::launcher
