// SPDX-License-Identifier: Apache-2.0
// The client end of a gRPC stream on the loop: a channel on an existing connection, and a call on it. Classes derived
// from GrpcClientCall interpret the messages.
//
// connect.h makes the connection and hands it to gRPC, so a failure has its exact reason and gRPC retries nothing. With
// TLS, that connection is only a probe: gRPC then connects to the same numeric address itself. Loop thread only.
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

// Makes a queue for client calls. One queue serves all calls of a process.
std::unique_ptr<GrpcQueue> MakeCallQueue(boost::asio::io_context& loop);

struct ChannelOptions {
  int longest_message = 0;  // largest received message in bytes
  GrpcTuning tuning;
};

// Takes ownership of the connection. `named`: the "host:port" that the user gave; the peer's certificate must be made
// for that host.
std::shared_ptr<grpc::Channel> MakeChannel(const Connecting::Connected& connected, const std::string& named,
                                           const Credentials& credentials, const ChannelOptions& options);

// Text to append to the error of a stream that was closed before its peer sent anything. If only one side uses TLS, or
// a side does not trust the other, gRPC reports only a closed socket. May be empty.
std::string_view SilentCloseHint(const grpc::Status& status);

// One bidirectional stream of messages. The queue owns it and destroys it when gRPC has ended every operation. The
// hooks run on the loop, except Arrived. They must not destroy the queue.
class GrpcClientCall : public GrpcQueue::Call {
 public:
  // Starts the call of `method`. Pass the object to GrpcQueue::Adopt in the same handler.
  GrpcClientCall(GrpcQueue& queue, std::shared_ptr<grpc::Channel> channel, const std::string& method,
                 const std::string& token);

  void Cancel() override { context_.TryCancel(); }

 protected:
  virtual void Started() {}                           // the stream is open
  virtual void Arrived(const grpc::ByteBuffer&) {}    // on the queue's thread, before Read()
  virtual void Read() = 0;                            // incoming() holds a message
  virtual void Written() {}                           // unsent() has decreased
  virtual void Over(const grpc::Status& status) = 0;  // the last hook

  const grpc::ByteBuffer& incoming() const { return incoming_; }
  bool started() const { return started_; }
  bool ended() const { return ended_; }               // nothing can be sent after this
  size_t unsent() const { return outbound_.size(); }  // messages queued or being written

  void StartRead();  // one read at a time
  // Queues the message until the stream is open and earlier messages are written. Drops it if the stream has ended, or
  // after EndWriting().
  void Send(grpc::ByteBuffer bytes);
  // Ends this side of the stream after the queued messages; stops Send(). A server that ends its side in answer (as
  // GrpcServerCall's users do when Read(false) comes) has read all of them before. Cancel() gives no such promise: gRPC
  // drops messages of a cancelled stream that the server has not read.
  void EndWriting();

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
  void WritesDoneEnded(bool) {}
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
  bool last_written_ = false;  // EndWriting was called: nothing more is queued
  bool half_closed_ = false;   // and gRPC was told
  bool ended_ = false;
  bool finished_ = false;
  PlainTag<&GrpcClientCall::StartEnded> start_tag_{*this};
  ReadTag read_tag_{*this};
  PlainTag<&GrpcClientCall::WriteEnded> write_tag_{*this};
  PlainTag<&GrpcClientCall::WritesDoneEnded> writes_done_tag_{*this};
  PlainTag<&GrpcClientCall::FinishEnded> finish_tag_{*this};
};

}  // namespace muster::net
