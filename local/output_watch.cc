// SPDX-License-Identifier: Apache-2.0
#include "local/output_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/folder_watch.h"
#include "base/text.h"

namespace muster::local {

namespace asio = boost::asio;
namespace fs = std::filesystem;

class OutputWatch::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, int inotify, std::string folder, std::vector<std::string> texts,
       std::function<void(const std::string&)> found, WantedLines lines)
      : events_(loop, inotify),
        folder_(std::move(folder)),
        texts_(std::move(texts)),
        waited_(texts_),
        found_(std::move(found)),
        lines_(std::move(lines)) {
    if (lines_.take) texts_.push_back(lines_.text);
  }

  void Wait() {
    events_.async_read_some(asio::buffer(buffer_),
                            [weak = weak_from_this()](const boost::system::error_code& error, size_t) {
                              auto self = weak.lock();
                              if (error || !self) return;
                              self->Look();
                              self->Wait();
                            });
  }

  void End() {
    boost::system::error_code ignored;
    events_.close(ignored);
  }

  const std::vector<std::string>& texts() const { return texts_; }
  std::string FileOf(const std::string& pod) const { return fmt::format("{}/{}", folder_, pod); }

 private:
  // Reads the new lines of all files. A last line without a line feed is not complete yet, and waits.
  void Look() {
    std::error_code error;
    for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
      std::ifstream file(it->path(), std::ios::binary);
      std::streamoff& seen = seen_[it->path().string()];
      file.seekg(seen);
      std::string line;
      while (std::getline(file, line) && !file.eof()) {
        seen += static_cast<std::streamoff>(line.size()) + 1;
        if (lines_.take && line.find(lines_.text) != std::string::npos) lines_.take(it->path().filename(), line);
        Take(line);
      }
    }
  }

  void Take(const std::string& line) {
    for (size_t i = 0; i < waited_.size(); ++i) {
      if (line.find(waited_[i]) == std::string::npos) continue;
      const std::string text = waited_[i];
      waited_.erase(waited_.begin() + static_cast<ptrdiff_t>(i--));
      found_(text);
    }
  }

  asio::posix::stream_descriptor events_;
  const std::string folder_;
  std::vector<std::string> texts_;
  std::vector<std::string> waited_;
  const std::function<void(const std::string&)> found_;
  const WantedLines lines_;
  std::map<std::string, std::streamoff> seen_;
  std::array<char, 4096> buffer_{};
};

StatusOr<std::unique_ptr<OutputWatch>> OutputWatch::Begin(asio::io_context& loop, const std::string& folder,
                                                          std::vector<std::string> texts,
                                                          std::function<void(const std::string&)> found,
                                                          WantedLines lines) {
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder, error);
  if (error) return absl::UnavailableError(fmt::format("{}: it cannot be made: {}", folder, error.message()));
  const int inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (inotify < 0) return InotifyStatus(errno, fmt::format("{}: it cannot be watched (inotify)", folder));
  if (inotify_add_watch(inotify, folder.c_str(), IN_MODIFY | IN_CREATE) < 0) {
    const int failed = errno;
    close(inotify);
    return InotifyStatus(failed, folder);
  }
  auto impl = std::make_shared<Impl>(loop, inotify, folder, std::move(texts), std::move(found), std::move(lines));
  impl->Wait();
  return std::unique_ptr<OutputWatch>(new OutputWatch(std::move(impl)));
}

OutputWatch::~OutputWatch() { impl_->End(); }
const std::vector<std::string>& OutputWatch::texts() const { return impl_->texts(); }
std::string OutputWatch::FileOf(const std::string& pod) const { return impl_->FileOf(pod); }

}  // namespace muster::local
