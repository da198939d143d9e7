// SPDX-License-Identifier: Apache-2.0
#include "agent/live/top_tool.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/attach.h"
#include "base/descriptors.h"
#include "base/environment.h"
#include "base/guarded_process.h"
#include "base/quoted.h"
#include "base/text.h"

namespace muster::agent {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr size_t kMostComplaints = 4 << 10;  // bytes of stderr that are kept
constexpr size_t kMostShown = 300;
constexpr int kLastReads = 64;  // after its end: more than a pipe holds

}  // namespace

class TopTool::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, Events events)
      : events_(std::move(events)), exit_(loop), out_(loop), err_(loop), deadline_(loop) {}

  Status Begin(std::vector<std::string> words, std::optional<Duration> limit) {
    MUSTER_ASSIGN_OR_RETURN(PipeEnds in, MakePipe());
    MUSTER_ASSIGN_OR_RETURN(PipeEnds out, MakePipe());
    MUSTER_ASSIGN_OR_RETURN(PipeEnds err, MakePipe());
    in.writing.Close();
    for (const PipeEnds* pipe : {&out, &err}) fcntl(pipe->reading.get(), F_SETFL, O_NONBLOCK);
    MUSTER_RETURN_IF_ERROR(Attach(out_, std::move(out.reading), "epoll"));
    MUSTER_RETURN_IF_ERROR(Attach(err_, std::move(err.reading), "epoll"));
    MUSTER_ASSIGN_OR_RETURN(GuardedProcess started, StartGuarded({.words = std::move(words),
                                                                  .environment = Environment::OfProcess().entries(),
                                                                  .in = in.reading.get(),
                                                                  .out = out.writing.get(),
                                                                  .err = err.writing.get(),
                                                                  .holds_lease = false}));
    child_ = started.pid;
    MUSTER_RETURN_IF_ERROR(Attach(exit_, std::move(started.ended), "epoll"));
    Listen(out_);
    Listen(err_);
    exit_.async_wait(Ear::wait_read, [self = shared_from_this()](error_code error) {
      if (!error) self->End();
    });
    if (!limit) return absl::OkStatus();
    deadline_.expires_after(*limit);
    deadline_.async_wait([weak = weak_from_this()](error_code error) {
      auto self = weak.lock();
      if (self && !error && self->child_ > 0) kill(-self->child_, SIGKILL);
    });
    return absl::OkStatus();
  }

  void Drop() {
    events_ = {};
    if (child_ > 0) {
      kill(-child_, SIGKILL);
      CollectGuarded(std::exchange(child_, -1));
    }
    Close();
  }

 private:
  using Ear = asio::posix::stream_descriptor;

  void Close() {
    error_code ignored;
    for (Ear* ear : {&exit_, &out_, &err_}) ear->close(ignored);
    deadline_.cancel();
  }

  void Listen(Ear& ear) {
    ear.async_wait(Ear::wait_read, [self = shared_from_this(), &ear](error_code error) {
      if (!error && self->Read(ear)) self->Listen(ear);
    });
  }

  // False: the end of the stream.
  bool Read(Ear& ear) {
    std::array<char, 8 << 10> bytes;
    const ssize_t got = read(ear.native_handle(), bytes.data(), bytes.size());
    if (got < 0) return errno == EINTR || errno == EAGAIN;
    if (got == 0) return false;
    const std::string_view piece(bytes.data(), static_cast<size_t>(got));
    if (&ear == &err_) {
      complaints_ += piece;
      if (complaints_.size() > kMostComplaints) complaints_.erase(0, complaints_.size() - kMostComplaints);
    } else if (events_.out) {
      events_.out(piece);
    }
    return true;
  }

  void End() {
    const int code = CollectGuarded(std::exchange(child_, -1));
    for (Ear* ear : {&out_, &err_}) {
      for (int i = 0; i < kLastReads && Read(*ear); ++i) continue;
    }
    Close();
    const Events events = std::exchange(events_, {});
    const std::string said = Strip(complaints_).empty() ? "" : QuotedEnd(complaints_, kMostShown);
    if (events.ended) events.ended(code, said);
  }

  Events events_;
  Ear exit_;  // readable once the program has ended
  Ear out_, err_;
  asio::steady_timer deadline_;
  pid_t child_ = -1;
  std::string complaints_;
};

StatusOr<std::unique_ptr<TopTool>> TopTool::Start(asio::io_context& loop, std::vector<std::string> words,
                                                  std::optional<Duration> limit, Events events) {
  std::unique_ptr<TopTool> tool(new TopTool(std::make_shared<Impl>(loop, std::move(events))));
  MUSTER_RETURN_IF_ERROR(tool->impl_->Begin(std::move(words), limit));
  return tool;
}

TopTool::TopTool(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
TopTool::~TopTool() { impl_->Drop(); }

}  // namespace muster::agent
