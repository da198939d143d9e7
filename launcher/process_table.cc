#include "launcher/process_table.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

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

}  // namespace

std::vector<pid_t> LivingMembers(const std::set<pid_t>& groups) {
  std::vector<pid_t> members;
  for (pid_t pid : NumbersIn("/proc")) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string line;
    if (!std::getline(file, line)) continue;
    size_t name_end = line.rfind(')');  // the name may hold anything
    if (name_end == std::string::npos) continue;
    std::istringstream rest(line.substr(name_end + 1));
    char state = 0;
    pid_t parent = 0;
    pid_t group = 0;
    if (rest >> state >> parent >> group && state != 'Z' && state != 'X' && groups.contains(group))
      members.push_back(pid);
  }
  return members;
}

std::vector<pid_t> OwnChildren() {
  std::vector<pid_t> children;
  for (pid_t thread : NumbersIn("/proc/self/task")) {
    std::ifstream file(fmt::format("/proc/self/task/{}/children", thread));
    for (pid_t pid; file >> pid;) children.push_back(pid);
  }
  return children;
}

bool StartedWith(pid_t pid, const std::vector<std::string>& entries) {
  if (entries.empty()) return false;
  std::ifstream file(fmt::format("/proc/{}/environ", pid));
  std::set<std::string> environment;
  for (std::string entry; std::getline(file, entry, '\0');) environment.insert(entry);
  return std::all_of(entries.begin(), entries.end(),
                     [&](const std::string& entry) { return environment.contains(entry); });
}

std::vector<std::string> OwnEntries(const std::vector<std::string>& environment) {
  std::set<std::string_view> ours;
  for (char** entry = environ; *entry != nullptr; ++entry) ours.insert(*entry);
  std::vector<std::string> own;
  for (const std::string& entry : environment) {
    if (!ours.contains(entry)) own.push_back(entry);
  }
  return own;
}

}  // namespace muster::launcher
