// SPDX-License-Identifier: Apache-2.0
#include "net/grpc_port.h"

#include <grpc/grpc.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <random>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/host_names.h"
#include "base/log.h"
#include "base/text.h"
#include "net/lobby.h"

namespace muster::net {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr int kHandshakeLimitMs = 10'000;  // from the lobby until a connection has sent its HTTP/2 settings
constexpr int kConnectionIdleMs = 30'000;  // for a connection without a stream
constexpr int kStreamsPerConnection = 1024;
constexpr int kCallsExpected = 64;                                 // streams that may begin at the same time
constexpr int kListenAttempts = 50;                                // half a millisecond apart on average
constexpr Duration kAcceptPause = std::chrono::milliseconds(200);  // after running out of descriptors

// The host of a gRPC peer: "10.0.0.7" of "ipv4:10.0.0.7:4711", "::1" of "ipv6:%5B::1%5D:4711".
std::string HostOfPeer(std::string_view peer) {
  peer = peer.substr(peer.find(':') + 1);
  peer = peer.substr(0, peer.rfind(':'));
  if (peer.starts_with("%5B")) peer.remove_prefix(3);
  if (peer.ends_with("%5D")) peer.remove_suffix(3);
  return std::string(peer);
}

}  // namespace

class GrpcPort::Impl {
 public:
  Impl(asio::io_context& loop, const Options& options, MakeCall make_call)
      : loop_(loop),
        options_(options),
        make_call_(std::move(make_call)),
        acceptor_(loop),
        accept_pause_(loop),
        lobby_(loop, [this](int fd) { HandOver(fd); }) {}

  Status Listen();
  void Begin(GrpcPort& self);
  void Close();

 private:
  friend class GrpcPort;
  friend class GrpcServerCall;

  boost::system::error_code Bind(asio::ip::address* address);
  void Accept();
  void HandOver(int fd);
  Status Start();
  void ExpectCall();

  asio::io_context& loop_;
  const Options options_;
  const MakeCall make_call_;
  GrpcPort* self_ = nullptr;
  tcp::acceptor acceptor_;
  asio::steady_timer accept_pause_;
  Lobby lobby_;
  bool said_out_of_descriptors_ = false;
  int port_ = 0;

  // Made for the first connection: most nodes only stand by, and a server costs a thread and memory.
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<GrpcQueue> queue_;
  bool closing_ = false;
};

Status GrpcPort::Impl::Listen() {
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
  // If two processes listen in the same moment, the kernel may refuse both: each socket counts as listening before the
  // check for others (Linux, inet_csk_listen_start). So try again: it succeeds, or bind sees the other one.
  std::minstd_rand random{std::random_device{}()};
  for (int attempt = 0; attempt < kListenAttempts; ++attempt) {
    error = Bind(&address);
    if (error) break;  // bind sees every listener
    acceptor_.listen(4096, error);
    if (error != asio::error::address_in_use) break;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
  }
  if (error) return ListenStatus(error.value(), options_.host, options_.port);
  port_ = acceptor_.local_endpoint(error).port();
  acceptor_.non_blocking(true, error);
  return absl::OkStatus();
}

// Opens and binds a new socket. Without IPv6, "every address" (::) becomes IPv4's 0.0.0.0 in `address`.
boost::system::error_code GrpcPort::Impl::Bind(asio::ip::address* address) {
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

Status GrpcPort::Impl::Start() {
  grpc::ServerBuilder builder;
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  const Credentials& own = options_.credentials;
  if (own.tls()) {
    grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    tls.pem_root_certs = own.tls_ca;
    tls.pem_key_cert_pairs.push_back({own.tls_key, own.tls_cert});
    credentials = grpc::SslServerCredentials(tls);
  }
  connections_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  builder.RegisterAsyncGenericService(&service_);
  builder.SetMaxReceiveMessageSize(options_.longest_message);
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
           {GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, options_.tuning.least_chunk},
           {GRPC_ARG_TCP_READ_CHUNK_SIZE, options_.tuning.first_chunk},
           {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, options_.tuning.frame},
           {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, options_.tuning.window},
           {GRPC_ARG_TCP_TX_ZEROCOPY_ENABLED, 0},
       }) {
    builder.AddChannelArgument(name, value);
  }
  if (options_.tuning.keepalive_ms > 0) {
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, options_.tuning.keepalive_ms);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, options_.tuning.keepalive_ms);
  }
  std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    // gRPC requires an empty queue before its destruction.
    queue->Shutdown();
    void* tag;
    bool ok;
    while (queue->Next(&tag, &ok)) {
    }
    return absl::InternalError("gRPC cannot serve the control port");
  }
  queue_ = std::make_unique<GrpcQueue>(loop_, std::move(queue));
  for (int i = 0; i < kCallsExpected; ++i) ExpectCall();
  return absl::OkStatus();
}

// Accepts connections itself, because gRPC's listener stops for good when descriptors run out.
void GrpcPort::Impl::Accept() {
  acceptor_.async_wait(tcp::acceptor::wait_read, [this](const boost::system::error_code& error) {
    if (error) return;  // destroyed
    for (int i = 0; i < 64; ++i) {
      const auto left = [this] { return DescriptorsLeft(acceptor_.native_handle(), options_.keep_descriptors); };
      const bool room = left() || (lobby_.CloseOldest() && left());
      int fd = room ? accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
      if (!room) errno = EMFILE;
      if (fd >= 0) {
        said_out_of_descriptors_ = false;
        lobby_.Admit(Descriptor(fd));
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
      // ECONNABORTED and the network errors of accept(2) concern only that connection: go on.
    }
    Accept();
  });
}

void GrpcPort::Impl::HandOver(int fd) {
  if (Status status = server_ == nullptr ? Start() : absl::OkStatus(); !status.ok()) {
    log::Error(Message(status));
    close(fd);
    return;
  }
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.listener_fd = -1;
  connection.fd = fd;
  connections_->HandleNewConnection(&connection);
}

void GrpcPort::Impl::Begin(GrpcPort& self) {
  self_ = &self;
  Accept();
}

void GrpcPort::Impl::ExpectCall() {
  if (closing_) return;
  std::unique_ptr<GrpcServerCall> call = make_call_(*self_);
  GrpcServerCall* expected = call.get();
  queue_->Adopt(std::move(call));
  expected->Expect();
}

void GrpcPort::Impl::Close() {
  closing_ = true;
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  accept_pause_.cancel();
  lobby_.Close();
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());  // cancels open calls
  queue_.reset();                                       // waits for their operations
}

StatusOr<std::unique_ptr<GrpcPort>> GrpcPort::Serve(asio::io_context& loop, const Options& options,
                                                    MakeCall make_call) {
  PrepareGrpc();
  MUSTER_RETURN_IF_ERROR(CheckTls(options.credentials));
  auto impl = std::make_unique<Impl>(loop, options, std::move(make_call));
  MUSTER_RETURN_IF_ERROR(impl->Listen());
  std::unique_ptr<GrpcPort> port(new GrpcPort(std::move(impl)));
  port->impl_->Begin(*port);
  return port;
}

GrpcPort::GrpcPort(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GrpcPort::~GrpcPort() { impl_->Close(); }
int GrpcPort::port() const { return impl_->port_; }
bool GrpcPort::closing() const { return impl_->closing_; }

void GrpcServerCall::Expect() {
  ++under_way_;
  auto* queue = static_cast<grpc::ServerCompletionQueue*>(port_.impl_->queue_->get());
  port_.impl_->service_.RequestCall(&context_, &stream_, queue, queue, &call_tag_);
}

void GrpcServerCall::Ended(void (GrpcServerCall::*handle)(bool), bool ok) {
  (this->*handle)(ok);
  if (--under_way_ > 0 || !finishing_ || port_.closing()) return;
  Over();
  port_.impl_->queue_->Release(this);
}

void GrpcServerCall::CallEnded(bool ok) {
  called_ = ok;
  if (!ok) {  // the server shuts down
    finishing_ = true;
    return;
  }
  port_.impl_->ExpectCall();
  if (Authorized()) Called();
}

bool GrpcServerCall::Authorized() {
  const std::string& expected = port_.impl_->options_.credentials.token;
  if (expected.empty()) return true;
  auto found = context_.client_metadata().find("authorization");
  if (found == context_.client_metadata().end()) {
    return TurnAway(
        "this job requires a token: give every node the same MUSTER_TOKEN_FILE (or --rdzv-conf token_file=)");
  }
  std::string_view given(found->second.data(), found->second.size());
  constexpr std::string_view kBearer = "Bearer ";
  if (given.substr(0, kBearer.size()) != kBearer || !SameToken(expected, given.substr(kBearer.size()))) {
    return TurnAway(
        "the token is not this job's: every node must read the same MUSTER_TOKEN_FILE (or --rdzv-conf token_file=)");
  }
  return true;
}

bool GrpcServerCall::TurnAway(const char* why) {
  Finish(grpc::Status(grpc::StatusCode::UNAUTHENTICATED, why));
  if (const auto& told = port_.impl_->options_.turned_away) told(fmt::format("{}: {}", HostOfPeer(peer()), why));
  return false;
}

void GrpcServerCall::StartRead() {
  ++under_way_;
  stream_.Read(&incoming_, &read_tag_);
}

bool GrpcServerCall::speaking() const { return !finishing_ && !closing_ && !port_.closing(); }

void GrpcServerCall::Send(const grpc::ByteBuffer& bytes) {
  if (!speaking()) return;
  outbound_.push_back(bytes);
  outbound_bytes_ += bytes.Length();
  WriteNext();
}

void GrpcServerCall::FinishWhenSent() {
  closing_ = true;
  WriteNext();
}

void GrpcServerCall::WriteNext() {
  if (writing_ || finishing_ || port_.closing()) return;
  if (outbound_.empty()) {
    if (closing_) Finish(grpc::Status::OK);
    return;
  }
  writing_ = true;
  ++under_way_;
  stream_.Write(outbound_.front(), &write_tag_);
}

void GrpcServerCall::WriteEnded(bool ok) {
  writing_ = false;
  outbound_bytes_ -= outbound_.front().Length();
  outbound_.pop_front();
  if (!ok) {
    outbound_.clear();  // the pending read fails too and reports the end
    outbound_bytes_ = 0;
  }
  WriteNext();
  Written();
}

void GrpcServerCall::Finish(const grpc::Status& status) {
  if (finishing_) return;
  finishing_ = true;
  if (port_.closing()) return;
  ++under_way_;
  stream_.Finish(status, &finish_tag_);
}

}  // namespace muster::net
