// SPDX-License-Identifier: Apache-2.0
// A port that serves gRPC streams on the loop: listening, accepting, TLS, tokens. Classes derived from GrpcServerCall
// interpret the messages.
//
// A connection reaches gRPC when it has sent the first bytes of gRPC's protocol (lobby.h). If no descriptor is left for
// a new connection, one that has not is closed.
//
// Loop thread only; gRPC's threads only post to the loop. Destroying the port cancels every call.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "base/descriptors.h"
#include "base/status.h"
#include "net/credentials.h"
#include "net/grpc_queue.h"

namespace muster::net {

class GrpcServerCall;

class GrpcPort {
 public:
  struct Options {
    std::string host = "";  // numeric address to bind; empty: every address, IPv6 and IPv4
    int port = 0;           // 0: the kernel chooses
    Credentials credentials;
    KeptDescriptors keep_descriptors;  // at most half of ulimit -n
    int longest_message = 0;           // largest received message in bytes
    GrpcTuning tuning;
    std::function<void(const std::string& why)> turned_away = nullptr;  // on the loop, for a caller without the token
  };
  // Makes the object for the next call, before that call arrives.
  using MakeCall = std::function<std::unique_ptr<GrpcServerCall>(GrpcPort&)>;

  // Binds and serves at once. AlreadyExists when the port is taken, InvalidArgument for an invalid address or port.
  static StatusOr<std::unique_ptr<GrpcPort>> Serve(boost::asio::io_context& loop, const Options& options,
                                                   MakeCall make_call);
  ~GrpcPort();
  GrpcPort(const GrpcPort&) = delete;
  GrpcPort& operator=(const GrpcPort&) = delete;

  int port() const;
  // True while the port is being destroyed. Then no operation may be started.
  bool closing() const;

 private:
  friend class GrpcServerCall;
  class Impl;
  explicit GrpcPort(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// One bidirectional stream of messages, from waiting for it to its end. The port owns it and destroys it when gRPC has
// ended every operation. The hooks run on the loop, except Arrived.
class GrpcServerCall : public GrpcQueue::Call {
 public:
  explicit GrpcServerCall(GrpcPort& port) : port_(port) {}

  void Expect();            // only the port calls this
  void Cancel() override {  // makes the call end soon
    if (called_) context_.TryCancel();
  }

 protected:
  virtual void Called() = 0;                        // the call has arrived with the right token
  virtual void Arrived(const grpc::ByteBuffer&) {}  // on the queue's thread, before Read(true)
  virtual void Read(bool ok) = 0;                   // `ok`: incoming() holds a message; else the stream has ended
  virtual void Written() {}                         // unsent() has decreased
  virtual void Over() {}                            // the last hook, also without Called(); not if the port closes

  std::string method() const { return context_.method(); }
  std::string peer() const { return context_.peer(); }
  const grpc::ByteBuffer& incoming() const { return incoming_; }
  bool finishing() const { return finishing_; }
  bool speaking() const;                              // whether Send() still sends
  size_t unsent() const { return outbound_.size(); }  // messages queued or being written
  size_t unsent_bytes() const { return outbound_bytes_; }

  void StartRead();                          // one read at a time
  void Send(const grpc::ByteBuffer& bytes);  // queues the message; drops it if !speaking()
  void FinishWhenSent();                     // ends with OK after the queued messages; stops Send()
  void Finish(const grpc::Status& status);   // ends at once; starts no operation after that; may be repeated

 private:
  template <void (GrpcServerCall::*Handle)(bool)>
  struct PlainTag final : GrpcQueue::Tag {
    explicit PlainTag(GrpcServerCall& call) : call_(call) {}
    void Done(bool ok) override { call_.Ended(Handle, ok); }
    GrpcServerCall& call_;
  };
  struct ReadTag final : GrpcQueue::Tag {
    explicit ReadTag(GrpcServerCall& call) : call_(call) {}
    void Arrived(bool ok) override {
      if (ok) call_.Arrived(call_.incoming_);
    }
    void Done(bool ok) override { call_.Ended(&GrpcServerCall::ReadEnded, ok); }
    GrpcServerCall& call_;
  };

  void Ended(void (GrpcServerCall::*handle)(bool), bool ok);
  void CallEnded(bool ok);
  void ReadEnded(bool ok) { Read(ok); }
  void WriteEnded(bool ok);
  void FinishEnded(bool) {}
  void WriteNext();
  bool Authorized();
  bool TurnAway(const char* why);

  GrpcPort& port_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::ByteBuffer incoming_;
  int under_way_ = 0;
  bool called_ = false;
  std::list<grpc::ByteBuffer> outbound_;  // the first one is being written while writing_
  size_t outbound_bytes_ = 0;
  bool writing_ = false;
  bool closing_ = false;    // finish after the queued messages
  bool finishing_ = false;  // Finish was started
  PlainTag<&GrpcServerCall::CallEnded> call_tag_{*this};
  ReadTag read_tag_{*this};
  PlainTag<&GrpcServerCall::WriteEnded> write_tag_{*this};
  PlainTag<&GrpcServerCall::FinishEnded> finish_tag_{*this};
};

}  // namespace muster::net
