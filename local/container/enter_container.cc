// SPDX-License-Identifier: Apache-2.0
#include "local/container/enter_container.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/descriptors.h"
#include "base/environment.h"
#include "base/exec_pointers.h"
#include "base/guarded_process.h"
#include "base/print.h"
#include "base/text.h"

namespace muster::local {
namespace {

// The namespaces that a container may have of its own, except users. mnt is the last: joining it changes /proc.
constexpr const char* kNamespaces[] = {"ipc", "uts", "net", "pid", "mnt"};

struct Namespace {
  std::string name;  // for people
  Descriptor place;
};

bool IsOurs(const Descriptor& theirs, const char* kind) {
  struct stat a {
  }, b{};
  return fstat(theirs.get(), &a) == 0 && stat(fmt::format("/proc/self/ns/{}", kind).c_str(), &b) == 0 &&
         a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

Status Join(const Namespace& one) {
  if (setns(one.place.get(), 0) != 0) return ErrnoStatus(errno, fmt::format("setns: {}", one.name));
  return absl::OkStatus();
}

StatusOr<Namespace> NamespaceOf(const std::string& pid, const char* kind) {
  Namespace one{.name = fmt::format("/proc/{}/ns/{}", pid, kind), .place = Descriptor()};
  one.place = Descriptor(open(one.name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!one.place.ok()) return ErrnoStatus(errno, one.name);
  return one;
}

// Without root, a process may join these namespaces only from the user namespace that owns them. bubblewrap creates
// that one, and another one inside it for the command. True: children of this process are in another PID namespace now.
StatusOr<bool> JoinAll(const std::string& pid) {
  MUSTER_ASSIGN_OR_RETURN(const Namespace user, NamespaceOf(pid, "user"));
  std::vector<Namespace> theirs;
  bool other_pids = false;
  for (const char* kind : kNamespaces) {
    MUSTER_ASSIGN_OR_RETURN(Namespace one, NamespaceOf(pid, kind));
    if (IsOurs(one.place, kind)) continue;
    other_pids = other_pids || std::string_view(kind) == "pid";
    theirs.push_back(std::move(one));
  }
  if (!theirs.empty()) {
    const Namespace owner{.name = fmt::format("the owner of {}", theirs.back().name),
                          .place = Descriptor(ioctl(theirs.back().place.get(), NS_GET_USERNS))};
    if (!owner.place.ok()) return ErrnoStatus(errno, owner.name);
    if (!IsOurs(owner.place, "user")) MUSTER_RETURN_IF_ERROR(Join(owner));
  }
  // Checked before the mount namespace changes, and /proc with it.
  const bool has_inner = !IsOurs(user.place, "user");
  for (const Namespace& one : theirs) MUSTER_RETURN_IF_ERROR(Join(one));
  if (has_inner) MUSTER_RETURN_IF_ERROR(Join(user));
  return other_pids;
}

// Forks, and returns in the child only: setns(2) puts only the caller's children into a PID namespace. The parent
// waits, then exits with the child's code; it ends by SIGKILL if the child was killed. The child ends with its parent.
Status GoOnInChild() {
  MUSTER_ASSIGN_OR_RETURN(PipeEnds life, MakePipe());
  const pid_t child = fork();
  if (child < 0) return ErrnoStatus(errno, "fork");
  if (child > 0) {
    life.reading.Close();
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) raise(SIGKILL);
    _exit(WEXITSTATUS(status));
  }
  life.writing.Close();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // getppid() is 0 here, since the parent is outside of the namespace. It holds the pipe's other end while it lives.
  pollfd parent{life.reading.get(), 0, 0};
  if (poll(&parent, 1, 0) != 0) raise(SIGKILL);
  return absl::OkStatus();
}

StatusOr<int> Enter(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3) return absl::InvalidArgumentError("want PID FOLDER COMMAND...");
  const pid_t parent = getppid();
  MUSTER_ASSIGN_OR_RETURN(const bool other_pids, JoinAll(arguments[0]));
  // Joining a user namespace clears the parent-death signal.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) raise(SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (other_pids) MUSTER_RETURN_IF_ERROR(GoOnInChild());
  if (chdir(arguments[1].c_str()) != 0) return ErrnoStatus(errno, arguments[1]);
  MUSTER_ASSIGN_OR_RETURN(const GuardedProcess process, StartGuarded({.words = {arguments.begin() + 2, arguments.end()},
                                                                      .environment = Environment::OfProcess().entries(),
                                                                      .holds_lease = false}));
  return CollectGuarded(process.pid);
}

}  // namespace

std::vector<std::string> EnterWords(pid_t pid, const std::string& working_directory,
                                    const std::vector<std::string>& command) {
  std::vector<std::string> words = {"/proc/self/exe", kEnterWord, std::to_string(pid),
                                    working_directory.empty() ? "/" : working_directory};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::vector<std::string> CgroupWords(const std::string& folder) {
  if (folder.empty()) return {};
  return {"/proc/self/exe", kCgroupWord, folder};
}

int BecomeInCgroup(const std::vector<std::string>& arguments) {
  constexpr int kCannotRun = 126;
  if (arguments.size() < 2) return kCannotRun;
  const std::string place = arguments[0] + "/cgroup.procs";
  const Descriptor file(open(place.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.ok() || write(file.get(), "0", 1) != 1) {
    PrintTo(stderr, "muster local: {}\n", Message(ErrnoStatus(errno, place)));
    return kCannotRun;
  }
  const std::vector<std::string> words(arguments.begin() + 1, arguments.end());
  execvp(words.front().c_str(), ExecPointers(words).data());
  PrintTo(stderr, "muster local: {}\n", Message(ErrnoStatus(errno, words.front())));
  return kCannotRun;
}

int EnterContainer(const std::vector<std::string>& arguments) {
  const auto code = Enter(arguments);
  if (code.ok()) return *code;
  PrintTo(stderr, "{}\n", Message(code.status()));
  raise(SIGKILL);
  return 1;
}

}  // namespace muster::local
