// SPDX-License-Identifier: Apache-2.0
#include "rsh/session.h"

#include <grpcpp/channel.h>

#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "base/exit_codes.h"
#include "base/text.h"
#include "net/grpc_channel.h"
#include "rsh/dial.h"

namespace muster::rsh {

namespace asio = boost::asio;

class Session::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, net::GrpcQueue& queue, net::Resolver& resolver, Options options, Events events)
      : loop_(loop),
        queue_(queue),
        resolver_(resolver),
        options_(std::move(options)),
        events_(std::move(events)),
        deadline_(MonotonicClock::now() + options_.timeout),
        start_limit_(loop) {}

  void Dial();
  void Close();
  void Continue();
  size_t InputRoom() const { return started_ && call_ != nullptr ? kInputWindow - input_ahead_ : 0; }
  void Send(const FromCaller& message);

 private:
  class Call;

  void Connected(std::shared_ptr<grpc::Channel> channel);
  void Hear(StatusOr<FromPod> message);
  void Over(const grpc::Status& status);
  void End(const Ended& ended);

  asio::io_context& loop_;
  net::GrpcQueue& queue_;
  net::Resolver& resolver_;
  const Options options_;
  Events events_;
  const TimePoint deadline_;
  asio::steady_timer start_limit_;
  std::unique_ptr<Dialling> dialling_;
  Call* call_ = nullptr;  // owned by the queue
  size_t input_ahead_ = 0;
  bool started_ = false;
  bool held_ = false;  // output was handed out, and Continue() has not been called since
  bool overdue_ = false;
  std::optional<Ended> ended_;
  std::string garbage_;
  std::string obstacle_;  // once the pod was reached: why the command has not started yet
};

// The stream. The queue owns it until gRPC has finished every operation; it may outlive the session.
class Session::Impl::Call final : public net::GrpcClientCall {
 public:
  Call(net::GrpcQueue& queue, std::shared_ptr<grpc::Channel> channel, const std::string& token,
       std::weak_ptr<Impl> owner)
      : GrpcClientCall(queue, std::move(channel), kSessionMethod, token), owner_(std::move(owner)) {}

  using GrpcClientCall::Send;
  using GrpcClientCall::StartRead;

 private:
  void Read() override {
    if (auto owner = owner_.lock()) owner->Hear(DecodeFromPod(incoming()));
  }
  void Over(const grpc::Status& status) override {
    if (auto owner = owner_.lock()) owner->Over(status);
  }

  const std::weak_ptr<Impl> owner_;
};

void Session::Impl::Dial() {
  Dialling::Events events;
  events.connected = [this](std::shared_ptr<grpc::Channel> channel) { Connected(std::move(channel)); };
  events.gave_up = [this](const std::string& obstacle) {
    End({kExitRendezvousTimeout,
         fmt::format("{}; not reached within {:.6g} s. Is the pod up, and does it run `muster exec --serve-rsh`? "
                     "--rsh-timeout (MUSTER_RSH_TIMEOUT) waits longer",
                     obstacle, std::chrono::duration<double>(options_.timeout).count())});
  };
  events.waiting = events_.waiting;
  dialling_ = Dialling::Start(loop_, resolver_, options_.address, options_.credentials, deadline_, std::move(events));
}

void Session::Impl::Connected(std::shared_ptr<grpc::Channel> channel) {
  auto call = std::make_unique<Call>(queue_, std::move(channel), options_.credentials.token, weak_from_this());
  call_ = call.get();
  queue_.Adopt(std::move(call));
  call_->Send(Encode(FromCaller(Open{options_.command, options_.caller})));
  start_limit_.expires_at(deadline_);
  start_limit_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    auto self = weak.lock();
    if (!self || error || self->started_ || self->call_ == nullptr) return;
    self->overdue_ = true;
    self->call_->Cancel();
  });
}

void Session::Impl::Hear(StatusOr<FromPod> message) {
  if (!message.ok()) {
    garbage_ = std::string(Message(message.status()));
    call_->Cancel();
    return call_->StartRead();
  }
  if (auto* output = std::get_if<Output>(&*message)) {
    held_ = true;
    if (events_.output) events_.output(output->err, std::move(output->bytes));
    return;  // Continue() reads on
  }
  call_->StartRead();
  if (std::holds_alternative<Started>(*message)) {
    started_ = true;
    start_limit_.cancel();
    if (events_.started) events_.started();
    if (events_.room) events_.room();
  } else if (auto* taken = std::get_if<InputTaken>(&*message)) {
    input_ahead_ -= std::min<size_t>(taken->bytes, input_ahead_);
    if (events_.room) events_.room();
  } else {
    ended_ = std::get<Ended>(*message);  // reported when the stream is over
  }
}

void Session::Impl::Continue() {
  if (std::exchange(held_, false) && call_ != nullptr) call_->StartRead();
}

void Session::Impl::Send(const FromCaller& message) {
  if (call_ == nullptr) return;
  if (const auto* input = std::get_if<Input>(&message)) input_ahead_ += Size(input->bytes);
  call_->Send(Encode(message));
}

void Session::Impl::Over(const grpc::Status& status) {
  call_ = nullptr;
  if (ended_) return End(*ended_);
  std::string detail = garbage_.empty() ? status.error_message() : garbage_;
  if (detail.empty()) detail = "it ended the session without a reason";
  if (!garbage_.empty() || IsRefusal(status)) return End({kExitBadConfiguration, detail});
  if (overdue_) {
    return End(
        {kExitRendezvousTimeout, fmt::format("it was reached, but it did not start the command within {:.6g} s{}{}",
                                             std::chrono::duration<double>(options_.timeout).count(),
                                             obstacle_.empty() ? "" : ": ", obstacle_)});
  }
  if (started_) return End({kExitPeerFailed, fmt::format("the connection was lost: {}", detail)});
  detail += net::SilentCloseHint(status);
  obstacle_ = detail;
  // The pod may be ending, or not serve yet. As far as is known, it has not started the command.
  dialling_->Again(fmt::format("{}: {}", options_.address, detail));
}

void Session::Impl::End(const Ended& ended) {
  dialling_.reset();
  start_limit_.cancel();
  if (events_.ended) std::exchange(events_.ended, nullptr)(ended);
}

void Session::Impl::Close() {
  events_ = {};
  dialling_.reset();
  start_limit_.cancel();
  if (call_ != nullptr) call_->Cancel();
}

Session::Session(asio::io_context& loop, net::GrpcQueue& queue, net::Resolver& resolver, Options options, Events events)
    : impl_(std::make_shared<Impl>(loop, queue, resolver, std::move(options), std::move(events))) {
  impl_->Dial();
}
Session::~Session() { impl_->Close(); }
void Session::Continue() { impl_->Continue(); }
size_t Session::InputRoom() const { return impl_->InputRoom(); }
void Session::Write(grpc::Slice bytes) { impl_->Send(Input{{std::move(bytes)}}); }
void Session::EndInput() { impl_->Send(InputEnded()); }
void Session::Signal(int signal) { impl_->Send(SignalSent{signal}); }

}  // namespace muster::rsh
