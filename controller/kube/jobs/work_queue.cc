// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/work_queue.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "controller/kube/jobs/key_queue.h"

namespace muster::controller {

namespace asio = boost::asio;

namespace {

constexpr Duration kLongSpent = std::chrono::microseconds(200), kLongestRest = std::chrono::seconds(1);
constexpr int kRest = 300;  // times as long as a key blocked the loop

Duration RestAfter(Duration spent) {
  return spent < kLongSpent ? Duration::zero() : std::min(kLongestRest, spent * kRest);
}

}  // namespace

class WorkQueue::Impl : public std::enable_shared_from_this<WorkQueue::Impl> {
 public:
  Impl(asio::io_context& loop, const Options& options, Work work)
      : loop_(loop), timer_(loop), keys_(options.workers, {options.first, options.longest}), work_(std::move(work)) {}

  KeyQueue& keys() { return keys_; }

  // Pump is posted, not called: the caller may be the work on the key.
  void Soon() {
    if (std::exchange(pumping_, true)) return;
    asio::post(loop_, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->Pump();
    });
  }
  void Close() {
    closed_ = true;
    timer_.cancel();
  }

 private:
  void Pump() {
    pumping_ = false;
    keys_.Advance(MonotonicClock::now());
    while (!closed_) {
      const auto key = keys_.Take();
      if (!key) break;
      auto told = std::make_shared<bool>(false);
      work_(*key, [weak = weak_from_this(), key = *key, told](Outcome outcome, Duration spent) {
        auto self = weak.lock();
        if (!self || std::exchange(*told, true)) return;
        self->keys_.Done(key, outcome == Outcome::kAgain, MonotonicClock::now(), RestAfter(spent));
        self->Soon();
      });
    }
    if (!closed_) Wait();
  }

  void Wait() {
    const auto next = keys_.next();
    if (!next) return;
    timer_.expires_at(*next);
    timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
      auto self = weak.lock();
      if (!error && self && !self->closed_) self->Pump();
    });
  }

  asio::io_context& loop_;
  asio::steady_timer timer_;
  KeyQueue keys_;
  const Work work_;
  bool pumping_ = false, closed_ = false;
};

WorkQueue::WorkQueue(asio::io_context& loop, Options options, Work work)
    : impl_(std::make_shared<Impl>(loop, options, std::move(work))) {}
WorkQueue::~WorkQueue() { impl_->Close(); }

void WorkQueue::Add(const std::string& key, bool urgent) {
  impl_->keys().Add(key, urgent);
  impl_->Soon();
}

void WorkQueue::AddAfter(const std::string& key, Duration pause) {
  impl_->keys().AddAt(key, MonotonicClock::now() + pause);
  impl_->Soon();
}

void WorkQueue::Forget(const std::string& key) { impl_->keys().Forget(key); }

size_t WorkQueue::size() const { return impl_->keys().ready(); }
uint64_t WorkQueue::added() const { return impl_->keys().added(); }

}  // namespace muster::controller
