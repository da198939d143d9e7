#include "rendezvous/coordinator.h"

#include <grpc/grpc.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <list>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "base/descriptors.h"
#include "base/log.h"
#include "base/text.h"
#include "rendezvous/grpc_queue.h"
#include "rendezvous/wire.h"

namespace muster::rendezvous {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr size_t kMaxQueuedMessages = 1000;
constexpr size_t kMaxQueuedBytes = size_t{1} << 20;
constexpr Duration kFirstMessageLimit = std::chrono::seconds(10);
constexpr int kHandshakeLimitMs = 10'000;  // a connection that does not get as far as HTTP/2 settings
constexpr int kConnectionIdleMs = 30'000;  // a connection without a stream
constexpr int kStreamsPerConnection = 1024;
constexpr int kCallsExpected = 64;   // requests waiting for a new stream: so many may begin at once
constexpr int kListenAttempts = 50;  // half a millisecond apart, about
constexpr Duration kAcceptPause = std::chrono::milliseconds(200);  // after running out of descriptors

}  // namespace

class Coordinator::Impl {
 public:
  Impl(asio::io_context& loop, Conductor& conductor, const Options& options)
      : loop_(loop), conductor_(conductor), options_(options), acceptor_(loop), accept_pause_(loop), greeting_(loop) {}
  ~Impl();

  Status Listen();
  boost::system::error_code Bind(asio::ip::address* address);
  Status Start();
  int port() const { return port_; }

 private:
  class Stream;

  void Accept();
  void Accepted(int fd);
  void ExpectCall();
  // The bytes of `message`, made once for many peers that are told the same.
  const grpc::ByteBuffer& Encoded(const CoordinatorMessage& message);
  void WatchGreeting(Stream* stream);
  void ArmGreeting();

  asio::io_context& loop_;
  Conductor& conductor_;
  const Options options_;
  tcp::acceptor acceptor_;
  asio::steady_timer accept_pause_;
  bool said_out_of_descriptors_ = false;
  int port_ = 0;

  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<GrpcQueue> queue_;
  bool closing_ = false;

  // Streams that have said nothing yet, the oldest first: one timer for all.
  std::list<std::pair<TimePoint, Stream*>> greetings_;
  asio::steady_timer greeting_;
  bool greeting_armed_ = false;

  std::optional<CoordinatorMessage> encoded_message_;
  grpc::ByteBuffer encoded_;
};

// One stream, from waiting for it to its end. All on the loop, except DecodeTag::Arrived.
class Coordinator::Impl::Stream final : public Conductor::Peer, public GrpcQueue::Call {
 public:
  explicit Stream(Impl& owner) : owner_(owner) {}
  ~Stream() override { Leave(); }

  void Expect() {
    ++under_way_;
    auto* queue = static_cast<grpc::ServerCompletionQueue*>(owner_.queue_->get());
    owner_.service_.RequestCall(&context_, &stream_, queue, queue, &call_tag_);
  }

  // Conductor::Peer
  void Send(const CoordinatorMessage& message) override {
    if (finishing_ || closing_ || owner_.closing_) return;
    const grpc::ByteBuffer& bytes = owner_.Encoded(message);
    size_t length = bytes.Length();
    // A single message may be larger than the bound (the status of many nodes).
    if (!outbound_.empty() && (outbound_.size() >= kMaxQueuedMessages || outbound_bytes_ + length > kMaxQueuedBytes)) {
      log::Warning("a node does not read what the coordinator tells it: its stream is closed",
                   {{"peer", context_.peer()}});
      closing_ = true;
      context_.TryCancel();  // the read ends, and with it the peer
      return;
    }
    outbound_.push_back(bytes);
    outbound_bytes_ += length;
    WriteNext();
  }
  void Close() override {
    closing_ = true;
    if (!writing_ && outbound_.empty()) Finish(grpc::Status::OK);
  }

  // GrpcQueue::Call
  void Cancel() override {
    if (called_) context_.TryCancel();
  }

  void SaidNothing() { Finish(grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "no message within 10 s")); }

  std::list<std::pair<TimePoint, Stream*>>::iterator greeting;
  bool greeting_watched = false;

 private:
  template <void (Stream::*Handle)(bool)>
  struct PlainTag final : GrpcQueue::Tag {
    explicit PlainTag(Stream& stream) : stream_(stream) {}
    void Done(bool ok) override {
      --stream_.under_way_;
      (stream_.*Handle)(ok);
      stream_.ReleaseIfOver();
    }
    Stream& stream_;
  };
  struct ReadTag final : GrpcQueue::Tag {
    explicit ReadTag(Stream& stream) : stream_(stream) {}
    void Arrived(bool ok) override {
      if (!ok) return;
      stream_.heard_ = std::make_unique<StatusOr<NodeMessage>>(wire::DecodeFromNode(FromBuffer(stream_.incoming_)));
      stream_.incoming_.Clear();
    }
    void Done(bool ok) override {
      --stream_.under_way_;
      stream_.Read(ok);
      stream_.ReleaseIfOver();
    }
    Stream& stream_;
  };

  void Called(bool ok) {
    called_ = ok;
    if (!ok) {  // the server ends
      finishing_ = true;
      return;
    }
    owner_.ExpectCall();
    if (context_.method() != kAttendMethod) {
      Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "this is a Muster rendezvous; it serves Attend only"));
      return;
    }
    if (!Authorized()) return;
    owner_.WatchGreeting(this);
    StartRead();
  }

  bool Authorized() {
    const std::string& expected = owner_.options_.credentials.token;
    if (expected.empty()) return true;
    auto found = context_.client_metadata().find("authorization");
    if (found == context_.client_metadata().end()) {
      Finish(grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                          "this job asks for a token: give every node the same MUSTER_TOKEN_FILE "
                          "(or --rdzv-conf token_file=)"));
      return false;
    }
    std::string_view given(found->second.data(), found->second.size());
    constexpr std::string_view kBearer = "Bearer ";
    if (given.substr(0, kBearer.size()) != kBearer || !SameToken(expected, given.substr(kBearer.size()))) {
      Finish(grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                          "the token is not this job's: every node must read the same MUSTER_TOKEN_FILE "
                          "(or --rdzv-conf token_file=)"));
      return false;
    }
    return true;
  }

  void StartRead() {
    ++under_way_;
    stream_.Read(&incoming_, &read_tag_);
  }

  void Read(bool ok) {
    std::unique_ptr<StatusOr<NodeMessage>> heard = std::move(heard_);
    ForgetGreeting();
    if (!ok) {
      Leave();
      Finish(grpc::Status::OK);
      return;
    }
    if (finishing_) return;
    if (!heard->ok()) {
      Leave();
      Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, std::string(Message(heard->status()))));
      return;
    }
    if (!peer_) peer_ = owner_.conductor_.Connect(this);
    owner_.conductor_.Receive(*peer_, **heard);
    if (!finishing_) StartRead();
  }

  void WriteNext() {
    if (writing_ || outbound_.empty() || finishing_) return;
    writing_ = true;
    ++under_way_;
    stream_.Write(outbound_.front(), &write_tag_);
  }

  void Written(bool ok) {
    writing_ = false;
    outbound_bytes_ -= outbound_.front().Length();
    outbound_.pop_front();
    if (!ok) {
      outbound_.clear();  // the read ends too, and says so
      outbound_bytes_ = 0;
      return;
    }
    if (!outbound_.empty()) {
      WriteNext();
    } else if (closing_) {
      Finish(grpc::Status::OK);
    }
  }

  void Finish(const grpc::Status& status) {
    if (finishing_) return;
    finishing_ = true;
    ForgetGreeting();
    if (owner_.closing_) return;
    ++under_way_;
    stream_.Finish(status, &finish_tag_);
  }
  void Finished(bool) { Leave(); }

  void Leave() {
    if (!peer_) return;
    owner_.conductor_.Disconnect(*peer_);
    peer_.reset();
  }

  void ForgetGreeting() {
    if (!greeting_watched) return;
    greeting_watched = false;
    owner_.greetings_.erase(greeting);
  }

  void ReleaseIfOver() {
    if (under_way_ > 0 || !finishing_ || owner_.closing_) return;
    Leave();
    owner_.queue_->Release(this);
  }

  Impl& owner_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::ByteBuffer incoming_;
  std::unique_ptr<StatusOr<NodeMessage>> heard_;
  std::list<grpc::ByteBuffer> outbound_;  // the first one is being written while `writing_`
  size_t outbound_bytes_ = 0;
  std::optional<PeerId> peer_;
  int under_way_ = 0;
  bool called_ = false;
  bool writing_ = false;
  bool closing_ = false;    // after what is queued
  bool finishing_ = false;  // Finish was started: the end
  PlainTag<&Stream::Called> call_tag_{*this};
  ReadTag read_tag_{*this};
  PlainTag<&Stream::Written> write_tag_{*this};
  PlainTag<&Stream::Finished> finish_tag_{*this};

  friend class Impl;
};

Status Coordinator::Impl::Listen() {
  boost::system::error_code error;
  asio::ip::address address = asio::ip::address_v6::any();
  if (!options_.host.empty()) {
    address = asio::ip::make_address(options_.host, error);
    if (error) {
      return absl::InvalidArgumentError(fmt::format(
          "cannot listen on \"{}\": give a numeric address of this machine, such as 0.0.0.0", options_.host));
    }
  }
  if (options_.port < 0 || options_.port > 65535) {
    return absl::InvalidArgumentError(fmt::format("cannot listen on port {}: it must be 0 to 65535", options_.port));
  }
  // Two that listen in the same moment may both be refused: each is seen as listening before it is checked whether
  // anybody else is (Linux, inet_csk_listen_start). Who comes again finds the port free, or somebody there.
  std::minstd_rand random{std::random_device{}()};
  for (int attempt = 0; attempt < kListenAttempts; ++attempt) {
    error = Bind(&address);
    if (error) break;  // bind knows of every listener
    acceptor_.listen(4096, error);
    if (error != asio::error::address_in_use) break;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
  }
  if (error == asio::error::address_in_use) {
    return absl::AlreadyExistsError(fmt::format(
        "port {} is taken by another process on this machine; free it or choose another one", options_.port));
  }
  if (error) {
    return absl::UnavailableError(
        fmt::format("cannot listen on {}:{}: {}", address.to_string(), options_.port, error.message()));
  }
  port_ = acceptor_.local_endpoint(error).port();
  acceptor_.non_blocking(true, error);
  return absl::OkStatus();
}

// Opens and binds a new socket. `address` becomes IPv4's any where every address is wanted and there is no IPv6.
boost::system::error_code Coordinator::Impl::Bind(asio::ip::address* address) {
  auto bind = [this](const asio::ip::address& to) {
    boost::system::error_code error;
    acceptor_.close(error);
    acceptor_.open(to.is_v6() ? tcp::v6() : tcp::v4(), error);
    if (!error && to.is_v6()) acceptor_.set_option(asio::ip::v6_only(!options_.host.empty()), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);  // past connections in TIME_WAIT only
    if (!error) acceptor_.bind({to, static_cast<uint16_t>(options_.port)}, error);
    return error;
  };
  boost::system::error_code error = bind(*address);
  if (!error || error == asio::error::address_in_use || !options_.host.empty() || !address->is_v6()) return error;
  *address = asio::ip::address_v4::any();
  return bind(*address);
}

Status Coordinator::Impl::Start() {
  PrepareGrpc();
  grpc::ServerBuilder builder;
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  const Credentials& own = options_.credentials;
  MUSTER_RETURN_IF_ERROR(CheckTls(own));
  if (own.tls()) {
    grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    tls.pem_root_certs = own.tls_ca;
    tls.pem_key_cert_pairs.push_back({own.tls_key, own.tls_cert});
    credentials = grpc::SslServerCredentials(tls);
  }
  connections_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  builder.RegisterAsyncGenericService(&service_);
  builder.SetMaxReceiveMessageSize(static_cast<int>(wire::kMaxFromNode));
  builder.SetMaxSendMessageSize(-1);
  for (auto [name, value] : std::initializer_list<std::pair<const char*, int>>{
           {GRPC_ARG_ALLOW_REUSEPORT, 0},
           {GRPC_ARG_HTTP2_BDP_PROBE, 0},
           {GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnection},
           {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeLimitMs},
           {GRPC_ARG_MAX_CONNECTION_IDLE_MS, kConnectionIdleMs},
           {GRPC_ARG_HTTP2_HPACK_TABLE_SIZE_DECODER, 0},
           {GRPC_ARG_HTTP2_HPACK_TABLE_SIZE_ENCODER, 0},
           {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000},
           {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
           {GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, 512},
           {GRPC_ARG_TCP_READ_CHUNK_SIZE, 1024},
           {GRPC_ARG_TCP_TX_ZEROCOPY_ENABLED, 0},
       }) {
    builder.AddChannelArgument(name, value);
  }
  std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    // The queue must be empty before it goes.
    queue->Shutdown();
    void* tag;
    bool ok;
    while (queue->Next(&tag, &ok)) {
    }
    return absl::InternalError("gRPC cannot serve the control port");
  }
  queue_ = std::make_unique<GrpcQueue>(loop_, std::move(queue));
  for (int i = 0; i < kCallsExpected; ++i) ExpectCall();
  Accept();
  return absl::OkStatus();
}

Coordinator::Impl::~Impl() {
  closing_ = true;
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  accept_pause_.cancel();
  greeting_.cancel();
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now());  // cancels what is open
    queue_.reset();                                       // and waits for the rest
  }
}

// Waits for readiness and accepts itself: gRPC's own listener ends for good when descriptors run out.
void Coordinator::Impl::Accept() {
  acceptor_.async_wait(tcp::acceptor::wait_read, [this](const boost::system::error_code& error) {
    if (error) return;  // destroyed
    for (int i = 0; i < 64; ++i) {
      bool room = DescriptorsLeft(acceptor_.native_handle(), options_.keep_descriptors, 2);
      int fd = room ? accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
      if (!room) errno = EMFILE;
      if (fd >= 0) {
        said_out_of_descriptors_ = false;
        Accepted(fd);
        continue;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        if (!said_out_of_descriptors_) {
          log::Warning("no file descriptor is left for a new node; raise the limit (ulimit -n)",
                       {{"error", std::string(Message(ErrnoStatus(errno, "accept")))}});
        }
        said_out_of_descriptors_ = true;
        accept_pause_.expires_after(kAcceptPause);
        accept_pause_.async_wait([this](const boost::system::error_code& cancelled) {
          if (!cancelled) Accept();
        });
        return;
      }
      // ECONNABORTED and the network errors of accept(2) concern that one connection.
    }
    Accept();
  });
}

void Coordinator::Impl::Accepted(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.listener_fd = -1;
  connection.fd = fd;
  connections_->HandleNewConnection(&connection);
}

void Coordinator::Impl::ExpectCall() {
  if (closing_) return;
  auto stream = std::make_unique<Stream>(*this);
  Stream* expected = stream.get();
  queue_->Adopt(std::move(stream));
  expected->Expect();
}

const grpc::ByteBuffer& Coordinator::Impl::Encoded(const CoordinatorMessage& message) {
  if (!encoded_message_ || *encoded_message_ != message) {
    encoded_ = ToBuffer(wire::Encode(message));
    encoded_message_ = message;
  }
  return encoded_;
}

void Coordinator::Impl::WatchGreeting(Stream* stream) {
  greetings_.emplace_back(MonotonicClock::now() + kFirstMessageLimit, stream);
  stream->greeting = std::prev(greetings_.end());
  stream->greeting_watched = true;
  ArmGreeting();
}

void Coordinator::Impl::ArmGreeting() {
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

StatusOr<std::unique_ptr<Coordinator>> Coordinator::Serve(asio::io_context& loop, Conductor& conductor,
                                                          const Options& options) {
  auto impl = std::make_unique<Impl>(loop, conductor, options);
  MUSTER_RETURN_IF_ERROR(impl->Listen());
  MUSTER_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Coordinator>(new Coordinator(std::move(impl)));
}

Coordinator::Coordinator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Coordinator::~Coordinator() = default;
int Coordinator::port() const { return impl_->port(); }

}  // namespace muster::rendezvous
