// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/grpc_link.h"

#include <utility>

#include "base/text.h"
#include "net/connect.h"
#include "net/grpc_channel.h"
#include "rendezvous/wire.h"

namespace muster::rendezvous {

namespace asio = boost::asio;
using attendance::Loss;

namespace {

constexpr size_t kMaxQueuedMessages = 1000;

net::ChannelOptions LinkOptions() { return {.longest_message = static_cast<int>(wire::kMaxFromCoordinator)}; }

// The stream. The queue owns it until gRPC has finished every operation; the Link only points at it.
class Talk final : public net::GrpcClientCall {
 public:
  Talk(net::GrpcQueue& queue, std::shared_ptr<grpc::Channel> channel, const std::string& token, Link::Events events)
      : net::GrpcClientCall(queue, std::move(channel), wire::kAttendMethod, token), events_(std::move(events)) {}
  ~Talk() override { *handle_ = nullptr; }

  // Points to this object, and to null after its destruction: a link may outlive the queue that owns its stream.
  std::shared_ptr<Talk*> handle() const { return handle_; }

  void Send(const NodeMessage& message) {
    if (started() && unsent() < kMaxQueuedMessages) net::GrpcClientCall::Send(net::ToBuffer(wire::Encode(message)));
  }
  // The coordinator ends the stream after it has read everything.
  void HangUp(std::function<void()> done) {
    if (!started() || ended()) return done();
    hung_up_ = std::move(done);
    EndWriting();
  }
  // The Link is gone: ends the stream without another callback.
  void Drop() {
    events_ = {};
    hung_up_ = nullptr;
    Cancel();
  }

 private:
  void Started() override {
    if (events_.connected) Callback(events_.connected);
  }

  void Arrived(const grpc::ByteBuffer& message) override {
    heard_ = std::make_unique<StatusOr<CoordinatorMessage>>(wire::DecodeFromCoordinator(net::FromBuffer(message)));
  }

  void Read() override {
    std::unique_ptr<StatusOr<CoordinatorMessage>> heard = std::move(heard_);
    if (!heard->ok()) {
      garbage_ = std::string(Message(heard->status()));
      Cancel();
    } else {
      spoken_to_ = true;
    }
    StartRead();
    if (heard->ok() && events_.message) Callback(events_.message, **std::move(heard));
  }

  // Calls a copy: the callback may destroy the link, and with it the original function.
  template <typename Function, typename... Arguments>
  static void Callback(Function function, Arguments&&... arguments) {
    function(std::forward<Arguments>(arguments)...);
  }

  void Over(const grpc::Status& status) override {
    Loss loss = Loss::kClosed;
    std::string detail = status.ok() ? "the coordinator closed the stream" : status.error_message();
    if (!garbage_.empty()) detail = garbage_;
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) loss = Loss::kUnauthenticated;
    if (!spoken_to_) detail += net::SilentCloseHint(status);
    if (hung_up_) Callback(std::exchange(hung_up_, nullptr));
    if (events_.closed) Callback(events_.closed, loss, detail);
  }

  Link::Events events_;
  std::unique_ptr<StatusOr<CoordinatorMessage>> heard_;
  std::function<void()> hung_up_;
  std::string garbage_;
  const std::shared_ptr<Talk*> handle_ = std::make_shared<Talk*>(this);
  bool spoken_to_ = false;  // a message has arrived
};

class StreamLink final : public Link {
 public:
  StreamLink(net::GrpcQueue& queue, const std::shared_ptr<grpc::Channel>& channel, const std::string& token,
             Events events) {
    auto talk = std::make_unique<Talk>(queue, channel, token, std::move(events));
    talk_ = talk->handle();
    queue.Adopt(std::move(talk));
  }
  ~StreamLink() override {
    if (*talk_ != nullptr) (*talk_)->Drop();
  }
  void Send(const NodeMessage& message) override {
    if (*talk_ != nullptr) (*talk_)->Send(message);
  }
  void HangUp(std::function<void()> done) override {
    if (*talk_ == nullptr) return done();
    (*talk_)->HangUp(std::move(done));
  }

 private:
  std::shared_ptr<Talk*> talk_;
};

class DialledLink final : public Link {
 public:
  DialledLink(asio::io_context& loop, net::GrpcQueue& queue, net::Resolver& resolver, const std::string& address,
              const net::Credentials& credentials, Duration limit, Events events)
      : queue_(queue), address_(address), credentials_(credentials), events_(std::move(events)) {
    connecting_ = net::Connecting::Start(loop, resolver, address, limit,
                                         {[this](const net::Connecting::Connected& connected) { Connected(connected); },
                                          [this](const net::Connecting::Failed& failed) {
                                            auto closed = events_.closed;
                                            closed(failed.loss, failed.detail);
                                          }});
  }

  void Send(const NodeMessage& message) override {
    if (stream_ != nullptr) stream_->Send(message);
  }
  void HangUp(std::function<void()> done) override {
    if (stream_ == nullptr) return done();
    stream_->HangUp(std::move(done));
  }

 private:
  void Connected(const net::Connecting::Connected& connected) {
    std::shared_ptr<grpc::Channel> channel = net::MakeChannel(connected, address_, credentials_, LinkOptions());
    auto closed = [this](Loss loss, const std::string& detail) {
      auto report = events_.closed;
      report(loss, fmt::format("{}: {}", address_, detail));
    };
    stream_ = TalkOn(queue_, channel, credentials_.token, {events_.connected, events_.message, closed});
  }

  net::GrpcQueue& queue_;
  const std::string address_;
  const net::Credentials credentials_;
  const Events events_;
  std::unique_ptr<net::Connecting> connecting_;
  std::unique_ptr<Link> stream_;
};

}  // namespace

std::unique_ptr<Link> DialGrpc(asio::io_context& loop, net::GrpcQueue& queue, net::Resolver& resolver,
                               const std::string& address, const net::Credentials& credentials, Duration limit,
                               Link::Events events) {
  return std::make_unique<DialledLink>(loop, queue, resolver, address, credentials, limit, std::move(events));
}

std::shared_ptr<grpc::Channel> ChannelOn(int fd, const std::string& address) {
  return net::MakeChannel({.fd = fd, .address = address}, address, net::Credentials(), LinkOptions());
}

std::unique_ptr<Link> TalkOn(net::GrpcQueue& queue, const std::shared_ptr<grpc::Channel>& channel,
                             const std::string& token, Link::Events events) {
  return std::make_unique<StreamLink>(queue, channel, token, std::move(events));
}

}  // namespace muster::rendezvous
