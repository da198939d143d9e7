#include "agent/preempt_notice.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "agent/preempt_url.h"
#include "base/attach.h"
#include "base/text.h"

namespace muster::agent {
namespace {

class Watching : public std::enable_shared_from_this<Watching> {
 public:
  Watching(boost::asio::io_context& loop, std::string path, PreemptNotice::Noticed noticed)
      : events_(loop), path_(std::move(path)), noticed_(std::move(noticed)) {}

  Status Start() {
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0) return ErrnoStatus(errno, "cannot watch for the preemption notice (inotify)");
    MUSTER_RETURN_IF_ERROR(Attach(events_, Descriptor(fd), "cannot watch for the preemption notice"));
    size_t slash = path_.rfind('/');
    std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path_.substr(0, slash);
    if (inotify_add_watch(fd, folder.c_str(), IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR) < 0) {
      return ErrnoStatus(
          errno,
          fmt::format("--preempt-file={}: cannot watch the folder {}; it must be there at the start", path_, folder));
    }
    boost::asio::post(events_.get_executor(), [self = shared_from_this()] { self->Look(); });
    return absl::OkStatus();
  }

  void Close() {
    noticed_ = nullptr;
    boost::system::error_code ignored;
    events_.close(ignored);
  }

 private:
  void Look() {
    if (!noticed_) return;
    if (access(path_.c_str(), F_OK) == 0) {
      auto noticed = std::exchange(noticed_, nullptr);
      return noticed(path_ + " appeared");
    }
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
  const std::string path_;
  PreemptNotice::Noticed noticed_;
};

class FileNotice final : public PreemptNotice {
 public:
  explicit FileNotice(std::shared_ptr<Watching> watching) : watching_(std::move(watching)) {}
  ~FileNotice() override { watching_->Close(); }

 private:
  std::shared_ptr<Watching> watching_;
};

}  // namespace

StatusOr<std::unique_ptr<PreemptNotice>> PreemptNotice::Await(boost::asio::io_context& loop, const std::string& path,
                                                              Duration interval, Noticed noticed) {
  if (path.find("://") != std::string::npos) return AwaitUrl(loop, path, interval, std::move(noticed));
  auto watching = std::make_shared<Watching>(loop, path, std::move(noticed));
  MUSTER_RETURN_IF_ERROR(watching->Start());
  return std::unique_ptr<PreemptNotice>(new FileNotice(std::move(watching)));
}

}  // namespace muster::agent
