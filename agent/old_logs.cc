// SPDX-License-Identifier: Apache-2.0
#include "agent/old_logs.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/host_fs.h"
#include "base/log.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr char kMark[] = ".alive";
constexpr size_t kKept = 5;
constexpr int64_t kLongAgo = int64_t{7} * 24 * 3600;  // seconds
constexpr int kMostAtOnce = 16;                       // so that no start takes long
constexpr int kOpen = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

bool IsName(std::string_view name) {
  const std::string_view prefix = kLogFolderPrefix;
  if (!name.starts_with(prefix) || name.size() != prefix.size() + 6) return false;
  name.remove_prefix(prefix.size());
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
}

// Opens the mark of a folder if both are this user's; `facts` gets those of the mark.
Descriptor OpenMark(const std::string& folder, struct stat* facts) {
  const Descriptor opened(open(folder.c_str(), kOpen | O_DIRECTORY));
  if (!opened.ok() || fstat(opened.get(), facts) != 0 || facts->st_uid != geteuid()) return Descriptor();
  Descriptor mark(openat(opened.get(), kMark, kOpen));
  const bool good = mark.ok() && fstat(mark.get(), facts) == 0 && S_ISREG(facts->st_mode) && facts->st_uid == geteuid();
  return good ? std::move(mark) : Descriptor();
}

}  // namespace

LogMark::LogMark(const std::string& folder)
    : path_(fmt::format("{}/{}", folder, kMark)),
      file_(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) {
  if (!file_.ok() || flock(file_.get(), LOCK_SH | LOCK_NB) == 0) return;
  unlink(path_.c_str());  // without locks (some network file systems) other runs could not see that this one lives
  file_.Close();
}

void LogMark::End(bool forget) {
  if (!file_.ok()) return;
  if (forget) {
    unlink(path_.c_str());
  } else {
    futimens(file_.get(), nullptr);
  }
}

std::vector<LogFolder> SuperfluousLogs(std::vector<LogFolder> folders, int64_t now) {
  std::stable_sort(folders.begin(), folders.end(),
                   [](const LogFolder& a, const LogFolder& b) { return a.ended > b.ended; });
  folders.erase(folders.begin(), folders.begin() + static_cast<ptrdiff_t>(std::min(kKept, folders.size())));
  std::erase_if(folders, [now](const LogFolder& folder) { return now - folder.ended <= kLongAgo; });
  return folders;
}

void RemoveOldLogs(const std::string& above, const LogMark& own) {
  struct stat facts {};
  if (!own.file_.ok() || fstat(own.file_.get(), &facts) != 0) return;
  const int64_t now = facts.st_mtim.tv_sec;
  std::vector<LogFolder> folders;
  for (const std::string& name : HostFs().List(above)) {
    if (!IsName(name) || !OpenMark(fmt::format("{}/{}", above, name), &facts).ok()) continue;
    folders.push_back({name, facts.st_mtim.tv_sec});
  }
  int removed = 0;
  for (const LogFolder& old : SuperfluousLogs(std::move(folders), now)) {
    const std::string folder = fmt::format("{}/{}", above, old.name);
    const Descriptor mark = OpenMark(folder, &facts);
    if (!mark.ok() || flock(mark.get(), LOCK_EX | LOCK_NB) != 0) continue;  // its run lives
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    if (!error && ++removed == kMostAtOnce) break;
  }
  if (removed > 0) {
    log::Info(fmt::format("{} of runs that ended more than a week ago removed from {}", Counted(removed, "log folder"),
                          above));
  }
}

}  // namespace muster::agent
