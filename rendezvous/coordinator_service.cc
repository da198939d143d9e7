// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/coordinator_service.h"

#include <boost/asio/steady_timer.hpp>
#include <list>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "net/grpc_port.h"
#include "rendezvous/wire.h"

namespace muster::rendezvous {

namespace asio = boost::asio;

namespace {

constexpr size_t kMaxQueuedMessages = 1000;
constexpr size_t kMaxQueuedBytes = size_t{1} << 20;
constexpr Duration kFirstMessageLimit = std::chrono::seconds(10);

}  // namespace

class CoordinatorService::Impl {
 public:
  Impl(asio::io_context& loop, Coordinator& coordinator, const Options& options)
      : loop_(loop), coordinator_(coordinator), options_(options), greeting_(loop) {}
  ~Impl();

  Status Serve();
  int port() const { return port_->port(); }

 private:
  class Stream;

  // The bytes of `message`, kept for the next peers that get the same message.
  const grpc::ByteBuffer& Encoded(const CoordinatorMessage& message);
  void WatchGreeting(Stream* stream);
  void ArmGreeting();

  asio::io_context& loop_;
  Coordinator& coordinator_;
  const Options options_;
  std::unique_ptr<net::GrpcPort> port_;

  // Streams without a message yet, the oldest first. One timer serves them all.
  std::list<std::pair<TimePoint, Stream*>> greetings_;
  asio::steady_timer greeting_;
  bool greeting_armed_ = false;

  std::optional<CoordinatorMessage> encoded_message_;
  grpc::ByteBuffer encoded_;
};

// One node's stream. Everything runs on the loop, except Arrived.
class CoordinatorService::Impl::Stream final : public Coordinator::Peer, public net::GrpcServerCall {
 public:
  Stream(net::GrpcPort& port, Impl& owner) : net::GrpcServerCall(port), owner_(owner) {}
  ~Stream() override { Leave(); }

  // Coordinator::Peer
  void Send(const CoordinatorMessage& message) override {
    if (!speaking()) return;
    const grpc::ByteBuffer& bytes = owner_.Encoded(message);
    // A single message may be larger than kMaxQueuedBytes (the status of many nodes).
    if (unsent() >= kMaxQueuedMessages || (unsent() > 0 && unsent_bytes() + bytes.Length() > kMaxQueuedBytes)) {
      log::Warning("a node does not read the coordinator's messages: its stream is closed", {{"peer", peer()}});
      FinishWhenSent();
      Cancel();  // the read fails, which disconnects the peer
      return;
    }
    net::GrpcServerCall::Send(bytes);
  }
  void Close() override { FinishWhenSent(); }

  void SaidNothing() { End(grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "no message within 10 s")); }

  std::list<std::pair<TimePoint, Stream*>>::iterator greeting;
  bool greeting_watched = false;

 private:
  void Called() override {
    if (method() != wire::kAttendMethod) {
      return End(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "this is a Muster rendezvous; it serves Attend only"));
    }
    owner_.WatchGreeting(this);
    StartRead();
  }

  void Arrived(const grpc::ByteBuffer& message) override {
    heard_ = std::make_unique<StatusOr<NodeMessage>>(wire::DecodeFromNode(net::FromBuffer(message)));
  }

  void Read(bool ok) override {
    std::unique_ptr<StatusOr<NodeMessage>> heard = std::move(heard_);
    ForgetGreeting();
    if (!ok) {
      Leave();
      return End(grpc::Status::OK);
    }
    if (finishing()) return;
    if (!heard->ok()) {
      Leave();
      return End(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, std::string(Message(heard->status()))));
    }
    if (!peer_) peer_ = owner_.coordinator_.Connect(this);
    owner_.coordinator_.Receive(*peer_, **heard);
    if (!finishing()) StartRead();
  }

  void Over() override { Leave(); }

  void End(const grpc::Status& status) {
    ForgetGreeting();
    Finish(status);
  }

  void Leave() {
    if (!peer_) return;
    owner_.coordinator_.Disconnect(*peer_);
    peer_.reset();
  }

  void ForgetGreeting() {
    if (!greeting_watched) return;
    greeting_watched = false;
    owner_.greetings_.erase(greeting);
  }

  Impl& owner_;
  std::unique_ptr<StatusOr<NodeMessage>> heard_;
  std::optional<PeerId> peer_;
};

Status CoordinatorService::Impl::Serve() {
  net::GrpcPort::Options serving;
  serving.host = options_.host;
  serving.port = options_.port;
  serving.credentials = options_.credentials;
  serving.keep_descriptors = options_.keep_descriptors;
  serving.longest_message = static_cast<int>(wire::kMaxFromNode);
  serving.turned_away = [this](const std::string& why) { coordinator_.TurnAway(why); };
  MUSTER_ASSIGN_OR_RETURN(port_, net::GrpcPort::Serve(loop_, serving, [this](net::GrpcPort& port) {
                            return std::make_unique<Stream>(port, *this);
                          }));
  return absl::OkStatus();
}

CoordinatorService::Impl::~Impl() {
  greeting_.cancel();
  port_.reset();  // destroys every stream
}

const grpc::ByteBuffer& CoordinatorService::Impl::Encoded(const CoordinatorMessage& message) {
  if (!encoded_message_ || *encoded_message_ != message) {
    encoded_ = net::ToBuffer(wire::Encode(message));
    encoded_message_ = message;
  }
  return encoded_;
}

void CoordinatorService::Impl::WatchGreeting(Stream* stream) {
  greetings_.emplace_back(MonotonicClock::now() + kFirstMessageLimit, stream);
  stream->greeting = std::prev(greetings_.end());
  stream->greeting_watched = true;
  ArmGreeting();
}

void CoordinatorService::Impl::ArmGreeting() {
  if (greeting_armed_ || greetings_.empty()) return;
  greeting_armed_ = true;
  greeting_.expires_at(greetings_.front().first);
  greeting_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;  // destroyed
    greeting_armed_ = false;
    TimePoint now = MonotonicClock::now();
    while (!greetings_.empty() && greetings_.front().first <= now) greetings_.front().second->SaidNothing();
    ArmGreeting();
  });
}

StatusOr<std::unique_ptr<CoordinatorService>> CoordinatorService::Serve(asio::io_context& loop,
                                                                        Coordinator& coordinator,
                                                                        const Options& options) {
  auto impl = std::make_unique<Impl>(loop, coordinator, options);
  MUSTER_RETURN_IF_ERROR(impl->Serve());
  return std::unique_ptr<CoordinatorService>(new CoordinatorService(std::move(impl)));
}

CoordinatorService::CoordinatorService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CoordinatorService::~CoordinatorService() = default;
int CoordinatorService::port() const { return impl_->port(); }

}  // namespace muster::rendezvous
