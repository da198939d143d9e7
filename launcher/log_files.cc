// SPDX-License-Identifier: Apache-2.0
#include "launcher/log_files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/descriptors.h"
#include "base/kernel_calls.h"
#include "base/log.h"
#include "base/text.h"

namespace muster::launcher {

namespace asio = boost::asio;
using boost::system::error_code;

// The writer's mutex guards the counters. Only the writer's thread uses the descriptor after Open.
struct LogFile::Target {
  std::string path;
  Descriptor descriptor;  // none if the file could not be made for lack of space
  bool refused = false;   // the disk refused the last write, which the log has reported
  uint64_t dropped_bytes = 0;
  uint64_t dropped_lines = 0;
};

namespace {

// How long the destructor waits for the queue.
constexpr auto kPatience = std::chrono::seconds(1);
constexpr size_t kPiece = 64 << 10;  // queued lines are joined up to about this size

bool NoSpace(int error) { return error == ENOSPC || error == EDQUOT; }

// 0 or errno.
int MakeFolders(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    if (mkdir(path.substr(0, slash).c_str(), 0777) == -1 && errno != EEXIST && errno != EROFS) return errno;
  }
  return 0;
}

// The bytes that a file refused, and the errno. `rest` is empty if it took all.
struct Refusal {
  std::string_view rest;
  int error = 0;
};

Refusal WriteAll(int descriptor, std::string_view bytes) {
  if (descriptor == -1) return {bytes, ENOSPC};
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written == -1 && errno == EINTR) continue;
    if (written <= 0) return {bytes, written == 0 ? ENOSPC : errno};
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace

// The queue between the loop and the thread. Shared by both, since the thread may outlive LogFiles. Thread-safe.
class LogWriter {
 public:
  using Target = LogFile::Target;

  explicit LogWriter(size_t queue_bytes) : limit_(queue_bytes) {}

  // The thread's function. After End it returns when all is written.
  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      Piece piece = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
      lock.unlock();
      const Refusal refusal = WriteAll(piece.target->descriptor.get(), piece.bytes);
      const int closing = piece.last && piece.target->descriptor.Close() != 0 ? errno : 0;
      lock.lock();
      busy_ = false;
      bytes_ -= piece.bytes.size();
      last_progress_ = MonotonicClock::now();
      if (dropping_ && bytes_ < limit_ / 2) dropping_ = false;
      Account(piece, refusal, closing);
      if (written()) idle_.notify_all();
      if ((awaits_end_ && written()) || (awaits_room_ && bytes_ < limit_ / 2)) {
        awaits_end_ = awaits_room_ = false;
        tell_();
      }
    }
  }

  void Write(const std::shared_ptr<Target>& target, std::string_view bytes) {
    std::lock_guard lock(mutex_);
    if (dropping_) return CountDropped(*target, bytes);
    if (written()) last_progress_ = MonotonicClock::now();  // the stall limit counts from now
    bytes_ += bytes.size();
    if (!queue_.empty() && queue_.back().target == target && queue_.back().bytes.size() < kPiece) {
      queue_.back().bytes += bytes;
    } else {
      Push({target, std::string(bytes), false});
    }
  }
  void CloseFile(std::shared_ptr<Target> target) {
    std::lock_guard lock(mutex_);
    Push({std::move(target), "", true});
  }

  bool HasRoom() const {
    std::lock_guard lock(mutex_);
    return dropping_ || bytes_ < limit_;
  }
  bool Written() const {
    std::lock_guard lock(mutex_);
    return written();
  }
  size_t bytes() const {
    std::lock_guard lock(mutex_);
    return bytes_;
  }
  TimePoint last_progress() const {
    std::lock_guard lock(mutex_);
    return last_progress_;
  }
  // Calls `tell` once, on the thread, when all is written (`end`) or half of the queue is free (`room`), whichever
  // comes first. `tell` must not block, nor call this object.
  void WhenDone(bool end, bool room, std::function<void()> tell) {
    std::lock_guard lock(mutex_);
    tell_ = std::move(tell);
    awaits_end_ = end;
    awaits_room_ = room;
  }
  // Drops new lines until half of the queue is free.
  void Drop() {
    std::lock_guard lock(mutex_);
    dropping_ = true;
  }
  // Call it after the last Write; `tell` is not called after it. True: all is written, and the thread ends. False: the
  // thread still hangs after `patience`, and goes on by itself.
  bool End(Duration patience) {
    std::unique_lock lock(mutex_);
    closing_ = true;
    awaits_end_ = awaits_room_ = false;
    work_.notify_all();
    return idle_.wait_for(lock, patience, [this] { return written(); });
  }

 private:
  struct Piece {
    std::shared_ptr<Target> target;
    std::string bytes;
    bool last = false;  // close the file after this piece
  };

  bool written() const { return queue_.empty() && !busy_; }

  void Push(Piece piece) {
    queue_.push_back(std::move(piece));
    if (queue_.size() == 1 && !busy_) work_.notify_all();
  }

  static void CountDropped(Target& target, std::string_view bytes) {
    target.dropped_bytes += bytes.size();
    target.dropped_lines += static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
  }

  void Account(const Piece& piece, const Refusal& refusal, int closing) const {
    Target& target = *piece.target;
    if (!refusal.rest.empty()) {
      if (!target.refused && target.descriptor.ok()) {
        log::Warning("a log file cannot be written, its lines are dropped until it can",
                     {{"file", target.path}, {"error", strerror(refusal.error)}});
      }
      target.refused = true;
      CountDropped(target, refusal.rest);
    }
    if (closing != 0) {
      log::Warning("a log file may lack its last lines: closing it failed",
                   {{"file", target.path}, {"error", strerror(closing)}});
    }
    const bool takes_again = refusal.rest.empty() && !dropping_;
    if ((takes_again || piece.last) && target.dropped_bytes > 0) {
      log::Warning(fmt::format("a log file lacks {} ({} bytes): they were dropped while it could not be written",
                               Counted(static_cast<int64_t>(target.dropped_lines), "line"), target.dropped_bytes),
                   {{"file", target.path}});
      target.dropped_bytes = 0;
      target.dropped_lines = 0;
      target.refused = false;
    }
  }

  const size_t limit_;
  mutable std::mutex mutex_;
  std::condition_variable work_;  // wakes the thread
  std::condition_variable idle_;  // wakes End
  std::deque<Piece> queue_;
  size_t bytes_ = 0;  // in `queue_` and in the current write
  bool busy_ = false;
  bool closing_ = false;
  bool dropping_ = false;
  bool awaits_end_ = false;
  bool awaits_room_ = false;
  std::function<void()> tell_;
  TimePoint last_progress_{};
};

LogFile::LogFile(std::shared_ptr<LogWriter> writer, std::shared_ptr<Target> target)
    : writer_(std::move(writer)), target_(std::move(target)) {}
LogFile::~LogFile() { writer_->CloseFile(std::move(target_)); }
void LogFile::Write(std::string_view bytes) { writer_->Write(target_, bytes); }

class LogFiles::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, const LogFilesOptions& options)
      : loop_(loop),
        options_(options),
        writer_(std::make_shared<LogWriter>(options.queue_bytes)),
        stall_(loop),
        limit_(loop) {}

  void Close() {
    resumes_.clear();
    done_ = nullptr;
    stall_.cancel();
    limit_.cancel();
    if (!thread_.joinable()) return;
    if (writer_->End(gave_up_ ? Duration::zero() : kPatience)) return thread_.join();
    thread_.detach();  // it uses only `writer_`, which it shares, and the process's log
    GiveUp();
  }

  StatusOr<std::shared_ptr<LogFile>> Open(const std::string& path, bool truncate) {
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
    auto target = std::make_shared<LogFile::Target>();
    target->path = path;
    target->descriptor = Descriptor(descriptor);
    if (NoSpace(error)) {
      log::Warning("a log file cannot be made, its lines are dropped", {{"file", path}, {"error", strerror(error)}});
    } else if (error != 0) {
      return ErrnoStatus(error, fmt::format("opening the log file '{}'", path));
    }
    MUSTER_RETURN_IF_ERROR(StartThread());
    return std::make_shared<LogFile>(writer_, std::move(target));
  }

  bool HasRoom() const { return writer_->HasRoom(); }

  void WhenRoom(std::function<void()> resume) {
    resumes_.push_back(std::move(resume));
    if (resumes_.size() == 1) WatchForStall();
    AwaitProgress();
  }

  void WhenWritten(Patience patience, std::function<void()> done) {
    if (writer_->Written()) return done();
    done_ = std::move(done);
    patience_ = patience;
    asked_ = MonotonicClock::now();
    WatchTheEnd();
    AwaitProgress();
  }

 private:
  Status StartThread() {
    if (thread_.joinable()) return absl::OkStatus();
    // The loop handles signals, so block them in the thread.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    Status status;
    try {
      thread_ = std::thread([writer = writer_] { writer->Run(); });
    } catch (const std::system_error& error) {
      status = ThreadStatus(error.code().value(), "starting the thread that writes log files");
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return status;
  }

  void WatchTheEnd() {
    const auto give_up_at = [this] {
      return std::min(std::max(asked_, writer_->last_progress()) + patience_.stall, asked_ + patience_.limit);
    };
    limit_.expires_at(give_up_at());
    limit_.async_wait([give_up_at, weak = weak_from_this()](error_code failed) {
      auto self = weak.lock();
      if (failed || !self || !self->done_) return;
      if (MonotonicClock::now() < give_up_at()) return self->WatchTheEnd();
      self->GiveUp();
      std::exchange(self->done_, nullptr)();
    });
  }

  void GiveUp() {
    if (gave_up_) return;
    gave_up_ = true;
    log::Warning(
        fmt::format("log files are incomplete: their disk hangs or is very slow; it has not written the last {} "
                    "bytes, or has not closed the files",
                    writer_->bytes()));
  }

  void AwaitProgress() {
    auto look = [weak = weak_from_this(), &loop = loop_] {
      asio::post(loop, [weak] {
        if (auto self = weak.lock()) self->OnProgress();
      });
    };
    writer_->WhenDone(done_ != nullptr, !resumes_.empty(), look);
    // The thread may have made progress before that.
    if (writer_->Written() || (HasRoom() && !resumes_.empty())) look();
  }

  void OnProgress() {
    if (HasRoom() && !resumes_.empty()) {
      stall_.cancel();
      for (auto& resume : std::exchange(resumes_, {})) asio::post(loop_, std::move(resume));
    }
    if (done_ && writer_->Written()) {
      limit_.cancel();
      std::exchange(done_, nullptr)();
    } else if (done_ || !resumes_.empty()) {
      AwaitProgress();
    }
  }

  void WatchForStall() {
    stall_.expires_at(writer_->last_progress() + options_.stall_limit);
    stall_.async_wait([weak = weak_from_this()](error_code failed) {
      auto self = weak.lock();
      if (failed || !self || self->resumes_.empty()) return;
      if (MonotonicClock::now() < self->writer_->last_progress() + self->options_.stall_limit) {
        return self->WatchForStall();
      }
      self->writer_->Drop();
      log::Warning(
          fmt::format("log files cannot be written: their disk has taken nothing for {} s; lines are dropped "
                      "until it does",
                      std::chrono::duration<double>(self->options_.stall_limit).count()));
      self->OnProgress();
    });
  }

  asio::io_context& loop_;
  const LogFilesOptions options_;
  std::shared_ptr<LogWriter> writer_;
  std::thread thread_;
  std::vector<std::function<void()>> resumes_;
  std::function<void()> done_;
  Patience patience_{};       // for done_
  TimePoint asked_{};         // when done_ was set
  bool gave_up_ = false;      // and the log says so
  asio::steady_timer stall_;  // runs while there are resumes
  asio::steady_timer limit_;  // for done_
};

LogFiles::LogFiles(asio::io_context& loop, LogFilesOptions options) : impl_(std::make_shared<Impl>(loop, options)) {}
LogFiles::~LogFiles() { impl_->Close(); }
StatusOr<std::shared_ptr<LogFile>> LogFiles::Open(const std::string& path, bool truncate) {
  return impl_->Open(path, truncate);
}
bool LogFiles::HasRoom() const { return impl_->HasRoom(); }
void LogFiles::WhenRoom(std::function<void()> resume) { impl_->WhenRoom(std::move(resume)); }
void LogFiles::WhenWritten(Patience patience, std::function<void()> done) {
  impl_->WhenWritten(patience, std::move(done));
}

}  // namespace muster::launcher
