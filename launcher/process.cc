#include "launcher/process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/process/v2/posix/vfork_launcher.hpp>
#include <boost/process/v2/process.hpp>
#include <cerrno>
#include <cstring>

#include "base/descriptors.h"
#include "base/text.h"

namespace muster::launcher {
namespace {

namespace process = boost::process::v2;
using boost::system::error_code;

enum class Stage : int { kSession, kStdio, kDirectory, kExec };

// What the child says of itself through the pipe when it cannot become the worker. EOF means it has.
struct ChildError {
  Stage stage = Stage::kExec;
  int error = 0;
};

// Runs in the child, between vfork and exec, in memory shared with us: system calls only.
class WorkerSetup {
 public:
  WorkerSetup(const ProcessSpec& spec, const std::vector<const char*>& environment, int report)
      : stdio_{spec.in, spec.out, spec.err},
        kept_(spec.kept),
        directory_(spec.working_directory.empty() ? nullptr : spec.working_directory.c_str()),
        environment_(environment),
        own_session_(spec.own_session),
        foreground_(spec.foreground),
        report_(report),
        parent_(getpid()) {}

  template <typename Launcher>
  error_code on_setup(Launcher& launcher, const process::filesystem::path&, const char* const*&) {
    launcher.env = environment_.data();
    launcher.fd_whitelist.push_back(report_);  // close-on-exec: its end tells that exec went well
    launcher.fd_whitelist.insert(launcher.fd_whitelist.end(), kept_.begin(), kept_.end());
    return {};
  }

  template <typename Launcher>
  error_code on_exec_setup(Launcher&, const process::filesystem::path&, const char* const*&) {
    // Marks instead of closing: `report_` must live until exec. (Process v2 closes only what is above its whitelist.)
    // Before Linux 5.11 what others opened without close-on-exec gets through; all of ours have it.
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    for (int descriptor : kept_) fcntl(descriptor, F_SETFD, 0);
    if ((own_session_ ? setsid() : setpgid(0, 0)) == -1) Fail(Stage::kSession);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1) Fail(Stage::kSession);
    if (getppid() != parent_) _exit(1);  // it died before the line above
    for (int target = 0; target < 3; ++target) {
      int source = stdio_[target];
      if (source == -1) continue;
      if (dup2(source, target) == -1) Fail(Stage::kStdio);  // the copy stays open over exec
    }
    // SIGTTOU is blocked here. A terminal that is not ours to give is no reason not to start.
    if (foreground_) tcsetpgrp(STDIN_FILENO, getpid());
    if (directory_ != nullptr && chdir(directory_) == -1) Fail(Stage::kDirectory);
    ResetSignals();
    return {};
  }

  // Process v2 looks this hook up with one list of arguments and calls it with another.
  template <typename... Ignored>
  void on_exec_error(Ignored&&...) {
    Fail(Stage::kExec);
  }

 private:
  // By the system call: glibc refuses 32 and 33, which it uses itself, and a parent can leave those ignored too.
  static void ResetSignals() {
    const char plain[64] = {};  // the kernel's struct sigaction, all zero: SIG_DFL
    for (int number = 1; number < NSIG; ++number) syscall(SYS_rt_sigaction, number, plain, nullptr, NSIG / 8);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
  }

  [[noreturn]] void Fail(Stage stage) {
    ChildError failure{stage, errno};
    [[maybe_unused]] ssize_t written = write(report_, &failure, sizeof failure);
    _exit(127);
  }

  const int stdio_[3];
  const std::vector<int>& kept_;
  const char* const directory_;
  const std::vector<const char*>& environment_;
  const bool own_session_;
  const bool foreground_;
  const int report_;
  const pid_t parent_;
};

// Blocks every signal: none of our handlers may run in the child while it shares our memory.
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

// Linux limits each string, and all of them together to a quarter of the stack's limit.
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
  switch (failure.stage) {
    case Stage::kSession:
    case Stage::kStdio:
      return ErrnoStatus(failure.error, fmt::format("preparing the process for '{}'", command));
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

// A copy above the standard three, so that setting up one stream cannot overwrite the source of another.
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
    if (S_ISREG(found.st_mode) && faccessat(AT_FDCWD, seen.c_str(), X_OK, AT_EACCESS) == 0) return candidate;
    if (denied.empty()) denied = candidate;
  }
  if (!denied.empty()) {
    return absl::PermissionDeniedError(
        fmt::format("'{}' is not executable ('{}' is what PATH leads to)", command, denied));
  }
  return absl::NotFoundError(fmt::format("'{}' was not found in PATH ({})", command, path));
}

StatusOr<pid_t> StartProcess(const ProcessSpec& spec) {
  if (spec.argv.empty()) return absl::InvalidArgumentError("a command line is empty");
  MUSTER_ASSIGN_OR_RETURN(const std::string executable,
                          FindExecutable(spec.argv.front(), spec.environment, spec.working_directory));
  SafeDescriptor in, out, err;
  if (!in.Take(spec.in) || !out.Take(spec.out) || !err.Take(spec.err)) {
    return ErrnoStatus(errno, fmt::format("preparing the streams of '{}'", spec.argv.front()));
  }
  ProcessSpec safe = spec;
  safe.in = in.fd;
  safe.out = out.fd;
  safe.err = err.fd;
  std::vector<const char*> environment;
  environment.reserve(spec.environment.size() + 1);
  for (const std::string& entry : spec.environment) environment.push_back(entry.c_str());
  environment.push_back(nullptr);
  std::vector<const char*> arguments;
  for (const std::string& argument : spec.argv) arguments.push_back(argument.c_str());
  arguments.push_back(nullptr);

  auto report = MakePipe();
  if (!report.ok()) return Annotate(report.status(), fmt::format("starting '{}'", spec.argv.front()));

  // A context of its own: the launcher tells its context of the fork, which must not touch the loop's reactor from a
  // child that shares our memory.
  boost::asio::io_context fork_context;
  process::posix::vfork_launcher launcher;
  error_code error;
  try {
    SignalsBlocked blocked;
    auto started = launcher(fork_context.get_executor(), error, process::filesystem::path(executable), arguments.data(),
                            WorkerSetup(safe, environment, report->writing.get()));
    started.detach();
  } catch (const std::exception&) {
    // The process runs, but there was no descriptor left for its handle.
    if (launcher.pid > 0) {
      kill(launcher.pid, SIGKILL);
      waitpid(launcher.pid, nullptr, 0);
    }
    return absl::ResourceExhaustedError(
        fmt::format("starting '{}': no file descriptor left; raise the limit (ulimit -n)", spec.argv.front()));
  }
  if (launcher.pid <= 0) {
    return ErrnoStatus(error.value() == 0 ? EAGAIN : error.value(),
                       fmt::format("starting '{}' (limit of processes or memory)", spec.argv.front()));
  }
  report->writing.Close();
  ChildError failure;
  ssize_t got;
  do {
    got = read(report->reading.get(), &failure, sizeof failure);
  } while (got == -1 && errno == EINTR);
  if (got == sizeof failure) {
    waitpid(launcher.pid, nullptr, 0);
    return Explain(failure, spec, executable);
  }
  return launcher.pid;
}

}  // namespace muster::launcher
