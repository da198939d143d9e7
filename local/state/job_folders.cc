// SPDX-License-Identifier: Apache-2.0
#include "local/state/job_folders.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/folder_names.h"
#include "base/quoted.h"
#include "base/replace_file.h"
#include "base/settings_file.h"
#include "base/state_folder.h"
#include "base/text.h"
#include "controller/api/nearest_names.h"
#include "local/state/left_processes.h"
#include "local/state/state_check.h"

namespace muster::local {

using namespace controller;

namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = "lock";
constexpr const char* kOutput = "output.log";
constexpr const char* kPods = "pods";
constexpr const char* kLogs = "logs";  // in a pod's folder
constexpr const char* kPrevious = "previous";
constexpr const char* kNextPrevious = "previous.new";
constexpr size_t kMostNames = 10;  // in an error

// Uses an open file description lock. F_OFD_GETLK only queries it, so a reader never keeps a run from starting.
int AskLock(int fd, int command, struct flock* lock) {
  *lock = {};
  lock->l_type = F_WRLCK;
  lock->l_whence = SEEK_SET;
  return fcntl(fd, command, lock);
}

bool IsHeld(const std::string& folder) {
  const Descriptor file(open(fmt::format("{}/{}", folder, kLock).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct flock lock;
  return file.ok() && AskLock(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

// FailedPrecondition: a run holds the lock.
StatusOr<Descriptor> Lock(const std::string& job, const std::string& folder) {
  const std::string path = fmt::format("{}/{}", folder, kLock);
  Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file.ok()) return ErrnoStatus(errno, path);
  struct flock lock;
  if (AskLock(file.get(), F_OFD_SETLK, &lock) == 0) return file;
  if (errno != EAGAIN && errno != EACCES) return ErrnoStatus(errno, path);
  return absl::FailedPreconditionError(fmt::format(
      "a job {} runs here already; `muster stop {}` ends it, or give this one another name", Quoted(job), job));
}

StatusOr<RunRecord> ReadRecord(const std::string& folder) {
  const std::string path = RunRecordPath(folder);
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadSettingsFile(path));
  auto record = ParseRunRecord(text);
  if (!record.ok()) return Annotate(record.status(), path);
  return record;
}

FoundJob Found(const std::string& state, const std::string& name) {
  const std::string folder = JobFolder(state, name);
  // Queries the lock before it reads the record: a run that ends in between has written its end.
  const bool runs = IsHeld(folder);
  return {.name = name, .folder = folder, .runs = runs, .record = ReadRecord(folder)};
}

StatusOr<std::vector<std::string>> JobNames(const std::string& state) {
  const std::string folder = state + "/jobs";
  auto names = NamesIn(AT_FDCWD, folder, folder);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  if (!names.ok()) return names.status();
  std::sort(names->begin(), names->end());
  return names;
}

void Move(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!fs::exists(from, error)) return;
  fs::rename(from, to, error);
  if (error) fs::remove_all(from, error);
}

// Keeps the logs of the previous run, and of no older one. If it is killed at any point, the next start continues.
void KeepPrevious(const std::string& folder) {
  const fs::path own = folder, next = own / kNextPrevious, previous = own / kPrevious;
  std::error_code error;
  const bool has_pods = fs::exists(own / kPods, error) && !fs::is_empty(own / kPods, error);
  if (!fs::exists(RunRecordPath(folder), error) && !has_pods && !fs::exists(next, error)) return;
  RemoveVolumes(folder);
  fs::create_directories(next, error);
  for (const fs::path& path : {own / kPods, fs::path(AttemptsFolder(folder)), fs::path(ReportPath(folder)),
                               own / kOutput, fs::path(RunRecordPath(folder))}) {
    Move(path, next / path.filename());
  }
  fs::remove_all(previous, error);
  fs::rename(next, previous, error);
}

}  // namespace

StatusOr<std::vector<FoundJob>> FindJobs(const std::string& state) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, JobNames(state));
  std::vector<FoundJob> jobs;
  for (const std::string& name : names) jobs.push_back(Found(state, name));
  return jobs;
}

StatusOr<FoundJob> FindJob(const std::string& state, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> names, JobNames(state));
  if (std::find(names.begin(), names.end(), name) != names.end()) return Found(state, name);
  if (const std::vector<std::string> nearest = NearestNames(name, names); !nearest.empty()) {
    return absl::NotFoundError(
        fmt::format("no job {} has run here; the nearest names are {}", Quoted(name), Join(nearest, ", ")));
  }
  const size_t count = names.size();
  names.resize(std::min(count, kMostNames));
  return absl::NotFoundError(fmt::format(
      "no job {} has run here; {}", Quoted(name),
      names.empty() ? fmt::format("there is none in {}/jobs", state)
                    : fmt::format("these have: {}{}", Join(names, ", "), count > kMostNames ? " ..." : "")));
}

StatusOr<FoundJob> PreviousRun(const FoundJob& job) {
  const std::string folder = fmt::format("{}/{}", job.folder, kPrevious);
  std::error_code error;
  if (!fs::exists(folder, error)) return absl::NotFoundError(fmt::format("{} has no earlier run", job.name));
  return FoundJob{.name = job.name, .folder = folder, .record = ReadRecord(folder)};
}

std::string OutputPath(const std::string& job_folder) { return fmt::format("{}/{}", job_folder, kOutput); }

StatusOr<TakenFolder> TakeJobFolder(const std::string& state, const std::string& job) {
  const std::string folder = JobFolder(state, job);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return absl::UnavailableError(
        fmt::format("{}: it cannot be made: {}; set XDG_STATE_HOME to a writable folder, for logs and volumes", folder,
                    error.message()));
  }
  MUSTER_RETURN_IF_ERROR(CheckStateFolder(folder));
  TakenFolder taken{.path = folder, .lock = Descriptor()};
  MUSTER_ASSIGN_OR_RETURN(taken.lock, Lock(job, folder));
  const FoundJob before{.name = job, .folder = folder, .record = ReadRecord(folder)};
  if (before.lost()) {
    taken.lost = *before.record;
    MUSTER_RETURN_IF_ERROR(KillRun(before.record->id));
  }
  KeepPrevious(folder);
  return taken;
}

StatusOr<Descriptor> MakePodsFolder(const std::string& job_folder) {
  const std::string path = fmt::format("{}/{}", job_folder, kPods);
  std::error_code error;
  fs::create_directories(path, error);
  Descriptor folder(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.ok()) return ErrnoStatus(errno, path);
  return folder;
}

Status ClearLost(const FoundJob& job) {
  MUSTER_ASSIGN_OR_RETURN(const Descriptor lock, Lock(job.name, job.folder));
  MUSTER_RETURN_IF_ERROR(KillRun(job.record->id));
  RemoveVolumes(job.folder);
  return absl::OkStatus();
}

Status RemoveJob(const FoundJob& job) {
  MUSTER_ASSIGN_OR_RETURN(const Descriptor lock, Lock(job.name, job.folder));
  if (job.lost()) MUSTER_RETURN_IF_ERROR(KillRun(job.record->id));
  std::error_code error;
  fs::remove_all(job.folder, error);
  if (error) return absl::UnavailableError(fmt::format("{}: it cannot be removed: {}", job.folder, error.message()));
  return absl::OkStatus();
}

void RemoveVolumes(const std::string& job_folder) {
  std::error_code error;
  for (const char* name : {"hosts", "drills"}) fs::remove_all(fs::path(job_folder) / name, error);
  RemoveVolumesBelow(fs::path(job_folder) / kPods);
}

void RemoveVolumesBelow(const std::string& path) {
  const fs::path pods = path;
  std::error_code error;
  for (const std::string& pod : NamesIn(AT_FDCWD, pods, "").value_or(std::vector<std::string>())) {
    for (const std::string& name : NamesIn(AT_FDCWD, pods / pod, "").value_or(std::vector<std::string>())) {
      if (name != kLogs) fs::remove_all(pods / pod / name, error);
    }
  }
}

Status WriteRunRecord(const std::string& job_folder, const RunRecord& record) {
  const std::string path = RunRecordPath(job_folder);
  return ReplaceFile(path, ToJson(record), {.temporary = path + ".new"});
}

}  // namespace muster::local
