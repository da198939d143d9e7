// SPDX-License-Identifier: Apache-2.0
#include "rsh/workers.h"

#include <grpcpp/channel.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <list>
#include <optional>
#include <utility>

#include "net/grpc_channel.h"
#include "rsh/dial.h"

namespace muster::rsh {

namespace asio = boost::asio;

namespace {

constexpr Duration kStrangers = std::chrono::seconds(2);  // how long to wait for workers that were never reached

}  // namespace

class Workers::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, net::GrpcQueue& queue, net::Resolver& resolver, Options options, Events events)
      : loop_(loop),
        queue_(queue),
        resolver_(resolver),
        options_(std::move(options)),
        events_(std::move(events)),
        limit_(loop) {}

  void Begin() {
    for (const std::string& address : options_.addresses) Add(address, true);
    for (const std::string& address : options_.of_this_machine) Add(address, false);
  }
  size_t reached() const {
    return static_cast<size_t>(
        std::count_if(workers_.begin(), workers_.end(), [](const Worker& one) { return one.met; }));
  }
  void SendVerdict(const Verdict& verdict, Duration limit, std::function<void(std::vector<std::string>)> done);
  void Close();

 private:
  class Call;
  struct Worker {
    std::string address;
    std::unique_ptr<Dialling> dialling;
    Call* call = nullptr;  // owned by the queue
    bool expected = true;  // false: of_this_machine
    bool met = false;      // it has been reached at some time
    bool welcome = false;  // it is reached now
    bool heard = false;    // it has the verdict
    bool refused = false;
    std::string detail;  // why it is not reached
  };

  // True if the launcher need not wait for this worker: it has heard, will never hear, or may not exist.
  static bool Settled(const Worker& worker) {
    return worker.heard || worker.refused || (!worker.expected && !worker.met && worker.call == nullptr);
  }
  void Add(const std::string& address, bool expected);
  void Dial(Worker& worker);
  void Connected(Worker& worker, std::shared_ptr<grpc::Channel> channel);
  void Hear(Worker& worker, const StatusOr<FromWorker>& message);
  void Over(Worker& worker, const grpc::Status& status);
  void Arm(Duration after, std::function<void()> then);
  void FinishIfAllHeard();
  void Finish();

  asio::io_context& loop_;
  net::GrpcQueue& queue_;
  net::Resolver& resolver_;
  const Options options_;
  Events events_;
  std::list<Worker> workers_;
  std::optional<Verdict> verdict_;
  std::function<void(std::vector<std::string>)> done_;
  asio::steady_timer limit_;
};

// The stream. The queue owns it until gRPC has finished every operation; it may outlive the Workers.
class Workers::Impl::Call final : public net::GrpcClientCall {
 public:
  Call(net::GrpcQueue& queue, std::shared_ptr<grpc::Channel> channel, const std::string& token,
       std::weak_ptr<Impl> owner, Worker& worker)
      : GrpcClientCall(queue, std::move(channel), kAttendMethod, token), owner_(std::move(owner)), worker_(worker) {}

  void Send(const FromLauncher& message) { GrpcClientCall::Send(Encode(message)); }

 private:
  void Read() override {
    auto owner = owner_.lock();
    if (!owner) return;
    owner->Hear(worker_, DecodeFromWorker(incoming()));
    StartRead();
  }
  void Over(const grpc::Status& status) override {
    if (auto owner = owner_.lock()) owner->Over(worker_, status);
  }

  const std::weak_ptr<Impl> owner_;
  Worker& worker_;  // the owner's
};

void Workers::Impl::Add(const std::string& address, bool expected) {
  Worker& worker = workers_.emplace_back();
  worker.address = address;
  worker.expected = expected;
  Dial(worker);
}

void Workers::Impl::Dial(Worker& worker) {
  Dialling::Events events;
  events.connected = [this, &worker](std::shared_ptr<grpc::Channel> channel) { Connected(worker, std::move(channel)); };
  events.waiting = [&worker](const std::string& obstacle) { worker.detail = obstacle; };
  events.gave_up = [](const std::string&) {};  // never called: there is no deadline
  worker.dialling =
      Dialling::Start(loop_, resolver_, worker.address, options_.credentials, TimePoint::max(), std::move(events));
}

void Workers::Impl::Connected(Worker& worker, std::shared_ptr<grpc::Channel> channel) {
  auto call = std::make_unique<Call>(queue_, std::move(channel), options_.credentials.token, weak_from_this(), worker);
  worker.call = call.get();
  queue_.Adopt(std::move(call));
  worker.call->Send(Hello{options_.launcher});
  if (verdict_) worker.call->Send(*verdict_);
}

void Workers::Impl::Hear(Worker& worker, const StatusOr<FromWorker>& message) {
  if (!message.ok()) return worker.call->Cancel();
  if (std::holds_alternative<Welcome>(*message)) {
    worker.met = worker.welcome = true;
    worker.dialling.reset();
  } else if (!std::exchange(worker.heard, true)) {
    FinishIfAllHeard();
  }
}

void Workers::Impl::Over(Worker& worker, const grpc::Status& status) {
  worker.call = nullptr;
  if (worker.heard) return;
  worker.detail = status.error_message().empty() ? "the stream was closed" : status.error_message();
  if (IsRefusal(status)) {
    worker.refused = true;
    if (events_.refused) events_.refused(worker.address, worker.detail);
    return FinishIfAllHeard();
  }
  if (!std::exchange(worker.welcome, false)) return worker.dialling->Again(worker.detail);
  if (events_.lost) events_.lost(worker.address, worker.detail);
  Dial(worker);
}

void Workers::Impl::SendVerdict(const Verdict& verdict, Duration limit,
                                std::function<void(std::vector<std::string>)> done) {
  verdict_ = verdict;
  done_ = std::move(done);
  for (Worker& worker : workers_) {
    if (worker.call != nullptr) worker.call->Send(verdict);
  }
  Arm(std::min<Duration>(kStrangers, limit), [this, limit] {
    const bool wanted = std::any_of(workers_.begin(), workers_.end(), [](const Worker& worker) {
      return worker.met && !worker.heard && !worker.refused;
    });
    if (!wanted) return Finish();
    Arm(limit - std::min<Duration>(kStrangers, limit), [this] { Finish(); });
  });
  asio::post(loop_, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->FinishIfAllHeard();
  });
}

void Workers::Impl::Arm(Duration after, std::function<void()> then) {
  limit_.expires_after(after);
  limit_.async_wait([weak = weak_from_this(), then = std::move(then)](boost::system::error_code error) {
    auto self = weak.lock();
    if (self && !error) then();
  });
}

void Workers::Impl::FinishIfAllHeard() {
  if (!verdict_) return;
  if (std::all_of(workers_.begin(), workers_.end(), Settled)) Finish();
}

void Workers::Impl::Finish() {
  limit_.cancel();
  if (!done_) return;
  std::vector<std::string> deaf;
  for (const Worker& worker : workers_) {
    if (!worker.heard && (worker.expected || worker.met))
      deaf.push_back(worker.detail.empty() ? worker.address : worker.address + ": " + worker.detail);
  }
  std::exchange(done_, nullptr)(std::move(deaf));
}

void Workers::Impl::Close() {
  events_ = {};
  done_ = nullptr;
  limit_.cancel();
  for (Worker& worker : workers_) {
    worker.dialling.reset();
    if (worker.call != nullptr) worker.call->Cancel();
  }
}

Workers::Workers(asio::io_context& loop, net::GrpcQueue& queue, net::Resolver& resolver, Options options, Events events)
    : impl_(std::make_shared<Impl>(loop, queue, resolver, std::move(options), std::move(events))) {
  impl_->Begin();
}
Workers::~Workers() { impl_->Close(); }
size_t Workers::reached() const { return impl_->reached(); }
void Workers::SendVerdict(const Verdict& verdict, Duration limit, std::function<void(std::vector<std::string>)> done) {
  impl_->SendVerdict(verdict, limit, std::move(done));
}

}  // namespace muster::rsh
