// SPDX-License-Identifier: Apache-2.0
#include "base/folder_watch.h"

#include <dirent.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/attach.h"
#include "base/text.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kPause{1};  // between two looks without inotify
constexpr int kMostEntries = 64;           // of the folder, that are looked at besides the file

// Adds to `mark` what a change of the file at `path` changes: it appears, is written, or another one replaces it.
void AddMark(const std::string& path, uint64_t* mark) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) found.st_ino = static_cast<ino_t>(errno);
  for (const auto part :
       {static_cast<uint64_t>(found.st_dev), static_cast<uint64_t>(found.st_ino), static_cast<uint64_t>(found.st_size),
        static_cast<uint64_t>(found.st_ctim.tv_sec), static_cast<uint64_t>(found.st_ctim.tv_nsec)}) {
    *mark = (*mark ^ part) * 0x100000001b3;  // as in FNV-1a
  }
}
uint64_t MarkOf(const std::string& folder, const std::string& path) {
  uint64_t mark = 0;
  AddMark(folder, &mark);
  AddMark(path, &mark);
  DIR* const entries = opendir(folder.c_str());
  for (int i = 0; entries != nullptr && i < kMostEntries; ++i) {
    const dirent* const entry = readdir(entries);
    if (entry == nullptr) break;
    AddMark(folder + "/" + entry->d_name, &mark);
  }
  if (entries != nullptr) closedir(entries);
  return mark;
}

}  // namespace

Status InotifyStatus(int error, std::string_view what) {
  const Status status = absl::ErrnoToStatus(error, absl::string_view(what.data(), what.size()));
  if (error == EMFILE) {
    return WithRemedy(status, "raise the machine's fs.inotify.max_user_instances, or the limit of open files");
  }
  if (error == ENOSPC) return WithRemedy(status, "raise the machine's fs.inotify.max_user_watches");
  return ErrnoStatus(error, what);
}

class FolderWatch::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& loop, std::string path, std::function<void()> changed)
      : path_(std::move(path)), events_(loop), timer_(loop), changed_(std::move(changed)) {}

  Status Begin(const std::string& what) {
    const size_t slash = path_.rfind('/');
    folder_ = slash == std::string::npos ? "." : slash == 0 ? "/" : path_.substr(0, slash);
    struct stat found {};
    const int missing = stat(folder_.c_str(), &found) != 0 ? errno : S_ISDIR(found.st_mode) ? 0 : ENOTDIR;
    if (missing != 0) {
      return ErrnoStatus(missing,
                         fmt::format("{}: cannot watch the folder {}; it must be there at the start", what, folder_));
    }
    constexpr uint32_t kChanges = IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_CLOSE_WRITE | IN_ONLYDIR;
    Descriptor inotify(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (inotify.ok() && inotify_add_watch(inotify.get(), folder_.c_str(), kChanges) >= 0) {
      MUSTER_RETURN_IF_ERROR(Attach(events_, std::move(inotify), fmt::format("{}: cannot watch its folder", what)));
    }
    boost::asio::post(timer_.get_executor(), [self = shared_from_this()] { self->Look(); });
    return absl::OkStatus();
  }

  void Close() {
    changed_ = nullptr;
    boost::system::error_code ignored;
    events_.close(ignored);
    timer_.cancel();
  }

 private:
  void Look() {
    if (!changed_) return;
    if (!events_.is_open()) mark_ = MarkOf(folder_, path_);
    const auto changed = changed_;  // a copy, since the call may end the watch
    changed();
    if (!changed_) return;
    if (!events_.is_open()) return LookLater();
    events_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                       [self = shared_from_this()](boost::system::error_code error) {
                         if (error) return;
                         char buffer[4096];
                         while (read(self->events_.native_handle(), buffer, sizeof buffer) > 0) {
                         }
                         self->Look();
                       });
  }
  void LookLater() {
    timer_.expires_after(kPause);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code error) {
      if (error || !self->changed_) return;
      if (MarkOf(self->folder_, self->path_) != self->mark_) return self->Look();
      self->LookLater();
    });
  }

  const std::string path_;
  std::string folder_;
  uint64_t mark_ = 0;                             // at the last look
  boost::asio::posix::stream_descriptor events_;  // of inotify; closed: the folder is looked at
  boost::asio::steady_timer timer_;
  std::function<void()> changed_;
};

StatusOr<std::unique_ptr<FolderWatch>> FolderWatch::Begin(boost::asio::io_context& loop, const std::string& path,
                                                          const std::string& what, std::function<void()> changed) {
  auto impl = std::make_shared<Impl>(loop, path, std::move(changed));
  MUSTER_RETURN_IF_ERROR(impl->Begin(what));
  return std::unique_ptr<FolderWatch>(new FolderWatch(std::move(impl)));
}

FolderWatch::~FolderWatch() { impl_->Close(); }

}  // namespace muster
