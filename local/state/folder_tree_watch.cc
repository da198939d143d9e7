// SPDX-License-Identifier: Apache-2.0
#include "local/state/folder_tree_watch.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/folder_watch.h"
#include "base/text.h"

namespace muster::local {

namespace fs = std::filesystem;

StatusOr<FolderTreeWatch> FolderTreeWatch::Begin(const std::string& folder, int levels) {
  Descriptor inotify(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify.ok()) return InotifyStatus(errno, fmt::format("{}: it cannot be watched (inotify)", folder));
  FolderTreeWatch watch(folder, levels, std::move(inotify));
  MUSTER_RETURN_IF_ERROR(watch.Add(folder, levels));
  return watch;
}

Status FolderTreeWatch::Next() {
  char buffer[4096];
  while (read(inotify_.get(), buffer, sizeof buffer) > 0) {
  }
  return Add(folder_, levels_);
}

// Adds the watch before it lists the folder. So a subfolder that comes in between is either listed or reported.
Status FolderTreeWatch::Add(const std::string& folder, int levels) {
  if (!watched_.contains(folder)) {
    constexpr uint32_t kChanges = IN_CREATE | IN_MOVED_TO | IN_MODIFY | IN_ONLYDIR | IN_DONT_FOLLOW;
    if (inotify_add_watch(inotify_.get(), folder.c_str(), kChanges) < 0) {
      if (errno == ENOENT || errno == ENOTDIR) return absl::OkStatus();
      return InotifyStatus(errno, fmt::format("{}: it cannot be watched (inotify)", folder));
    }
    watched_.insert(folder);
  }
  if (levels == 0) return absl::OkStatus();
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (it->is_symlink(gone) || !it->is_directory(gone)) continue;
    MUSTER_RETURN_IF_ERROR(Add(it->path().string(), levels - 1));
  }
  return absl::OkStatus();
}

}  // namespace muster::local
