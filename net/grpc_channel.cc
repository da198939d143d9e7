// SPDX-License-Identifier: Apache-2.0
#include "net/grpc_channel.h"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/security/credentials.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <climits>
#include <utility>

#include "base/text.h"

namespace muster::net {
namespace {

constexpr unsigned kWriteLimitMs = 60'000;  // unacknowledged data ends the connection; heartbeats notice it earlier

grpc::ChannelArguments Arguments(const ChannelOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, INT_MAX);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, options.tuning.least_chunk);
  arguments.SetInt(GRPC_ARG_TCP_READ_CHUNK_SIZE, options.tuning.first_chunk);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, options.tuning.window);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, options.tuning.frame);
  if (options.tuning.keepalive_ms > 0) {
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, options.tuning.keepalive_ms);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, options.tuning.keepalive_ms);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
  }
  arguments.SetMaxReceiveMessageSize(options.longest_message);
  arguments.SetMaxSendMessageSize(-1);
  return arguments;
}

}  // namespace

std::unique_ptr<GrpcQueue> MakeCallQueue(boost::asio::io_context& loop) {
  PrepareGrpc();
  return std::make_unique<GrpcQueue>(loop, std::make_unique<grpc::CompletionQueue>());
}

std::shared_ptr<grpc::Channel> MakeChannel(const Connecting::Connected& connected, const std::string& named,
                                           const Credentials& credentials, const ChannelOptions& options) {
  grpc::ChannelArguments arguments = Arguments(options);
  if (!credentials.tls()) {
    unsigned limit = kWriteLimitMs;
    setsockopt(connected.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
    return grpc::CreateCustomInsecureChannelFromFd(connected.address, connected.fd, arguments);
  }
  close(connected.fd);  // it only proved that a process listens
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = credentials.tls_ca;
  tls.pem_private_key = credentials.tls_key;
  tls.pem_cert_chain = credentials.tls_cert;
  // Check the certificate against the name, not against its address.
  if (StatusOr<HostPort> name = ParseHostPort(named); name.ok()) arguments.SetSslTargetNameOverride(name->host);
  return grpc::CreateCustomChannel(fmt::format("{}:{}", connected.v6 ? "ipv6" : "ipv4", connected.address),
                                   grpc::SslCredentials(tls), arguments);
}

std::string_view SilentCloseHint(const grpc::Status& status) {
  const bool reset = status.error_message().find("reset") != std::string::npos;  // the peer's process died
  if (reset || status.error_code() != grpc::StatusCode::UNAVAILABLE) return "";
  return " before it sent anything (do both sides use TLS, with certificates they trust, or neither?)";
}

GrpcClientCall::GrpcClientCall(GrpcQueue& queue, std::shared_ptr<grpc::Channel> channel, const std::string& method,
                               const std::string& token)
    : queue_(queue), channel_(std::move(channel)) {
  if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
  grpc::GenericStub stub(channel_);
  stream_ = stub.PrepareCall(&context_, method, queue_.get());
  ++under_way_;
  stream_->StartCall(&start_tag_);
}

// A hook may cancel this call but cannot destroy it, since `under_way_` is decremented after the hook.
void GrpcClientCall::Ended(void (GrpcClientCall::*handle)(bool), bool ok) {
  (this->*handle)(ok);
  if (--under_way_ == 0 && finished_) queue_.Release(this);
}

void GrpcClientCall::StartEnded(bool ok) {
  if (!ok) return Finish();
  started_ = true;
  StartRead();
  Started();
  WriteNext();
}

void GrpcClientCall::StartRead() {
  ++under_way_;
  stream_->Read(&incoming_, &read_tag_);
}

void GrpcClientCall::ReadEnded(bool ok) {
  if (!ok) return Finish();
  Read();
}

void GrpcClientCall::Send(grpc::ByteBuffer bytes) {
  if (ended_ || last_written_) return;
  outbound_.push_back(std::move(bytes));
  WriteNext();
}

void GrpcClientCall::EndWriting() {
  last_written_ = true;
  WriteNext();
}

void GrpcClientCall::WriteNext() {
  if (!started_ || writing_ || ended_) return;
  if (outbound_.empty()) {
    if (!last_written_ || std::exchange(half_closed_, true)) return;
    ++under_way_;
    return stream_->WritesDone(&writes_done_tag_);
  }
  writing_ = true;
  ++under_way_;
  stream_->Write(outbound_.front(), &write_tag_);
}

void GrpcClientCall::WriteEnded(bool ok) {
  writing_ = false;
  outbound_.pop_front();
  if (!ok) outbound_.clear();  // the pending read fails too and ends the call
  WriteNext();
  Written();
}

void GrpcClientCall::Finish() {
  if (ended_) return;
  ended_ = true;
  ++under_way_;
  stream_->Finish(&status_, &finish_tag_);
}

void GrpcClientCall::FinishEnded(bool) {
  finished_ = true;
  Over(status_);
}

}  // namespace muster::net
