// SPDX-License-Identifier: Apache-2.0
#include "local/container/limits.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/descriptors.h"
#include "base/quoted.h"
#include "base/replace_file.h"
#include "base/text.h"

namespace muster::local {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPeriod = 100'000, kShortest = 1000;  // microseconds
constexpr char kPrefix[] = "muster-local.";
constexpr char kRemedy[] = "start it by `systemd-run --user --scope -p Delegate=yes muster local ...`, or as root";

// Writes a file of cgroupfs in one write(2). Never creates it.
Status Put(const std::string& path, const std::string& text) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.ok() || write(file.get(), text.data(), text.size()) < 0) {
    return ErrnoStatus(errno, fmt::format("{}: {}", path, text));
  }
  return absl::OkStatus();
}

std::vector<std::string> WordsIn(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> words;
  for (std::string word; file >> word;) words.push_back(word);
  return words;
}

bool HasBoth(const std::string& path) {
  const std::vector<std::string> words = WordsIn(path);
  return std::count(words.begin(), words.end(), "cpu") > 0 && std::count(words.begin(), words.end(), "memory") > 0;
}

Status MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return absl::OkStatus();
  return ErrnoStatus(errno, path);
}

Status GiveControllers(const std::string& folder) {
  if (HasBoth(folder + "/cgroup.subtree_control")) return absl::OkStatus();
  return Put(folder + "/cgroup.subtree_control", "+cpu +memory");
}

Status Limit(const std::string& folder, const ResourceLimits& limits) {
  if (limits.milli_cpus) MUSTER_RETURN_IF_ERROR(Put(folder + "/cpu.max", CpuMax(*limits.milli_cpus)));
  if (!limits.memory_bytes) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(Put(folder + "/memory.max", std::to_string(*limits.memory_bytes)));
  // Some kernels lack one of these files.
  Put(folder + "/memory.swap.max", "0").IgnoreError();
  Put(folder + "/memory.oom.group", "1").IgnoreError();
  return absl::OkStatus();
}

// Removes the cgroup and those below it, except those with processes. rmdir(2) removes the kernel's files with them.
bool RemoveTree(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored) && !it->is_symlink(ignored)) RemoveTree(it->path().string());
  }
  return rmdir(folder.c_str()) == 0 || errno == ENOENT;
}

// The path of this process' cgroup below the mount; nullopt: there is no cgroup v2.
std::optional<std::string> OwnPath(const std::string& lines) {
  for (const std::string_view line : Split(lines, '\n')) {
    if (!line.starts_with("0::/")) continue;
    return line == "0::/" ? std::string() : std::string(line.substr(3));
  }
  return std::nullopt;
}

}  // namespace

std::string CpuMax(int64_t milli_cpus) {
  return fmt::format("{} {}", std::max(milli_cpus * (kPeriod / 1000), kShortest), kPeriod);
}

PodLimits::PodLimits(std::string mount, std::string own, std::string record, std::string job, pid_t companion)
    : mount_(std::move(mount)),
      own_(std::move(own)),
      record_(std::move(record)),
      job_(std::move(job)),
      companion_(companion) {}

PodLimits::~PodLimits() {
  if (folder_.empty()) return;
  const bool gone = RemoveTree(folder_);
  MoveBack();
  if (gone) unlink(record_.c_str());
}

void PodLimits::RemoveLeft() {
  std::ifstream file(record_);
  std::string left;
  if (!std::getline(file, left)) return;
  const fs::path path(left);
  // The file may be wrong: removes nothing but a cgroup with the prefix below the mount.
  if (!left.starts_with(mount_ + "/") || path.lexically_normal() != path ||
      !path.filename().string().starts_with(kPrefix)) {
    return;
  }
  Put(left + "/cgroup.kill", "1").IgnoreError();
  if (RemoveTree(left)) unlink(record_.c_str());
}

StatusOr<std::string> PodLimits::Make(const std::string& pod, const ResourceLimits& of_pod,
                                      const std::string& container, const ResourceLimits& limits) {
  if (!of_pod.any() && !limits.any()) return std::string();
  if (!opened_) opened_ = Open();
  MUSTER_RETURN_IF_ERROR(*opened_);
  const std::string around = fmt::format("{}/{}", folder_, pod), folder = fmt::format("{}/{}", around, container);
  MUSTER_RETURN_IF_ERROR(MakeFolder(around));
  MUSTER_RETURN_IF_ERROR(GiveControllers(around));
  MUSTER_RETURN_IF_ERROR(Limit(around, of_pod));
  MUSTER_RETURN_IF_ERROR(MakeFolder(folder));
  MUSTER_RETURN_IF_ERROR(Limit(folder, limits));
  return folder;
}

bool PodLimits::KilledForMemory(const std::string& folder) {
  const std::vector<std::string> words = WordsIn(folder + "/memory.events");
  const auto found = std::find(words.begin(), words.end(), "oom_kill");
  return words.end() - found > 1 && ParseInt(*(found + 1)).value_or(0) > 0;
}

void PodLimits::Remove(const std::string& folder) {
  if (rmdir(folder.c_str()) == 0) rmdir(fs::path(folder).parent_path().c_str());
}

Status PodLimits::Open() {
  MUSTER_ASSIGN_OR_RETURN(base_, FindBase());
  folder_ = fmt::format("{}/{}{}", base_, kPrefix, job_);
  MUSTER_RETURN_IF_ERROR(ReplaceFile(record_, folder_ + "\n", {.mode = 0644}));
  MUSTER_RETURN_IF_ERROR(MakeFolder(folder_));
  return GiveControllers(folder_);
}

StatusOr<std::string> PodLimits::FindBase() {
  const auto own = OwnPath(own_);
  if (!own || !HasBoth(mount_ + "/cgroup.controllers")) {
    return absl::FailedPreconditionError(
        fmt::format("{} is not a cgroup v2 with the controllers cpu and memory", mount_));
  }
  const std::vector<std::string> ours = {std::to_string(getpid()), companion_ == 0 ? "" : std::to_string(companion_)};
  for (std::string path = *own;; path.erase(path.rfind('/'))) {
    const std::string folder = mount_ + path;
    const std::vector<std::string> inside = WordsIn(folder + "/cgroup.procs");
    const bool writable = access(folder.c_str(), W_OK) == 0 && access((folder + "/cgroup.procs").c_str(), W_OK) == 0;
    if (writable && HasBoth(folder + "/cgroup.controllers")) {
      const auto is_ours = [&ours](const auto& pid) { return std::find(ours.begin(), ours.end(), pid) != ours.end(); };
      const bool alone = path == *own && !inside.empty() && std::all_of(inside.begin(), inside.end(), is_ours);
      if (alone) MUSTER_RETURN_IF_ERROR(MoveInto(folder));
      if (GiveControllers(folder).ok()) return folder;
      MoveBack();
    }
    if (path.empty()) break;
  }
  return absl::FailedPreconditionError(fmt::format(
      "no cgroup can be created with limits in {} or above it: each one belongs to another user, or has other "
      "processes; {}",
      Quoted(*own + "/"), kRemedy));
}

Status PodLimits::MoveInto(const std::string& base) {
  base_ = base;
  leaf_ = base + "/muster-local-self";  // cannot be the name of a job's cgroup
  MUSTER_RETURN_IF_ERROR(MakeFolder(leaf_));
  return MoveTo(leaf_);
}

Status PodLimits::MoveTo(const std::string& cgroup) {
  const std::string processes = cgroup + "/cgroup.procs";
  if (companion_ != 0) Put(processes, std::to_string(companion_)).IgnoreError();
  return Put(processes, "0");
}

void PodLimits::MoveBack() {
  if (leaf_.empty()) return;
  Put(base_ + "/cgroup.subtree_control", "-cpu -memory").IgnoreError();
  if (MoveTo(base_).ok()) rmdir(leaf_.c_str());
  leaf_.clear();
}

}  // namespace muster::local
