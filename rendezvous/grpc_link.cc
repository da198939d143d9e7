#include "rendezvous/grpc_link.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <list>
#include <utility>

#include "base/text.h"
#include "rendezvous/connect.h"
#include "rendezvous/wire.h"

namespace muster::rendezvous {

namespace asio = boost::asio;
using attendance::Loss;

namespace {

constexpr size_t kMaxQueuedMessages = 1000;
constexpr unsigned kWriteLimitMs = 60'000;  // unacknowledged data ends the connection; beats notice long before

grpc::ChannelArguments LinkArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, INT_MAX);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, 512);
  arguments.SetInt(GRPC_ARG_TCP_READ_CHUNK_SIZE, 1024);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(wire::kMaxFromCoordinator));
  arguments.SetMaxSendMessageSize(-1);
  return arguments;
}

// The stream itself. Owned by the queue until gRPC has given every operation back; the Link only points at it.
class Talk final : public GrpcQueue::Call {
 public:
  Talk(GrpcQueue& queue, std::shared_ptr<grpc::Channel> channel, const std::string& token, Link::Events events)
      : queue_(queue), channel_(std::move(channel)), events_(std::move(events)) {
    if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
    grpc::GenericStub stub(channel_);
    stream_ = stub.PrepareCall(&context_, kAttendMethod, queue_.get());
    ++under_way_;
    stream_->StartCall(&start_tag_);
  }
  ~Talk() override { *handle_ = nullptr; }

  // Points here for as long as this lives: a link may outlive the queue that owns its stream.
  std::shared_ptr<Talk*> handle() const { return handle_; }

  void Send(const NodeMessage& message) {
    if (!started_ || ended_ || outbound_.size() >= kMaxQueuedMessages) return;
    outbound_.push_back(ToBuffer(wire::Encode(message)));
    WriteNext();
  }
  void Flush(std::function<void()> done) {
    flushed_ = std::move(done);
    FlushedIfSo();
  }
  // The Link is gone: no callback any more.
  void Drop() {
    events_ = {};
    flushed_ = nullptr;
    context_.TryCancel();
  }
  void Cancel() override { context_.TryCancel(); }

 private:
  template <void (Talk::*Handle)(bool)>
  struct PlainTag final : GrpcQueue::Tag {
    explicit PlainTag(Talk& talk) : talk_(talk) {}
    void Done(bool ok) override { talk_.Ended(Handle, ok); }
    Talk& talk_;
  };
  struct ReadTag final : GrpcQueue::Tag {
    explicit ReadTag(Talk& talk) : talk_(talk) {}
    void Arrived(bool ok) override {
      if (!ok) return;
      talk_.heard_ =
          std::make_unique<StatusOr<CoordinatorMessage>>(wire::DecodeFromCoordinator(FromBuffer(talk_.incoming_)));
      talk_.incoming_.Clear();
    }
    void Done(bool ok) override { talk_.Ended(&Talk::Read, ok); }
    Talk& talk_;
  };

  // The callbacks may destroy the Link (then Drop was called), never this: `under_way_` is counted down last.
  void Ended(void (Talk::*handle)(bool), bool ok) {
    (this->*handle)(ok);
    if (--under_way_ == 0 && finished_) queue_.Release(this);
  }

  void Started(bool ok) {
    if (!ok) return Finish();
    started_ = true;
    StartRead();
    if (events_.connected) Callback(events_.connected);
  }

  void StartRead() {
    ++under_way_;
    stream_->Read(&incoming_, &read_tag_);
  }

  void Read(bool ok) {
    std::unique_ptr<StatusOr<CoordinatorMessage>> heard = std::move(heard_);
    if (!ok) return Finish();
    if (!heard->ok()) {
      garbage_ = std::string(Message(heard->status()));
      context_.TryCancel();
      return Finish();
    }
    spoken_to_ = true;
    StartRead();
    if (events_.message) Callback(events_.message, **std::move(heard));
  }

  // Calls a copy: the callback may drop the link, and with it the function it came from.
  template <typename Function, typename... Arguments>
  static void Callback(Function function, Arguments&&... arguments) {
    function(std::forward<Arguments>(arguments)...);
  }

  void WriteNext() {
    if (writing_ || outbound_.empty() || ended_) return;
    writing_ = true;
    ++under_way_;
    stream_->Write(outbound_.front(), &write_tag_);
  }
  void Written(bool ok) {
    writing_ = false;
    outbound_.pop_front();
    if (!ok) outbound_.clear();  // the read ends too
    WriteNext();
    FlushedIfSo();
  }
  void FlushedIfSo() {
    if (flushed_ && ((outbound_.empty() && !writing_) || ended_)) Callback(std::exchange(flushed_, nullptr));
  }

  void Finish() {
    if (ended_) return;
    ended_ = true;
    ++under_way_;
    stream_->Finish(&status_, &finish_tag_);
  }
  void Finished(bool) {
    finished_ = true;
    Loss loss = Loss::kClosed;
    std::string detail = status_.ok() ? "the coordinator ended the conversation" : status_.error_message();
    if (!garbage_.empty()) detail = garbage_;
    if (status_.error_code() == grpc::StatusCode::UNAUTHENTICATED) loss = Loss::kUnauthenticated;
    // Where only one side uses TLS, or does not trust the other, gRPC tells no more than that the socket was closed.
    bool reset = detail.find("reset") != std::string::npos;  // by a process that died meanwhile
    if (!spoken_to_ && !reset && status_.error_code() == grpc::StatusCode::UNAVAILABLE) {
      detail += " before it said anything (do both sides use TLS, with certificates they trust, or neither?)";
    }
    if (flushed_) Callback(std::exchange(flushed_, nullptr));
    if (events_.closed) Callback(events_.closed, loss, detail);
  }

  GrpcQueue& queue_;
  std::shared_ptr<grpc::Channel> channel_;
  Link::Events events_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer incoming_;
  std::unique_ptr<StatusOr<CoordinatorMessage>> heard_;
  std::list<grpc::ByteBuffer> outbound_;
  std::function<void()> flushed_;
  grpc::Status status_;
  std::string garbage_;
  const std::shared_ptr<Talk*> handle_ = std::make_shared<Talk*>(this);
  int under_way_ = 0;
  bool started_ = false;
  bool spoken_to_ = false;  // a message was heard
  bool writing_ = false;
  bool ended_ = false;
  bool finished_ = false;
  PlainTag<&Talk::Started> start_tag_{*this};
  ReadTag read_tag_{*this};
  PlainTag<&Talk::Written> write_tag_{*this};
  PlainTag<&Talk::Finished> finish_tag_{*this};
};

class StreamLink final : public Link {
 public:
  StreamLink(GrpcQueue& queue, const std::shared_ptr<grpc::Channel>& channel, const std::string& token, Events events) {
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
  void Flush(std::function<void()> done) override {
    if (*talk_ == nullptr) return done();
    (*talk_)->Flush(std::move(done));
  }

 private:
  std::shared_ptr<Talk*> talk_;
};

class DialledLink final : public Link {
 public:
  DialledLink(asio::io_context& loop, GrpcQueue& queue, Resolver& resolver, const std::string& address,
              const Credentials& credentials, Duration limit, Events events)
      : queue_(queue), address_(address), credentials_(credentials), events_(std::move(events)) {
    connecting_ = Connecting::Start(loop, resolver, address, limit,
                                    {[this](const Connecting::Connected& connected) { Connected(connected); },
                                     [this](const Connecting::Failed& failed) {
                                       auto closed = events_.closed;
                                       closed(failed.loss, failed.detail);
                                     }});
  }

  void Send(const NodeMessage& message) override {
    if (stream_ != nullptr) stream_->Send(message);
  }
  void Flush(std::function<void()> done) override {
    if (stream_ == nullptr) return done();
    stream_->Flush(std::move(done));
  }

 private:
  void Connected(const Connecting::Connected& connected) {
    std::shared_ptr<grpc::Channel> channel;
    if (credentials_.tls()) {
      close(connected.fd);  // it only proved that somebody listens
      channel = TlsChannel(connected);
    } else {
      channel = ChannelOn(connected.fd, connected.address);
    }
    auto closed = [this](Loss loss, const std::string& detail) {
      auto report = events_.closed;
      report(loss, fmt::format("{}: {}", address_, detail));
    };
    stream_ = TalkOn(queue_, channel, credentials_.token, {events_.connected, events_.message, closed});
  }

  std::shared_ptr<grpc::Channel> TlsChannel(const Connecting::Connected& connected) {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = credentials_.tls_ca;
    tls.pem_private_key = credentials_.tls_key;
    tls.pem_cert_chain = credentials_.tls_cert;
    grpc::ChannelArguments arguments = LinkArguments();
    // The certificate must be made for the name the user gave, not for the address found for it.
    StatusOr<HostPort> named = ParseHostPort(address_);
    if (named.ok()) arguments.SetSslTargetNameOverride(named->host);
    return grpc::CreateCustomChannel(fmt::format("{}:{}", connected.v6 ? "ipv6" : "ipv4", connected.address),
                                     grpc::SslCredentials(tls), arguments);
  }

  GrpcQueue& queue_;
  const std::string address_;
  const Credentials credentials_;
  const Events events_;
  std::unique_ptr<Connecting> connecting_;
  std::unique_ptr<Link> stream_;
};

}  // namespace

std::unique_ptr<GrpcQueue> MakeLinkQueue(asio::io_context& loop) {
  PrepareGrpc();
  return std::make_unique<GrpcQueue>(loop, std::make_unique<grpc::CompletionQueue>());
}

std::unique_ptr<Link> DialGrpc(asio::io_context& loop, GrpcQueue& queue, Resolver& resolver, const std::string& address,
                               const Credentials& credentials, Duration limit, Link::Events events) {
  return std::make_unique<DialledLink>(loop, queue, resolver, address, credentials, limit, std::move(events));
}

std::shared_ptr<grpc::Channel> ChannelOn(int fd, const std::string& address) {
  unsigned limit = kWriteLimitMs;
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
  return grpc::CreateCustomInsecureChannelFromFd(address, fd, LinkArguments());
}

std::unique_ptr<Link> TalkOn(GrpcQueue& queue, const std::shared_ptr<grpc::Channel>& channel, const std::string& token,
                             Link::Events events) {
  return std::make_unique<StreamLink>(queue, channel, token, std::move(events));
}

}  // namespace muster::rendezvous
