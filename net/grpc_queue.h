// One completion queue of gRPC, the one thread that waits on it, and the way of its events onto the loop.
//
// gRPC's callback API is not used: where gRPC has no poller of its own (every Linux build of Debian's 1.51) it runs
// callbacks from threads that wake up once a second and then sleep for 100 ms, deaf. Here one thread blocks without a
// deadline; an event reaches the loop in microseconds, and an idle agent is not woken.
//
// Operations are started on the loop thread only. Their ends are handed over in batches: one wake-up for many.
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
  // The end of one operation. Embedded in its Call; started again and again.
  class Tag {
   public:
    virtual void Arrived(bool) {}    // on the queue's thread, before Done: work that needs no other state (decoding)
    virtual void Done(bool ok) = 0;  // on the loop. Not called while the queue is being destroyed.

   protected:
    ~Tag() = default;
  };

  // One call with operations under way. The queue owns it from Adopt to Release.
  class Call {
   public:
    virtual ~Call() = default;
    virtual void Cancel() = 0;  // ends all its operations soon; any number of times
  };

  GrpcQueue(boost::asio::io_context& loop, std::unique_ptr<grpc::CompletionQueue> queue);
  // Cancels every call, waits until gRPC has given every operation back, and destroys the calls.
  ~GrpcQueue();
  GrpcQueue(const GrpcQueue&) = delete;
  GrpcQueue& operator=(const GrpcQueue&) = delete;

  grpc::CompletionQueue* get() { return queue_.get(); }

  void Adopt(std::unique_ptr<Call> call);
  void Release(Call* call);  // no operation of it is under way. Destroys it.

 private:
  struct Event {
    Tag* tag;
    bool ok;
  };
  // Shared with the posts on the loop, which may run after the queue is gone.
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

// How a connection behaves. The defaults suit many connections that seldom say a few words and have beats of their own.
struct GrpcTuning {
  int first_chunk = 1024;  // bytes that one read asks for at first
  int least_chunk = 512;
  int window = 65'535;   // HTTP/2's: bytes that a peer may send ahead
  int frame = 16'384;    // bytes of HTTP/2's largest, 16,384 or more
  int keepalive_ms = 0;  // a peer silent for so long is asked whether it lives, and given up after as long; 0: never
};

// Bytes in and out of gRPC's buffers.
grpc::ByteBuffer ToBuffer(const std::string& bytes);
std::string FromBuffer(const grpc::ByteBuffer& buffer);  // empty: it cannot be unpacked
std::string Joined(const std::vector<grpc::Slice>& slices);

// Before anything else of gRPC's: no log of its own on stderr, no fork handlers. Throws what std::thread would where no
// thread can be started: gRPC does not notice, and corrupts its memory.
void PrepareGrpc();

}  // namespace muster::net
