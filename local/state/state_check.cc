// SPDX-License-Identifier: Apache-2.0
#include "local/state/state_check.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/quoted.h"
#include "base/text.h"

namespace muster::local {
namespace {

constexpr rlim_t kMostOpenFiles = 65'536;  // with more, programs that close all possible descriptors take long

Status Unfit(const std::string& folder, std::string_view why) {
  return absl::FailedPreconditionError(
      fmt::format("{}: {}; set XDG_STATE_HOME to a folder of another file system, for logs and volumes", folder, why));
}

}  // namespace

Status CheckStateFolder(const std::string& folder) {
  struct statvfs system {};
  if (statvfs(folder.c_str(), &system) != 0) return ErrnoStatus(errno, folder);
  if ((system.f_flag & ST_RDONLY) != 0) return Unfit(folder, "its file system is read-only");
  if ((system.f_flag & ST_NOEXEC) != 0) {
    return Unfit(folder, "its file system is mounted noexec, and each pod's agent is a program there");
  }
  const uint64_t room = uint64_t{system.f_bavail} * system.f_frsize;
  if (room < kLeastRoom) {
    return Unfit(folder,
                 fmt::format("it has room for {} MiB, and a run needs {} MiB at least", room >> 20, kLeastRoom >> 20));
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) return Unfit(folder, "it is not writable");
  std::error_code error;
  if (std::filesystem::canonical(folder, error).string().starts_with("/dev/shm/")) {
    return Unfit(folder, "each container has a /dev/shm of its own, and would not see this folder");
  }
  return absl::OkStatus();
}

StatusOr<std::string> WorkFolder(const std::string& folder) {
  std::error_code error;
  const std::string whole = std::filesystem::canonical(folder.empty() ? "." : folder, error).string();
  const auto wrong = [&folder](std::string_view why) {
    return absl::InvalidArgumentError(folder.empty() ? fmt::format("the current folder: {}; give one by --workdir", why)
                                                     : fmt::format("--workdir {}: {}", Quoted(folder), why));
  };
  if (error) return wrong(error.message());
  if (!std::filesystem::is_directory(whole, error)) return wrong("it is not a folder");
  if (access(whole.c_str(), R_OK | X_OK) != 0) return wrong("it cannot be entered and read");
  return whole;
}

void RaiseOpenFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kMostOpenFiles));
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace muster::local
