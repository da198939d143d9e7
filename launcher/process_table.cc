// SPDX-License-Identifier: Apache-2.0
#include "launcher/process_table.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>
#include <set>

#include "base/environment.h"
#include "base/process_stat.h"
#include "base/text.h"

namespace muster::launcher {
namespace {

std::vector<pid_t> NumbersIn(const char* folder) {
  std::vector<pid_t> numbers;
  std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder), closedir);
  if (!entries) return numbers;
  while (const dirent* entry = readdir(entries.get())) {
    if (auto number = ParseInt(entry->d_name)) numbers.push_back(static_cast<pid_t>(*number));
  }
  return numbers;
}

std::optional<ProcessStat> StatOf(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  // A process name may contain line breaks, but no NUL. If the process has ended since the open, read() gives ESRCH:
  // getline() accepts that, but an iterator over the buffer throws.
  std::string line;
  std::getline(file, line, '\0');
  return ProcessStat::Parse(line);
}

// The result for a process whose environment reads as empty. proc(5): start_code is field 26, env_start and env_end are
// fields 50 and 51. execve sets start_code after the other two.
Holds WhyEmpty(pid_t pid) {
  const auto stat = StatOf(pid);
  if (!stat || stat->dead() || !stat->Field(51)) return Holds::kNo;
  const bool none = stat->Field(26) != 0 && stat->Field(50) == stat->Field(51);
  return none ? Holds::kNo : Holds::kStarting;  // also if it has an environment by now
}

}  // namespace

std::map<pid_t, GroupUse> UseOf(const std::set<pid_t>& groups) {
  static const double kTicks = static_cast<double>(sysconf(_SC_CLK_TCK));
  static const int64_t kPage = sysconf(_SC_PAGESIZE);
  std::map<pid_t, GroupUse> uses;
  for (pid_t pid : NumbersIn("/proc")) {
    const auto stat = StatOf(pid);
    const auto group = stat ? stat->Field(5) : std::nullopt;
    if (!group || !groups.contains(static_cast<pid_t>(*group))) continue;
    GroupUse& use = uses[static_cast<pid_t>(*group)];
    int64_t ticks = 0;
    for (const size_t field : {14, 15, 16, 17}) ticks += stat->Field(field).value_or(0);  // own and of its children
    use.cpu += std::chrono::duration_cast<Duration>(std::chrono::duration<double>(static_cast<double>(ticks) / kTicks));
    use.memory_bytes += stat->Field(24).value_or(0) * kPage;
  }
  return uses;
}

std::vector<pid_t> LivingMembers(const std::set<pid_t>& groups) {
  std::vector<pid_t> members;
  for (pid_t pid : NumbersIn("/proc")) {
    const auto stat = StatOf(pid);
    if (!stat || stat->dead()) continue;
    const auto group = stat->Field(5);
    if (group && groups.contains(static_cast<pid_t>(*group))) members.push_back(pid);
  }
  return members;
}

std::vector<pid_t> OwnChildren() {
  std::vector<pid_t> children;
  siginfo_t ended{};
  if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == -1 && errno == ECHILD) return children;
  for (pid_t thread : NumbersIn("/proc/self/task")) {
    std::ifstream file(fmt::format("/proc/self/task/{}/children", thread));
    for (pid_t pid; file >> pid;) children.push_back(pid);
  }
  return children;
}

std::optional<uid_t> OwnerOf(pid_t pid) {
  struct stat facts {};
  if (stat(fmt::format("/proc/{}", pid).c_str(), &facts) != 0) return std::nullopt;
  return facts.st_uid;
}

Holds StartedWith(pid_t pid, const std::vector<std::string>& entries) {
  if (entries.empty()) return Holds::kNo;
  std::ifstream file(fmt::format("/proc/{}/environ", pid));
  if (!file) return Holds::kNo;
  std::set<std::string> environment;
  for (std::string entry; std::getline(file, entry, '\0');) environment.insert(entry);
  if (environment.empty()) return WhyEmpty(pid);
  const bool all = std::all_of(entries.begin(), entries.end(),
                               [&](const std::string& entry) { return environment.contains(entry); });
  return all ? Holds::kYes : Holds::kNo;
}

std::vector<std::string> OwnEntries(const std::vector<std::string>& environment) {
  std::set<std::string_view> ours;
  const Environment running = Environment::OfProcess();
  ours.insert(running.entries().begin(), running.entries().end());
  std::vector<std::string> own;
  for (const std::string& entry : environment) {
    if (!ours.contains(entry)) own.push_back(entry);
  }
  return own;
}

}  // namespace muster::launcher
