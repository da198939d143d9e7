// SPDX-License-Identifier: Apache-2.0
// A gRPC completion queue and the one thread that waits on it and passes its events to the loop.
//
// gRPC's callback API is not used. Where gRPC has no poller of its own (every Linux build of Debian's 1.51), it runs
// callbacks on threads that wake up once a second and then sleep for 100 ms without noticing events. Here one thread
// blocks without a deadline: an event reaches the loop in microseconds, and an idle agent is not woken.
//
// Start operations on the loop thread only. Their ends reach the loop in batches, with one wake-up for many.
#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/support/byte_buffer.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

namespace muster::net {

class GrpcQueue {
 public:
  // Gets the end of one operation. A member of its Call, reused for many operations.
  class Tag {
   public:
    virtual void Arrived(bool) {}    // on the queue's thread, before Done: for work without shared state (decoding)
    virtual void Done(bool ok) = 0;  // on the loop. Not called while the queue is being destroyed.

   protected:
    ~Tag() = default;
  };

  // One call with pending operations. The queue owns it from Adopt to Release.
  class Call {
   public:
    virtual ~Call() = default;
    virtual void Cancel() = 0;  // makes all its operations end soon; may be repeated
  };

  GrpcQueue(boost::asio::io_context& loop, std::unique_ptr<grpc::CompletionQueue> queue);
  // Cancels every call, waits until gRPC has ended every operation, and destroys the calls.
  ~GrpcQueue();
  GrpcQueue(const GrpcQueue&) = delete;
  GrpcQueue& operator=(const GrpcQueue&) = delete;

  grpc::CompletionQueue* get() { return queue_.get(); }

  void Adopt(std::unique_ptr<Call> call);
  void Release(Call* call);  // destroys the call, which must have no pending operation

 private:
  struct Event {
    Tag* tag;
    bool ok;
  };
  // Shared with the handlers posted to the loop, which may run after the queue is destroyed.
  struct Inbox {
    std::mutex mutex;
    std::vector<Event> events;
    bool closed = false;
  };

  void Run();
  static void Deliver(Inbox& inbox);

  boost::asio::io_context& loop_;
  std::unique_ptr<grpc::CompletionQueue> queue_;
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::unordered_map<Call*, std::unique_ptr<Call>> calls_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

// Settings of a connection. The defaults suit many connections with few small messages and heartbeats of their own.
struct GrpcTuning {
  int first_chunk = 1024;  // bytes of the first read
  int least_chunk = 512;
  int window = 65'535;   // HTTP/2's: bytes that a peer may send ahead
  int frame = 16'384;    // bytes of HTTP/2's largest, 16,384 or more
  int keepalive_ms = 0;  // ping a peer after so much silence, and give it up after as much again; 0: never
};

// Conversions between bytes and gRPC's buffers.
grpc::ByteBuffer ToBuffer(const std::string& bytes);
std::string FromBuffer(const grpc::ByteBuffer& buffer);  // empty if it cannot be unpacked
std::string Joined(const std::vector<grpc::Slice>& slices);

// Call it before any other gRPC function. Turns off gRPC's log on stderr and Abseil's check for lock cycles. gRPC's
// threads live until the process ends. Throws std::system_error if a seccomp profile forbids new threads: gRPC does not
// notice that and corrupts its memory.
void PrepareGrpc();

}  // namespace muster::net
