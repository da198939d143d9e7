#include "base/folder_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "base/attach.h"
#include "base/text.h"

namespace muster {

class FolderWatch::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& loop, std::function<void()> changed) : events_(loop), changed_(std::move(changed)) {}

  Status Begin(const std::string& path, const std::string& what) {
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0) return ErrnoStatus(errno, fmt::format("{}: cannot watch its folder (inotify)", what));
    MUSTER_RETURN_IF_ERROR(Attach(events_, Descriptor(fd), fmt::format("{}: cannot watch its folder", what)));
    size_t slash = path.rfind('/');
    std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
    constexpr uint32_t kChanges = IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_CLOSE_WRITE | IN_ONLYDIR;
    if (inotify_add_watch(fd, folder.c_str(), kChanges) < 0) {
      return ErrnoStatus(errno,
                         fmt::format("{}: cannot watch the folder {}; it must be there at the start", what, folder));
    }
    boost::asio::post(events_.get_executor(), [self = shared_from_this()] { self->Look(); });
    return absl::OkStatus();
  }

  void Close() {
    changed_ = nullptr;
    boost::system::error_code ignored;
    events_.close(ignored);
  }

 private:
  void Look() {
    if (!changed_) return;
    const auto changed = changed_;  // a copy, since the call may end the watch
    changed();
    if (!changed_) return;
    events_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                       [self = shared_from_this()](boost::system::error_code error) {
                         if (error) return;
                         char buffer[4096];
                         while (read(self->events_.native_handle(), buffer, sizeof buffer) > 0) {
                         }
                         self->Look();
                       });
  }

  boost::asio::posix::stream_descriptor events_;
  std::function<void()> changed_;
};

StatusOr<std::unique_ptr<FolderWatch>> FolderWatch::Begin(boost::asio::io_context& loop, const std::string& path,
                                                          const std::string& what, std::function<void()> changed) {
  auto impl = std::make_shared<Impl>(loop, std::move(changed));
  MUSTER_RETURN_IF_ERROR(impl->Begin(path, what));
  return std::unique_ptr<FolderWatch>(new FolderWatch(std::move(impl)));
}

FolderWatch::~FolderWatch() { impl_->Close(); }

}  // namespace muster
