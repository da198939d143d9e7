// SPDX-License-Identifier: Apache-2.0
#include "base/asked_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <csignal>
#include <memory>
#include <utility>

#include "base/attach.h"
#include "base/descriptors.h"
#include "base/environment.h"
#include "base/guarded_process.h"
#include "base/quoted.h"
#include "base/text.h"

namespace muster {
namespace {

namespace asio = boost::asio;

constexpr size_t kMostComplaints = 4 << 10;  // bytes of stderr that are kept
constexpr size_t kMostShown = 500;           // bytes of stderr that are shown
constexpr int kLastReads = 16;               // reads after the end of the command: more than a pipe holds

class Hearing : public std::enable_shared_from_this<Hearing> {
 public:
  Hearing(const asio::any_io_executor& executor, size_t most)
      : most_(most), over_(executor), exit_(executor), out_(executor), err_(executor) {}

  Status Begin(std::vector<std::string> words, const Environment& environment, Duration time);
  // Fires when the command has ended or has written too much, or when its time is over.
  asio::steady_timer& over() { return over_; }
  // Kills the command if it still runs. Closes the descriptors, so that the loop drops its references to this object.
  void Stop();

  const std::optional<int>& code() const { return code_; }
  bool said_too_much() const { return said_.size() > most_; }
  std::string TakeAnswer() { return std::move(said_); }
  std::string complaints() const { return Strip(complaints_).empty() ? "" : QuotedEnd(complaints_, kMostShown); }

 private:
  using Ear = asio::posix::stream_descriptor;

  void Listen(Ear& ear);
  bool Read(Ear& ear);  // false: end of the stream, or too many bytes
  void Collect();

  const size_t most_;
  asio::steady_timer over_;
  Ear exit_;  // readable once the child has ended
  Ear out_, err_;
  pid_t child_ = -1;
  std::optional<int> code_;
  std::string said_, complaints_;
};

Status Hearing::Begin(std::vector<std::string> words, const Environment& environment, Duration time) {
  MUSTER_ASSIGN_OR_RETURN(PipeEnds in, MakePipe());
  MUSTER_ASSIGN_OR_RETURN(PipeEnds out, MakePipe());
  MUSTER_ASSIGN_OR_RETURN(PipeEnds err, MakePipe());
  in.writing.Close();  // an empty pipe: /dev/null may be missing
  for (const PipeEnds* pipe : {&out, &err}) fcntl(pipe->reading.get(), F_SETFL, O_NONBLOCK);
  MUSTER_RETURN_IF_ERROR(Attach(out_, std::move(out.reading), "epoll"));
  MUSTER_RETURN_IF_ERROR(Attach(err_, std::move(err.reading), "epoll"));
  MUSTER_ASSIGN_OR_RETURN(GuardedProcess started, StartGuarded({.words = std::move(words),
                                                                .environment = environment.entries(),
                                                                .in = in.reading.get(),
                                                                .out = out.writing.get(),
                                                                .err = err.writing.get(),
                                                                .holds_lease = false}));
  child_ = started.pid;
  MUSTER_RETURN_IF_ERROR(Attach(exit_, std::move(started.ended), "epoll"));
  over_.expires_after(time);
  Listen(out_);
  Listen(err_);
  exit_.async_wait(Ear::wait_read, [self = shared_from_this()](boost::system::error_code error) {
    if (!error) self->Collect();
  });
  return absl::OkStatus();
}

void Hearing::Listen(Ear& ear) {
  ear.async_wait(Ear::wait_read, [self = shared_from_this(), &ear](boost::system::error_code error) {
    if (!error && self->Read(ear)) self->Listen(ear);
  });
}

bool Hearing::Read(Ear& ear) {
  std::array<char, 8 << 10> bytes;
  const ssize_t got = read(ear.native_handle(), bytes.data(), bytes.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  if (&ear == &out_) {
    said_.append(bytes.data(), static_cast<size_t>(got));
    if (said_too_much()) over_.cancel();
    return !said_too_much();
  }
  complaints_.append(bytes.data(), static_cast<size_t>(got));
  if (complaints_.size() > kMostComplaints) complaints_.erase(0, complaints_.size() - kMostComplaints);
  return true;
}

void Hearing::Collect() {
  if (child_ < 0) return;
  code_ = CollectGuarded(std::exchange(child_, -1));
  for (Ear* ear : {&out_, &err_}) {
    for (int i = 0; i < kLastReads && Read(*ear); ++i) continue;
  }
  over_.cancel();
}

void Hearing::Stop() {
  if (child_ > 0) {
    kill(-child_, SIGKILL);
    CollectGuarded(std::exchange(child_, -1));
  }
  boost::system::error_code ignored;
  for (Ear* ear : {&exit_, &out_, &err_}) ear->close(ignored);
}

}  // namespace

asio::awaitable<StatusOr<CommandAnswer>> AskedCommand(std::vector<std::string> words, Environment environment,
                                                      size_t most, Duration time) {
  const auto hearing = std::make_shared<Hearing>(co_await asio::this_coro::executor, most);
  const std::shared_ptr<void> stop(nullptr, [hearing](void*) { hearing->Stop(); });
  if (Status begun = hearing->Begin(std::move(words), environment, time); !begun.ok()) co_return begun;
  co_await hearing->over().async_wait(asio::as_tuple(asio::use_awaitable));
  const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) {
    throw boost::system::system_error(asio::error::operation_aborted);
  }
  const std::string complaints = hearing->complaints();
  const std::string what = complaints.empty() ? "" : fmt::format(": {}", complaints);
  if (hearing->said_too_much()) {
    co_return absl::FailedPreconditionError(fmt::format("it wrote more than {} bytes to stdout{}", most, what));
  }
  if (!hearing->code()) {
    const auto seconds = std::chrono::duration_cast<std::chrono::duration<double>>(time).count();
    co_return absl::DeadlineExceededError(fmt::format("it did not end within {} s, and was killed{}", seconds, what));
  }
  co_return CommandAnswer{*hearing->code(), hearing->TakeAnswer(), complaints};
}

}  // namespace muster
