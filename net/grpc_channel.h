// The calling end of a gRPC stream on the loop: a channel on a connection that exists, and a call on it. What the
// messages mean is decided by the classes derived from GrpcClientCall.
//
// The connection is made by connect.h and handed to gRPC, so that its failure has its exact reason and nothing is
// retried behind our back; with TLS that connection is a probe, and gRPC then connects by itself to the same numeric
// address. Loop thread only.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <boost/asio/io_context.hpp>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "net/connect.h"
#include "net/credentials.h"
#include "net/grpc_queue.h"

namespace grpc {
class Channel;
}

namespace muster::net {

// A queue for the calls this process makes. One serves all of them.
std::unique_ptr<GrpcQueue> MakeCallQueue(boost::asio::io_context& loop);

struct ChannelOptions {
  int longest_message = 0;  // bytes, of those received
  GrpcTuning tuning;
};

// Takes the connection over. `named`: the "host:port" the user gave; the certificate must be made for that name.
std::shared_ptr<grpc::Channel> MakeChannel(const Connecting::Connected& connected, const std::string& named,
                                           const Credentials& credentials, const ChannelOptions& options);

// What to add to the message of a stream that was closed before its peer had said anything: where only one side uses
// TLS, or does not trust the other, gRPC tells no more than that the socket was closed. May be empty.
std::string_view SilentCloseHint(const grpc::Status& status);

// One stream of messages both ways. Owned by the queue, which destroys it once gRPC has given every operation back. The
// hooks run on the loop, but for Arrived; they must not destroy the queue.
class GrpcClientCall : public GrpcQueue::Call {
 public:
  // Starts the call of `method`; Adopt it in the same turn.
  GrpcClientCall(GrpcQueue& queue, std::shared_ptr<grpc::Channel> channel, const std::string& method,
                 const std::string& token);

  void Cancel() override { context_.TryCancel(); }

 protected:
  virtual void Started() {}                           // the stream is there
  virtual void Arrived(const grpc::ByteBuffer&) {}    // on the queue's thread, before Read()
  virtual void Read() = 0;                            // incoming() holds a message
  virtual void Written() {}                           // unsent() has become less
  virtual void Over(const grpc::Status& status) = 0;  // the last hook

  const grpc::ByteBuffer& incoming() const { return incoming_; }
  bool started() const { return started_; }
  bool ended() const { return ended_; }               // nothing can be said any more
  size_t unsent() const { return outbound_.size(); }  // messages queued or being written

  void StartRead();  // one at a time
  // Queued until the stream is there and what was said before has been written; dropped where it has ended.
  void Send(grpc::ByteBuffer bytes);

 private:
  template <void (GrpcClientCall::*Handle)(bool)>
  struct PlainTag final : GrpcQueue::Tag {
    explicit PlainTag(GrpcClientCall& call) : call_(call) {}
    void Done(bool ok) override { call_.Ended(Handle, ok); }
    GrpcClientCall& call_;
  };
  struct ReadTag final : GrpcQueue::Tag {
    explicit ReadTag(GrpcClientCall& call) : call_(call) {}
    void Arrived(bool ok) override {
      if (ok) call_.Arrived(call_.incoming_);
    }
    void Done(bool ok) override { call_.Ended(&GrpcClientCall::ReadEnded, ok); }
    GrpcClientCall& call_;
  };

  void Ended(void (GrpcClientCall::*handle)(bool), bool ok);
  void StartEnded(bool ok);
  void ReadEnded(bool ok);
  void WriteEnded(bool ok);
  void FinishEnded(bool ok);
  void Finish();
  void WriteNext();

  GrpcQueue& queue_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer incoming_;
  std::list<grpc::ByteBuffer> outbound_;  // the first one is being written while writing_
  grpc::Status status_;
  int under_way_ = 0;
  bool started_ = false;
  bool writing_ = false;
  bool ended_ = false;
  bool finished_ = false;
  PlainTag<&GrpcClientCall::StartEnded> start_tag_{*this};
  ReadTag read_tag_{*this};
  PlainTag<&GrpcClientCall::WriteEnded> write_tag_{*this};
  PlainTag<&GrpcClientCall::FinishEnded> finish_tag_{*this};
};

}  // namespace muster::net
