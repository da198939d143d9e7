// SPDX-License-Identifier: Apache-2.0
#include "local/run_guard.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/close_from.h"
#include "base/text.h"
#include "local/state/job_folders.h"
#include "local/state/left_processes.h"

namespace muster::local {
namespace {

constexpr char kInOrder = 1;

[[noreturn]] void Guard(const std::string& run, int life, int pods) {
  setsid();
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGPIPE}) signal(number, SIG_IGN);
  const int kept[] = {life, pods};
  const int nothing = open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, standard);
  CloseFrom(STDERR_FILENO + 1, Closing::kNow, kept);
  char word = 0;
  ssize_t got = 0;
  while ((got = read(life, &word, 1)) < 0 && errno == EINTR) {
  }
  if (got == 1) _exit(0);
  KillRun(run).IgnoreError();  // `muster ps` names what is left
  if (pods >= 0) RemoveVolumesBelow(fmt::format("/proc/self/fd/{}", pods));
  _exit(0);
}

}  // namespace

StatusOr<std::unique_ptr<RunGuard>> RunGuard::Begin(const std::string& run, int pods) {
  MUSTER_ASSIGN_OR_RETURN(PipeEnds life, MakePipe());
  const pid_t pid = fork();
  if (pid < 0) return ErrnoStatus(errno, "fork");
  if (pid == 0) {
    life.writing.Close();
    Guard(run, life.reading.get(), pods);
  }
  return std::unique_ptr<RunGuard>(new RunGuard(pid, std::move(life.writing)));
}

RunGuard::~RunGuard() {
  const ssize_t written = write(life_.get(), &kInOrder, 1);
  if (written != 1) return;  // the guard was killed
  // A reaper of this process may have collected it (ECHILD).
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace muster::local
