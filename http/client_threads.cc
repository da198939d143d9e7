// SPDX-License-Identifier: Apache-2.0
#include "http/client_threads.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <thread>
#include <utility>

namespace muster::http {

namespace asio = boost::asio;

// One answer, on its thread. It posts its events to the owner's loop, and the loop posts the sink's decisions back.
class ClientThreads::Answer final : public Sink, public Intake, public std::enable_shared_from_this<Answer> {
 public:
  Answer(Thread& thread, Id id) : thread_(thread), id_(id) {}

  void Begin(const Request& request, const Limits& limits);
  void Resume();
  void Cancel();
  void Judged(std::shared_ptr<Intake> intake);

 private:
  std::shared_ptr<Intake> Head(const ResponseHead& head) override;
  Taken Take(std::string_view bytes) override;
  void End(const TransferEnd& end) override;

  Thread& thread_;
  const Id id_;
  Id transfer_ = 0;
  std::shared_ptr<Intake> intake_;
  bool judged_ = false;
};

class ClientThreads::Thread {
 public:
  explicit Thread(ClientThreads& owner)
      : owner_(owner), main_(owner.loop_), owner_alive_(owner.alive_), http_(loop_, owner.options_) {
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~Thread() {
    loop_.stop();
    thread_.join();
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // On the owner's loop.
  int busy = 0;  // requests that have not ended
  void Start(Id id, const Request& request, const Limits& limits) {
    ++busy;
    asio::post(loop_, [this, id, request, limits] {
      auto answer = std::make_shared<Answer>(*this, id);
      answers_.emplace(id, answer);
      answer->Begin(request, limits);
    });
  }
  // Runs `call` on the thread if the answer has not ended there.
  template <typename Call>
  void With(Id id, Call call) {
    asio::post(loop_, [this, id, call = std::move(call)]() mutable {
      auto found = answers_.find(id);
      if (found != answers_.end()) call(*std::shared_ptr<Answer>(found->second));
    });
  }

  // On the thread.
  Client& http() { return http_; }
  void Forget(Id id) { answers_.erase(id); }
  template <typename Call>
  void PostToOwner(Call call) {  // runs call(owner) on the owner's loop
    asio::post(main_, [&owner = owner_, alive = owner_alive_, call = std::move(call)] {
      if (!alive.expired()) call(owner);
    });
  }

 private:
  ClientThreads& owner_;
  asio::io_context& main_;
  const std::weak_ptr<bool> owner_alive_;
  asio::io_context loop_{1};
  const asio::executor_work_guard<asio::io_context::executor_type> open_ = asio::make_work_guard(loop_);
  Client http_;
  std::unordered_map<Id, std::shared_ptr<Answer>> answers_;
  std::thread thread_;
};

void ClientThreads::Answer::Begin(const Request& request, const Limits& limits) {
  transfer_ = thread_.http().Start(request, limits, *this);
}

void ClientThreads::Answer::Resume() { thread_.http().Resume(transfer_); }

void ClientThreads::Answer::Cancel() {
  thread_.http().Cancel(transfer_);
  thread_.Forget(id_);
}

void ClientThreads::Answer::Judged(std::shared_ptr<Intake> intake) {
  judged_ = true;
  intake_ = std::move(intake);
  Resume();
}

std::shared_ptr<Intake> ClientThreads::Answer::Head(const ResponseHead& head) {
  thread_.PostToOwner([id = id_, head](ClientThreads& owner) { owner.Heard(id, head); });
  return shared_from_this();
}

Intake::Taken ClientThreads::Answer::Take(std::string_view bytes) {
  if (!judged_) return Taken::kNotNow;
  return intake_ ? intake_->Take(bytes) : Taken::kEnough;
}

void ClientThreads::Answer::End(const TransferEnd& end) {
  const auto self = shared_from_this();
  intake_.reset();  // before the sink's End
  thread_.Forget(id_);
  thread_.PostToOwner([id = id_, end](ClientThreads& owner) { owner.Ended(id, end); });
}

ClientThreads::ClientThreads(asio::io_context& loop, Options options, int most)
    : loop_(loop), options_(std::move(options)), most_(static_cast<size_t>(std::max(most, 1))) {}

ClientThreads::~ClientThreads() = default;

ClientThreads::Thread& ClientThreads::Idlest() {
  const auto idlest = std::min_element(threads_.begin(), threads_.end(),
                                       [](const auto& a, const auto& b) { return a->busy < b->busy; });
  if (idlest != threads_.end() && ((*idlest)->busy == 0 || threads_.size() == most_)) return **idlest;
  return *threads_.emplace_back(std::make_unique<Thread>(*this));
}

Transport::Id ClientThreads::Start(const Request& request, const Limits& limits, Sink& sink) {
  Thread& thread = Idlest();
  const Id id = ++last_;
  asked_.emplace(id, Asked{&thread, &sink});
  thread.Start(id, request, limits);
  return id;
}

void ClientThreads::Resume(Id id) {
  auto found = asked_.find(id);
  if (found != asked_.end()) found->second.thread->With(id, [](Answer& answer) { answer.Resume(); });
}

void ClientThreads::Cancel(Id id) {
  auto found = asked_.find(id);
  if (found == asked_.end()) return;
  Thread& thread = *found->second.thread;
  asked_.erase(found);
  --thread.busy;
  thread.With(id, [](Answer& answer) { answer.Cancel(); });
}

void ClientThreads::Heard(Id id, const ResponseHead& head) {
  const auto found = asked_.find(id);
  if (found == asked_.end()) return;  // cancelled meanwhile
  Thread& thread = *found->second.thread;
  auto intake = found->second.sink->Head(head);
  thread.With(id, [intake = std::move(intake)](Answer& answer) mutable { answer.Judged(std::move(intake)); });
}

void ClientThreads::Ended(Id id, const TransferEnd& end) {
  auto ended = asked_.extract(id);
  if (ended.empty()) return;
  --ended.mapped().thread->busy;
  ended.mapped().sink->End(end);
}

}  // namespace muster::http
