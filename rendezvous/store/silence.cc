// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/store/silence.h"

#include <utility>

namespace muster::store {
namespace {

// PyTorch 1.13 may connect long before its first request; later versions send one at once.
constexpr auto kLimit = std::chrono::minutes(5);
constexpr auto kLeast = std::chrono::seconds(5);

}  // namespace

Silence::Silence(boost::asio::io_context& loop, std::function<bool(uint64_t tag)> is_silent,
                 std::function<void(uint64_t tag)> close)
    : is_silent_(std::move(is_silent)), close_(std::move(close)), timer_(loop) {}

void Silence::Add(uint64_t tag, uint64_t open) {
  const auto over = [this](const Entry& entry) { return !is_silent_(entry.tag); };
  if (entries_.size() > 2 * open + 64) std::erase_if(entries_, over);
  entries_.push_back({tag, MonotonicClock::now()});
  if (entries_.size() == 1) Await();
}

bool Silence::CloseAll() {
  bool any = false;
  while (CloseOldest(kLeast)) any = true;
  return any;
}

bool Silence::CloseOldest(Duration least) {
  for (; !entries_.empty(); entries_.pop_front()) {
    const Entry& oldest = entries_.front();
    if (!is_silent_(oldest.tag)) continue;
    if (MonotonicClock::now() - oldest.since < least) return false;
    close_(oldest.tag);
    return true;
  }
  return false;
}

void Silence::Await() {
  while (CloseOldest(kLimit)) {
  }
  if (entries_.empty()) return;
  timer_.expires_at(entries_.front().since + kLimit);
  timer_.async_wait([this, alive = std::weak_ptr<bool>(alive_)](const boost::system::error_code& error) {
    if (!error && !alive.expired()) Await();
  });
}

void Silence::End() {
  timer_.cancel();
  entries_.clear();
}

}  // namespace muster::store
