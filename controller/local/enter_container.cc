#include "controller/local/enter_container.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/descriptors.h"
#include "base/environment.h"
#include "base/guarded_process.h"
#include "base/print.h"
#include "base/text.h"

namespace muster::controller {
namespace {

// The user's first: it gives the right to join the others; files last, as /proc is looked up before.
constexpr const char* kNamespaces[] = {"user", "ipc", "uts", "net", "mnt"};

bool IsOurs(const std::string& theirs, const char* name) {
  struct stat a {
  }, b{};
  return stat(theirs.c_str(), &a) == 0 && stat(fmt::format("/proc/self/ns/{}", name).c_str(), &b) == 0 &&
         a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

Status Join(const std::string& pid) {
  std::vector<std::pair<const char*, Descriptor>> joined;
  for (const char* name : kNamespaces) {
    const std::string path = fmt::format("/proc/{}/ns/{}", pid, name);
    if (IsOurs(path, name)) continue;
    Descriptor one(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!one.ok()) return ErrnoStatus(errno, path);
    joined.emplace_back(name, std::move(one));
  }
  for (const auto& [name, one] : joined) {
    if (setns(one.get(), 0) != 0)
      return ErrnoStatus(errno, fmt::format("setns: namespace {} of process {}", name, pid));
  }
  return absl::OkStatus();
}

StatusOr<int> Enter(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3) return absl::InvalidArgumentError("want PID FOLDER COMMAND...");
  const pid_t parent = getppid();
  MUSTER_RETURN_IF_ERROR(Join(arguments[0]));
  // A joined namespace of users has taken it away.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) raise(SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
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

int EnterContainer(const std::vector<std::string>& arguments) {
  const auto code = Enter(arguments);
  if (code.ok()) return *code;
  PrintTo(stderr, "{}\n", Message(code.status()));
  raise(SIGKILL);
  return 1;
}

}  // namespace muster::controller
