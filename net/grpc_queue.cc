// SPDX-License-Identifier: Apache-2.0
#include "net/grpc_queue.h"

#include <grpc/support/cpu.h>
#include <grpc/support/log.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/slice.h>
#include <pthread.h>
#include <signal.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "base/kernel_calls.h"

namespace muster::net {

GrpcQueue::GrpcQueue(boost::asio::io_context& loop, std::unique_ptr<grpc::CompletionQueue> queue)
    : loop_(loop), queue_(std::move(queue)), work_(boost::asio::make_work_guard(loop)) {
  thread_ = std::thread([this] { Run(); });
}

GrpcQueue::~GrpcQueue() {
  for (auto& [call, owned] : calls_) call->Cancel();
  queue_->Shutdown();
  thread_.join();
  std::lock_guard lock(inbox_->mutex);
  inbox_->closed = true;
  inbox_->events.clear();
}

void GrpcQueue::Adopt(std::unique_ptr<Call> call) {
  Call* key = call.get();
  calls_.emplace(key, std::move(call));
}

void GrpcQueue::Release(Call* call) { calls_.erase(call); }

void GrpcQueue::Run() {
  // The loop handles signals.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  pthread_setname_np(pthread_self(), "grpc-queue");
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    Tag* done = static_cast<Tag*>(tag);
    done->Arrived(ok);
    bool first = false;
    {
      std::lock_guard lock(inbox_->mutex);
      first = inbox_->events.empty();
      inbox_->events.push_back({done, ok});
    }
    if (first) boost::asio::post(loop_, [inbox = inbox_] { Deliver(*inbox); });
  }
}

void GrpcQueue::Deliver(Inbox& inbox) {
  std::vector<Event> events;
  {
    std::lock_guard lock(inbox.mutex);
    events.swap(inbox.events);
  }
  for (const Event& event : events) {
    // Done may destroy the queue, and with it the calls of the following events.
    bool closed;
    {
      std::lock_guard lock(inbox.mutex);
      closed = inbox.closed;
    }
    if (closed) return;
    event.tag->Done(event.ok);
  }
}

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string FromBuffer(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  return buffer.Dump(&slices).ok() ? Joined(slices) : std::string();
}

std::string Joined(const std::vector<grpc::Slice>& slices) {
  size_t size = 0;
  for (const grpc::Slice& slice : slices) size += slice.size();
  std::string bytes;
  bytes.reserve(size);
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

void PrepareGrpc() {
  if (Status status = CheckThreads("gRPC"); !status.ok()) {
    throw std::system_error(EPERM, std::generic_category(), std::string(Message(status)));
  }
  // Debian's Abseil checks for lock cycles at every lock, which costs a tenth of the time and much memory.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // gRPC returns its errors as statuses. Its log lines would mix with the workers' lines on stderr.
  gpr_set_log_function([](gpr_log_func_args*) {});
  // After its last channel and server gRPC ends its threads, for which it sleeps 3 ms and more. A channel that never
  // connects leaves them to the end of the process. Volatile, so that leak checkers find the pointer.
  [[maybe_unused]] static auto* volatile kept =
      new std::shared_ptr(grpc::CreateChannel("ipv4:127.0.0.1:1", grpc::InsecureChannelCredentials()));
}

}  // namespace muster::net

// These replace gRPC's own functions and report one CPU. gRPC keeps two sets of timers in 2 x CPUs shards each. It
// wakes about once a second for every shard even without a pending timer: dozens of times a second on a large node. One
// thread takes all its events, so one CPU is enough.
unsigned gpr_cpu_num_cores(void) { return 1; }
unsigned gpr_cpu_current_cpu(void) { return 0; }
