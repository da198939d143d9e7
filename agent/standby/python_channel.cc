// SPDX-License-Identifier: Apache-2.0
#include "agent/standby/python_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/attach.h"
#include "base/text.h"

namespace muster::agent::standby {

using boost::system::error_code;

namespace {

std::string_view NameOf(Mode mode) {
  switch (mode) {
    case Mode::kLearn:
      return "learn";
    case Mode::kWait:
      return "wait";
    case Mode::kProbe:
      return "probe";
  }
  return "";
}

}  // namespace

class PythonChannel::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& loop, Events events) : events_(std::move(events)), socket_(loop) {}

  Status Open() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return ErrnoStatus(errno, "opening a socket to a worker's Python");
    }
    theirs_ = Descriptor(ends[1]);
    Descriptor ours(ends[0]);
    if (fcntl(ours.get(), F_SETFL, O_NONBLOCK) == -1) return ErrnoStatus(errno, "setting up a socket");
    return Attach(socket_, std::move(ours), "watching a socket to a worker's Python");
  }

  void Close() {
    events_ = {};
    error_code ignored;
    socket_.close(ignored);
  }

  void Redirect(Events events) { events_ = std::move(events); }

  int their_end() const { return theirs_.get(); }

  void Started() {
    theirs_.Close();
    Wait();
  }

  Status Send(std::string_view frame, const std::vector<int>& descriptors, TimePoint deadline) {
    if (!socket_.is_open()) return absl::UnavailableError("it has ended");
    std::array<char, CMSG_SPACE(3 * sizeof(int))> control{};
    for (size_t sent = 0; sent < frame.size();) {
      iovec piece{const_cast<char*>(frame.data()) + sent, frame.size() - sent};
      msghdr message{};
      message.msg_iov = &piece;
      message.msg_iovlen = 1;
      if (sent == 0 && !descriptors.empty()) {
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
        cmsghdr* head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
        memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size() * sizeof(int));
      }
      const ssize_t wrote = sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL);
      if (wrote >= 0) {
        sent += static_cast<size_t>(wrote);
      } else if (errno == EAGAIN) {
        if (!ReadyBy(socket_.native_handle(), POLLOUT, deadline)) {
          return absl::DeadlineExceededError("a standby worker does not read what it is sent");
        }
      } else if (errno != EINTR) {
        return ErrnoStatus(errno, "writing to a standby worker");
      }
    }
    return absl::OkStatus();
  }

  Status AwaitAnswer(TimePoint deadline) {
    for (;;) {
      MUSTER_ASSIGN_OR_RETURN(std::optional<Frame> frame, reader_.Next());
      if (frame && frame->letter == Letter::kPing) {
        return frame->body.empty() ? absl::OkStatus() : absl::FailedPreconditionError(frame->body);
      }
      if (frame) continue;
      if (!ReadyBy(socket_.native_handle(), POLLIN, deadline)) return absl::DeadlineExceededError("it does not answer");
      if (!ReadSome()) return absl::UnavailableError("it has ended");
    }
  }

 private:
  void Wait() {
    if (!socket_.is_open()) return;
    socket_.async_wait(boost::asio::posix::descriptor_base::wait_read, [weak = weak_from_this()](error_code failed) {
      if (auto self = weak.lock(); self && !failed) self->OnReadable();
    });
  }

  // False: the other side has closed.
  bool ReadSome() {
    std::array<char, 16 << 10> piece;
    const ssize_t got = read(socket_.native_handle(), piece.data(), piece.size());
    if (got > 0) reader_.Add({piece.data(), static_cast<size_t>(got)});
    return got > 0 || (got == -1 && (errno == EAGAIN || errno == EINTR));
  }

  void OnReadable() {
    auto self = shared_from_this();  // a callback may destroy the channel
    const bool open = ReadSome();
    for (;;) {
      auto frame = reader_.Next();
      if (!frame.ok()) return End(frame.status());
      if (!*frame) break;
      if (auto callback = events_.frame) callback(**frame);
      if (!socket_.is_open()) return;
    }
    open ? Wait() : End(absl::OkStatus());
  }

  void End(const Status& error) {
    auto ended = std::move(events_.ended);
    Close();
    if (ended) ended(error);
  }

  Events events_;
  boost::asio::posix::stream_descriptor socket_;
  Descriptor theirs_;
  FrameReader reader_;
};

StatusOr<std::unique_ptr<PythonChannel>> PythonChannel::Open(boost::asio::io_context& loop, Events events) {
  auto impl = std::make_shared<Impl>(loop, std::move(events));
  MUSTER_RETURN_IF_ERROR(impl->Open());
  return std::unique_ptr<PythonChannel>(new PythonChannel(std::move(impl)));
}
PythonChannel::~PythonChannel() { impl_->Close(); }
void PythonChannel::Redirect(Events events) { impl_->Redirect(std::move(events)); }
void PythonChannel::Started() { impl_->Started(); }
Status PythonChannel::AwaitAnswer(TimePoint deadline) { return impl_->AwaitAnswer(deadline); }
Status PythonChannel::Send(std::string_view frame, const std::vector<int>& descriptors, TimePoint deadline) {
  return impl_->Send(frame, descriptors, deadline);
}

PythonStart PythonChannel::StartWith(const std::vector<std::string>& environment, Mode mode, int archive,
                                     const std::vector<std::string>& of_round) const {
  constexpr std::string_view kPath = "PYTHONPATH=";
  PythonStart start{.descriptors = {archive, impl_->their_end()}};
  const std::string place = fmt::format("/proc/self/fd/{}", archive);
  bool had_path = false;
  for (const std::string& entry : environment) {
    if (!entry.starts_with(kPath)) {
      start.environment.push_back(entry);
      continue;
    }
    had_path = true;
    const std::string_view rest = std::string_view(entry).substr(kPath.size());
    start.environment.push_back(fmt::format("{}{}{}{}", kPath, place, rest.empty() ? "" : ":", rest));
  }
  if (!had_path) start.environment.push_back(fmt::format("{}{}", kPath, place));
  start.environment.push_back(fmt::format("MUSTER_STANDBY={}:{}:{}:{}:{}", NameOf(mode), had_path ? "set" : "unset",
                                          archive, impl_->their_end(), Join(of_round, ",")));
  return start;
}

}  // namespace muster::agent::standby
