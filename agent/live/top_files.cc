// SPDX-License-Identifier: Apache-2.0
#include "agent/live/top_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

#include "agent/report/job_record.h"
#include "base/descriptors.h"
#include "base/host_fs.h"
#include "base/host_names.h"
#include "base/process_stat.h"
#include "base/settings_file.h"
#include "base/state_folder.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr int kMostAncestors = 6;  // a standby's worker is no child of the agent
constexpr size_t kParentField = 4;
constexpr off_t kMostTail = 64 << 10;

bool IsFile(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

pid_t ParentOf(pid_t pid) {
  const auto text = HostFs().Read(fmt::format("/proc/{}/stat", pid));
  const auto stat = text ? ProcessStat::Parse(*text) : std::nullopt;
  return stat && !stat->dead() ? static_cast<pid_t>(stat->Field(kParentField).value_or(0)) : 0;
}

// "/logs/attempt_0/2/stdout.log" of the descriptor; empty: it is no path.
std::string LinkOf(const std::string& descriptor) {
  std::array<char, PATH_MAX> target;
  const ssize_t size = readlink(descriptor.c_str(), target.data(), target.size());
  return size > 0 && target[0] == '/' ? std::string(target.data(), static_cast<size_t>(size)) : "";
}

void AddFile(const std::string& path, std::vector<std::string>* files) {
  const bool known = std::find(files->begin(), files->end(), path) != files->end();
  if (!path.empty() && !known && IsFile(path)) files->push_back(path);
}

// The files "<local rank>/stdout.log" and "stderr.log" that the agent holds open.
void AddFilesOfAgent(pid_t agent, int local_rank, std::vector<std::string>* files) {
  const std::string folder = fmt::format("/proc/{}/fd", agent);
  for (const std::string& descriptor : HostFs().List(folder)) {
    const std::string path = LinkOf(fmt::format("{}/{}", folder, descriptor));
    for (const char* stream : {"stdout", "stderr"}) {
      if (path.ends_with(fmt::format("/{}/{}.log", local_rank, stream))) AddFile(path, files);
    }
  }
}

// The newest attempt below the folder of a pod: "<run id>/attempt_N".
std::string NewestAttempt(const std::string& pod_folder) {
  constexpr std::string_view kAttempt = "attempt_";
  std::string newest;
  int64_t highest = -1;
  for (const std::string& run : HostFs().List(pod_folder)) {
    const std::string folder = fmt::format("{}/{}", pod_folder, run);
    for (const std::string& name : HostFs().List(folder)) {
      const auto number = name.starts_with(kAttempt) ? ParseInt(name.substr(kAttempt.size())) : std::nullopt;
      if (!number || *number <= highest) continue;
      highest = *number;
      newest = fmt::format("{}/{}", folder, name);
    }
  }
  return newest;
}

void AddFilesOfJob(const TopRow& row, const std::string& job_folder, std::vector<std::string>* files) {
  const auto text = ReadSettingsFile(RunRecordPath(job_folder));
  const auto record = text.ok() ? ParseJobRecord(*text) : text.status();
  if (!record.ok() || row.node == nullptr || row.worker == nullptr) return;
  std::string pod_folder;
  for (const JobPod& pod : record->pods) {
    const bool is_part_of_path =
        !pod.name.empty() && pod.name.front() != '.' && pod.name.find('/') == std::string::npos;
    if (pod.host == row.node->host && is_part_of_path) pod_folder = AttemptsFolder(job_folder) + "/" + pod.name;
  }
  if (pod_folder.empty()) return;
  const std::string attempt = NewestAttempt(pod_folder);
  for (const char* stream : {"stdout", "stderr"}) {
    AddFile(fmt::format("{}/{}/{}.log", attempt, row.worker->local_rank, stream), files);
  }
}

}  // namespace

pid_t LocalProcessOf(const TopRow& row) {
  const bool here = row.node != nullptr && row.worker != nullptr && row.node->host == HostName();
  if (!here || row.worker->pid <= 1 || row.node->pid <= 1) return 0;
  auto ancestor = static_cast<pid_t>(row.worker->pid);
  for (int i = 0; i < kMostAncestors && ancestor > 1; ++i) {
    ancestor = ParentOf(ancestor);
    if (ancestor == row.node->pid) return static_cast<pid_t>(row.worker->pid);
  }
  return 0;
}

std::vector<std::string> LogFilesOf(const TopRow& row, const std::string& job_folder) {
  std::vector<std::string> files;
  if (!job_folder.empty()) AddFilesOfJob(row, job_folder, &files);
  const pid_t process = LocalProcessOf(row);
  if (process == 0) return files;
  AddFilesOfAgent(static_cast<pid_t>(row.node->pid), row.worker->local_rank, &files);
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    AddFile(LinkOf(fmt::format("/proc/{}/fd/{}", process, descriptor)), &files);
  }
  return files;
}

std::vector<std::string> LastLinesOf(const std::string& path, size_t lines) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!file.ok() || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  std::string text(static_cast<size_t>(std::min(facts.st_size, kMostTail)), '\0');
  const ssize_t got = pread(file.get(), text.data(), text.size(), facts.st_size - static_cast<off_t>(text.size()));
  if (got <= 0) return {};
  text.resize(static_cast<size_t>(got));
  if (text.ends_with('\n')) text.pop_back();
  const std::vector<std::string_view> all = Split(text, '\n');
  const size_t first = all.size() - std::min(all.size(), lines);
  return {all.begin() + static_cast<std::ptrdiff_t>(first), all.end()};
}

}  // namespace muster::agent
