#include "launcher/log_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/text.h"

namespace muster::launcher {
namespace {

bool NoSpace(int error) { return error == ENOSPC || error == EDQUOT; }

// 0 or errno.
int MakeFolders(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    if (mkdir(path.substr(0, slash).c_str(), 0777) == -1 && errno != EEXIST && errno != EROFS) return errno;
  }
  return 0;
}

}  // namespace

StatusOr<std::shared_ptr<LogFile>> LogFile::Open(const std::string& path, bool truncate) {
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | (truncate ? O_TRUNC : 0);
  int descriptor = open(path.c_str(), flags, 0666);
  int error = descriptor == -1 ? errno : 0;
  if (error == ENOENT) {
    error = MakeFolders(path);
    if (error == 0) {
      descriptor = open(path.c_str(), flags, 0666);
      error = descriptor == -1 ? errno : 0;
    }
  }
  if (NoSpace(error)) {
    log::Warning("a log file cannot be made, its lines are dropped", {{"file", path}, {"error", strerror(error)}});
  } else if (error != 0) {
    return ErrnoStatus(error, fmt::format("opening the log file '{}'", path));
  }
  return std::shared_ptr<LogFile>(new LogFile(path, descriptor));
}

LogFile::~LogFile() {
  SayDropped();
  if (descriptor_ != -1) close(descriptor_);
}

void LogFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = -1;
    if (descriptor_ == -1) {
      errno = ENOSPC;
    } else {
      written = write(descriptor_, bytes.data(), bytes.size());
    }
    if (written == -1 && errno == EINTR) continue;
    if (written <= 0) {
      if (dropped_bytes_ == 0 && descriptor_ != -1) {
        log::Warning("a log file cannot be written, its lines are dropped until it can",
                     {{"file", path_}, {"error", strerror(errno)}});
      }
      dropped_bytes_ += bytes.size();
      dropped_lines_ += std::count(bytes.begin(), bytes.end(), '\n');
      return;
    }
    SayDropped();
    bytes.remove_prefix(written);
  }
}

void LogFile::SayDropped() {
  if (dropped_bytes_ == 0) return;
  log::Warning(fmt::format("a log file lacks {} ({} bytes): they were dropped while it could not be written",
                           Counted(static_cast<int64_t>(dropped_lines_), "line"), dropped_bytes_),
               {{"file", path_}});
  dropped_bytes_ = 0;
  dropped_lines_ = 0;
}

}  // namespace muster::launcher
