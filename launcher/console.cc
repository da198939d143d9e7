// SPDX-License-Identifier: Apache-2.0
#include "launcher/console.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>

#include "base/attach.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/text.h"

namespace muster::launcher {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// How to write to a descriptor without blocking and without changing shared flags.
enum class Manner {
  kPlain,   // files and devices that do not block
  kOwn,     // an open file description of its own, non-blocking
  kSocket,  // MSG_DONTWAIT
  kPolled,  // poll, then at most kPolledPiece
};

// A pipe that poll calls writable takes PIPE_BUF bytes without blocking, unless another writer fills it first.
constexpr size_t kPolledPiece = 4096;

constexpr size_t kPatientBytes = size_t{64} << 10;  // as much as a pipe holds

constexpr std::string_view kErase = "\r\033[K";  // erases the line of the cursor

struct Channel {
  explicit Channel(asio::io_context& loop) : stall(loop) {}
  ~Channel() {
    if (manner == Manner::kOwn) close(descriptor);
  }

  const char* name = "";
  int descriptor = -1;
  Manner manner = Manner::kPlain;
  std::deque<std::string> queue;
  size_t head_written = 0;  // written bytes of queue.front()
  size_t bytes = 0;         // queued
  bool line_open = false;   // the last queued text did not end its line
  bool registered = false;  // with the epoll set
  bool waiting = false;     // until the descriptor takes bytes
  bool dropping = false;    // the stall limit has passed
  bool dead = false;        // no write can succeed again
  bool patient = false;     // nothing is dropped because the reader stalls
  std::string why;          // why lines were dropped
  uint64_t dropped_lines = 0;
  uint64_t dropped_bytes = 0;
  TimePoint last_progress{};
  bool stall_armed = false;
  asio::steady_timer stall;
  std::vector<std::function<void()>> resumes;
};

void OpenChannel(Channel& channel, const char* name, int descriptor) {
  channel.name = name;
  channel.descriptor = descriptor;
  struct stat found {};
  if (fstat(descriptor, &found) == -1) {
    channel.dead = true;
    channel.why = "it is closed";
    return;
  }
  if (S_ISSOCK(found.st_mode)) {
    channel.manner = Manner::kSocket;
  } else if (S_ISFIFO(found.st_mode) || (S_ISCHR(found.st_mode) && isatty(descriptor))) {
    int own = open(fmt::format("/proc/self/fd/{}", descriptor).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    channel.manner = own == -1 ? Manner::kPolled : Manner::kOwn;
    if (own != -1) channel.descriptor = own;
  }
}

bool SameTerminal(int a, int b) {
  struct stat of_a {
  }, of_b{};
  return isatty(a) && isatty(b) && fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

ssize_t WriteSome(const Channel& channel, std::string_view text) {
  switch (channel.manner) {
    case Manner::kPlain:
    case Manner::kOwn:
      return write(channel.descriptor, text.data(), text.size());
    case Manner::kSocket:
      return send(channel.descriptor, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    case Manner::kPolled: {
      pollfd ready{channel.descriptor, POLLOUT, 0};
      if (poll(&ready, 1, 0) == 1) return write(channel.descriptor, text.data(), std::min(text.size(), kPolledPiece));
      errno = EAGAIN;
      return -1;
    }
  }
  return -1;
}

}  // namespace

class Console::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, const ConsoleOptions& options)
      : loop_(loop), options_(options), out_(loop), err_(loop), ready_(loop) {
    signal(SIGPIPE, SIG_IGN);
    OpenChannel(out_, "stdout", options.out);
    OpenChannel(err_, "stderr", options.err);
  }

  void Close() {
    closed_ = true;
    error_code ignored;
    ready_.close(ignored);
    for (Channel* channel : {&out_, &err_}) {
      channel->stall.cancel();
      channel->resumes.clear();
    }
  }

  Channel& Of(Stream stream) { return stream == Stream::kOut && !one_terminal_ ? out_ : err_; }

  void SetFooter(std::string line) {
    if (line == footer_) return;
    one_terminal_ = one_terminal_ || SameTerminal(options_.out, options_.err);
    footer_ = std::move(line);
    if (drawn_) EraseFooter();
    DrawSoon();
  }

  bool HasRoom(const Channel& channel) const {
    return channel.dead || channel.dropping || channel.bytes < Limit(channel);
  }

  size_t Limit(const Channel& channel) const { return channel.patient ? kPatientBytes : options_.queue_bytes; }

  // Called from any thread.
  void TakeLogLine(std::string line) {
    std::lock_guard lock(log_mutex_);
    log_lines_.push_back(std::move(line));
    if (log_lines_.size() > 1) return;
    asio::post(loop_, [weak = weak_from_this()] {
      if (auto self = weak.lock(); self && !self->closed_) self->WriteLog();
    });
  }

  // Writes the log lines so far. Called before other text goes to stderr.
  void WriteLog() {
    std::vector<std::string> lines;
    {
      std::lock_guard lock(log_mutex_);
      lines.swap(log_lines_);
    }
    for (std::string& line : lines) Write(err_, std::move(line));
  }

  void Write(Channel& channel, std::string text, bool starts_line = true) {
    if (text.empty()) return;
    if (starts_line && channel.line_open) text.insert(0, 1, '\n');
    channel.line_open = text.back() != '\n';
    if (channel.dead || channel.dropping) return CountDropped(channel, text);
    if (drawn_ && &channel == &err_) EraseFooter();
    Queue(channel, std::move(text));
    if (!channel.patient && channel.bytes >= options_.queue_bytes && !channel.stall_armed) {
      channel.stall_armed = true;
      channel.last_progress = MonotonicClock::now();
      WatchForStall(channel);
    }
    if (&channel == &err_) DrawSoon();
  }

  void WhenRoom(Channel& channel, std::function<void()> resume) {
    channel.resumes.push_back(std::move(resume));
    if (HasRoom(channel)) Resume(channel);
  }

  void Drain(std::chrono::milliseconds limit) {
    WriteLog();
    const TimePoint deadline = MonotonicClock::now() + limit;
    for (Channel* channel : {&out_, &err_}) {
      Advance(*channel);
      while (!channel->queue.empty()) {
        if (!ReadyBy(channel->descriptor, POLLOUT, deadline)) break;
        Advance(*channel);
      }
      // Count the rest as dropped, so that the other stream can report it.
      if (!channel->queue.empty()) Discard(*channel, "its reader did not keep up");
    }
    for (Channel* channel : {&err_, &out_}) {
      if (channel->dropped_bytes == 0) continue;
      Channel& other = channel == &err_ ? out_ : err_;
      std::string line = Confession(*channel);
      if (WriteSome(err_, line) == -1) WriteSome(other, line);
    }
  }

 private:
  void EraseFooter() {
    drawn_ = false;
    Queue(err_, std::string(kErase));
  }

  // Draws the footer once for all text of this turn of the loop.
  void DrawSoon() {
    if (footer_.empty() || drawn_ || std::exchange(draws_soon_, true)) return;
    asio::post(loop_, [weak = weak_from_this()] {
      auto self = weak.lock();
      if (!self || self->closed_) return;
      self->draws_soon_ = false;
      self->DrawFooter();
    });
  }

  void DrawFooter() {
    if (footer_.empty() || drawn_ || err_.line_open || err_.dead || err_.dropping || !err_.queue.empty()) return;
    drawn_ = true;
    Queue(err_, footer_);
  }

  void Queue(Channel& channel, std::string text) {
    channel.bytes += text.size();
    channel.queue.push_back(std::move(text));
    if (!channel.waiting) Flush(channel);
  }

  static void CountDropped(Channel& channel, std::string_view text) {
    channel.dropped_bytes += text.size();
    channel.dropped_lines += std::count(text.begin(), text.end(), '\n');
  }

  static std::string Confession(Channel& channel) {
    std::string line = fmt::format("muster: {}: {} lines ({} bytes) were dropped here: {}\n", channel.name,
                                   channel.dropped_lines, channel.dropped_bytes, channel.why);
    channel.dropped_lines = 0;
    channel.dropped_bytes = 0;
    return line;
  }

  // Drops all queued text.
  void Discard(Channel& channel, std::string why) {
    channel.why = std::move(why);
    for (const std::string& text : channel.queue) {
      CountDropped(channel, std::string_view(text).substr(channel.head_written));
      channel.head_written = 0;
    }
    channel.queue.clear();
    channel.bytes = 0;
    channel.head_written = 0;
  }

  void Flush(Channel& channel) {
    Advance(channel);
    if (!channel.queue.empty()) {
      WaitForRoom(channel);
    } else if (&channel == &err_) {
      DrawSoon();
    }
    if (channel.bytes < Limit(channel) / 2 || channel.dead) {
      channel.stall_armed = false;
      channel.stall.cancel();
      if (channel.dropping && !channel.dead) {
        channel.dropping = false;
        Write(channel, Confession(channel));
      }
      Resume(channel);
    }
  }

  // Writes until the queue is empty or the descriptor takes no more.
  void Advance(Channel& channel) {
    while (!channel.queue.empty()) {
      const std::string& head = channel.queue.front();
      ssize_t written = WriteSome(channel, std::string_view(head).substr(channel.head_written));
      if (written == -1 && errno == EINTR) continue;
      if (written == -1 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (written == -1) return Refused(channel, errno);
      channel.last_progress = MonotonicClock::now();
      channel.bytes -= written;
      channel.head_written += written;
      if (channel.head_written == head.size()) {
        channel.queue.pop_front();
        channel.head_written = 0;
      }
      if (channel.queue.empty() && channel.dropped_bytes > 0 && !channel.dropping) {
        // The disk has room again.
        std::string line = Confession(channel);
        channel.bytes += line.size();
        channel.queue.push_back(std::move(line));
      }
    }
  }

  void Refused(Channel& channel, int error) {
    Discard(channel, strerror(error));
    channel.dead = error != ENOSPC && error != EDQUOT && error != EFBIG && error != ENOMEM && error != ENOBUFS;
  }

  // Uses its own epoll set: Asio would make the descriptor non-blocking, also for the processes that share it.
  void WaitForRoom(Channel& channel) {
    if (closed_ || channel.waiting) return;
    if (!ready_.is_open()) {
      Descriptor set(epoll_create1(EPOLL_CLOEXEC));
      if (!set.ok() || !Attach(ready_, std::move(set), "console").ok()) return Refused(channel, ENOSPC);
    }
    epoll_event interest{};
    interest.events = EPOLLOUT | EPOLLONESHOT;
    interest.data.ptr = &channel;
    int operation = channel.registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (epoll_ctl(ready_.native_handle(), operation, channel.descriptor, &interest) == -1) {
      return Refused(channel, errno);
    }
    channel.registered = true;
    channel.waiting = true;
    Arm();
  }

  void OnReady() {
    std::array<epoll_event, 2> events;
    int count = epoll_wait(ready_.native_handle(), events.data(), events.size(), 0);
    for (int i = 0; i < count; ++i) static_cast<Channel*>(events[i].data.ptr)->waiting = false;
    for (int i = 0; i < count; ++i) Flush(*static_cast<Channel*>(events[i].data.ptr));
    if (out_.waiting || err_.waiting) Arm();
  }

  void Arm() {
    if (armed_) return;
    armed_ = true;
    ready_.async_wait(asio::posix::descriptor_base::wait_read, [self = shared_from_this()](error_code failed) {
      self->armed_ = false;
      if (!failed && !self->closed_) self->OnReady();
    });
  }

  void WatchForStall(Channel& channel) {
    channel.stall.expires_at(channel.last_progress + options_.stall_limit);
    channel.stall.async_wait([self = shared_from_this(), &channel](error_code failed) {
      if (failed || self->closed_ || !channel.stall_armed) return;
      if (MonotonicClock::now() < channel.last_progress + self->options_.stall_limit)
        return self->WatchForStall(channel);
      channel.stall_armed = false;
      channel.dropping = true;
      channel.why = "its reader did not keep up";
      self->Resume(channel);
    });
  }

  void Resume(Channel& channel) {
    for (auto& resume : std::exchange(channel.resumes, {})) asio::post(loop_, std::move(resume));
  }

  asio::io_context& loop_;
  const ConsoleOptions options_;
  Channel out_;
  Channel err_;
  asio::posix::stream_descriptor ready_;  // an epoll set
  bool armed_ = false;
  bool closed_ = false;
  std::string footer_;
  bool drawn_ = false;         // the terminal shows the footer, or the footer is queued
  bool draws_soon_ = false;    // DrawFooter is posted
  bool one_terminal_ = false;  // stdout goes through err_
  std::mutex log_mutex_;
  std::vector<std::string> log_lines_;
};

Console::Console(asio::io_context& loop, ConsoleOptions options) : impl_(std::make_shared<Impl>(loop, options)) {}
Console::~Console() {
  if (carries_log_) {
    log::SetOutlet({});
    impl_->Drain(log::kStderrPatience);
  }
  impl_->Close();
}
void Console::Write(Stream stream, std::string text, bool starts_line) {
  impl_->WriteLog();
  impl_->Write(impl_->Of(stream), std::move(text), starts_line);
}
void Console::SetFooter(std::string line) { impl_->SetFooter(std::move(line)); }
void Console::RouteLog() {
  carries_log_ = true;
  log::SetOutlet([weak = std::weak_ptr(impl_)](std::string line) {
    if (auto impl = weak.lock()) impl->TakeLogLine(std::move(line));
  });
}
bool Console::HasRoom(Stream stream) const { return impl_->HasRoom(impl_->Of(stream)); }
void Console::WaitForReader(Stream stream) { impl_->Of(stream).patient = true; }
void Console::WhenRoom(Stream stream, std::function<void()> resume) {
  impl_->WhenRoom(impl_->Of(stream), std::move(resume));
}
void Console::Drain(std::chrono::milliseconds limit) { impl_->Drain(limit); }

}  // namespace muster::launcher
