// SPDX-License-Identifier: Apache-2.0
#include "rsh/input_pump.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "base/attach.h"
#include "base/descriptors.h"
#include "rsh/protocol.h"

namespace muster::rsh {

namespace asio = boost::asio;
using boost::system::error_code;

class InputPump::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, int descriptor, Events events)
      : loop_(loop), descriptor_(descriptor), events_(std::move(events)), ready_(loop) {
    WidenPipe(descriptor, kPipeBytes);
  }

  void Continue() {
    if (waiting_ || ended_ || closed_ || events_.room() == 0) return;
    waiting_ = true;
    if (!Arm()) asio::post(loop_, [self = shared_from_this()] { self->Ready(); });  // a regular file is always ready
  }

  void Close() {
    closed_ = true;
    error_code ignored;
    ready_.close(ignored);
  }

 private:
  // Waits by an epoll set of its own: Asio would make the descriptor non-blocking, also for the processes that share
  // it. False if the kernel cannot wait for the descriptor.
  bool Arm() {
    if (!pollable_) return false;
    const bool first = !ready_.is_open();
    if (first) {
      Descriptor set(epoll_create1(EPOLL_CLOEXEC));
      if (!set.ok() || !Attach(ready_, std::move(set), "input").ok()) return pollable_ = false;
    }
    epoll_event interest{};
    interest.events = EPOLLIN | EPOLLONESHOT;
    if (epoll_ctl(ready_.native_handle(), first ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor_, &interest) == -1) {
      return pollable_ = false;
    }
    ready_.async_wait(asio::posix::descriptor_base::wait_read, [self = shared_from_this()](error_code failed) {
      if (failed || self->closed_) return;
      epoll_event event;
      epoll_wait(self->ready_.native_handle(), &event, 1, 0);
      self->Ready();
    });
    return true;
  }

  void Ready() {
    waiting_ = false;
    const size_t room = std::min(events_.room(), kChunk);
    if (closed_ || room == 0) return;
    grpc::Slice buffer(room);
    ssize_t got = read(descriptor_, const_cast<uint8_t*>(buffer.begin()), room);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return Continue();
    if (got <= 0) {
      ended_ = true;
      return events_.ended();
    }
    const auto length = static_cast<size_t>(got);
    events_.bytes(length == room ? std::move(buffer) : buffer.sub(0, length));
    Continue();
  }

  asio::io_context& loop_;
  const int descriptor_;
  const Events events_;
  asio::posix::stream_descriptor ready_;  // an epoll set
  bool pollable_ = true;
  bool waiting_ = false;
  bool ended_ = false;
  bool closed_ = false;
};

InputPump::InputPump(asio::io_context& loop, int descriptor, Events events)
    : impl_(std::make_shared<Impl>(loop, descriptor, std::move(events))) {}
InputPump::~InputPump() { impl_->Close(); }
void InputPump::Continue() { impl_->Continue(); }

}  // namespace muster::rsh
