// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/process_stacks.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/process_stat.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr size_t kParent = 4, kGroup = 5;  // fields of a process, proc(5)

std::optional<ProcessStat> ReadStat(const HostFs& fs, const std::string& folder) {
  const auto text = fs.Read(folder + "/stat");
  return text ? ProcessStat::Parse(*text) : std::nullopt;
}

std::string_view StateName(char state) {
  switch (state) {
    case 'R':
      return "running";
    case 'S':
      return "sleeping";
    case 'D':
      return "uninterruptible, in the kernel";
    case 'T':
      return "stopped by a signal";
    case 't':
      return "stopped by a debugger";
    case 'Z':
      return "zombie";
    case 'I':
      return "idle";
    default:
      return "unknown";
  }
}

// One printable line or several, each indented, at most `limit` bytes.
std::string Shown(std::string_view text, size_t limit, std::string_view indent) {
  bool cut = text.size() > limit;
  std::string shown;
  for (std::string_view line : Split(text.substr(0, limit), '\n')) {
    if (Strip(line).empty()) continue;
    shown += indent;
    for (char c : line) shown += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    shown += '\n';
  }
  if (cut) shown += fmt::format("{}... cut\n", indent);
  return shown;
}

std::string OneLine(const std::optional<std::string>& text, size_t limit) {
  if (!text) return "not readable";
  std::string line(Strip(*text).substr(0, limit));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return line.empty() ? "none" : line;
}

std::string DescribeThread(const HostFs& fs, const std::string& folder, const std::string& id, size_t limit) {
  auto stat = ReadStat(fs, folder);
  if (!stat) return fmt::format("  thread {}: gone\n", id);
  std::string channel = OneLine(fs.Read(folder + "/wchan"), limit);
  std::string text = fmt::format("  thread {} ({}): {} ({}), wchan {}, syscall {}\n", id, OneLine(stat->name(), 64),
                                 stat->state(), StateName(stat->state()), channel == "0" ? "none" : channel,
                                 OneLine(fs.Read(folder + "/syscall"), limit));
  auto stack = fs.Read(folder + "/stack");
  if (!stack) return text + "    kernel stack: not readable (it needs CAP_SYS_ADMIN)\n";
  return text + Shown(*stack, limit, "    ");
}

}  // namespace

std::vector<pid_t> ProcessTree(const HostFs& fs, pid_t root) {
  std::map<pid_t, ProcessStat> all;
  for (const std::string& name : fs.List("/proc")) {
    auto pid = ParseInt(name);
    if (!pid) continue;
    if (auto stat = ReadStat(fs, "/proc/" + name)) all.emplace(static_cast<pid_t>(*pid), *std::move(stat));
  }
  std::multimap<pid_t, pid_t> children;
  std::set<pid_t> found;
  std::vector<pid_t> look = {root};
  for (const auto& [pid, stat] : all) {
    children.emplace(static_cast<pid_t>(stat.Field(kParent).value_or(0)), pid);
    if (stat.Field(kGroup) == root) look.push_back(pid);  // orphaned, but still in the group of `root`
  }
  while (!look.empty()) {
    pid_t pid = look.back();
    look.pop_back();
    if (!all.contains(pid) || !found.insert(pid).second) continue;
    auto [first, last] = children.equal_range(pid);
    for (auto child = first; child != last; ++child) look.push_back(child->second);
  }
  std::vector<pid_t> tree(found.begin(), found.end());
  std::stable_partition(tree.begin(), tree.end(), [&](pid_t pid) { return pid == root; });
  return tree;
}

void DescribeTree(const HostFs& fs, pid_t root, const StackLimits& limits,
                  const std::function<void(std::string_view)>& write) {
  std::vector<pid_t> tree = ProcessTree(fs, root);
  if (tree.empty()) return write(fmt::format("process {}: gone\n", root));
  if (tree.size() > limits.processes) {
    write(fmt::format("{} processes, the first {} follow\n", tree.size(), limits.processes));
    tree.resize(limits.processes);
  }
  for (pid_t pid : tree) {
    std::string folder = fmt::format("/proc/{}", pid);
    auto stat = ReadStat(fs, folder);
    if (!stat) {
      write(fmt::format("process {}: gone\n", pid));
      continue;
    }
    write(fmt::format("process {} ({}): {} ({}), parent {}, group {}\n", pid, OneLine(stat->name(), 64), stat->state(),
                      StateName(stat->state()), stat->Field(kParent).value_or(0), stat->Field(kGroup).value_or(0)));
    size_t shown = 0;
    std::vector<std::string> threads = fs.List(folder + "/task");
    for (const std::string& thread : threads) {
      if (++shown > limits.threads) {
        write(fmt::format("  ... {} threads more\n", threads.size() - limits.threads));
        break;
      }
      write(DescribeThread(fs, fmt::format("{}/task/{}", folder, thread), thread, limits.file_bytes));
    }
  }
  write("command lines:\n");
  for (pid_t pid : tree) {
    auto line = fs.Read(fmt::format("/proc/{}/cmdline", pid));
    write(fmt::format("  {}: {}\n", pid, OneLine(line, limits.file_bytes)));
  }
}

bool IsPython(pid_t pid) {
  char target[4096];
  ssize_t length = readlink(fmt::format("/proc/{}/exe", pid).c_str(), target, sizeof target);
  if (length <= 0) return false;
  std::string_view path(target, static_cast<size_t>(length));
  return path.substr(path.rfind('/') + 1).starts_with("python");
}

}  // namespace muster::agent
