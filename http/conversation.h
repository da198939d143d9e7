// SPDX-License-Identifier: Apache-2.0
// Coroutines on the loop that send small requests one after the other (lists, look-ups, credentials), with retries.
//
// Loop thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/status.h"
#include "http/ask.h"
#include "http/client.h"
#include "http/cloud_clock.h"
#include "http/refusal.h"
#include "http/retry.h"

namespace muster::http {

// Runs the coroutine. Destroying the last copy of the handle cancels it, on the loop or while the loop does not run:
// the coroutine does nothing more, and the loop destroys it later. So destructors of objects on its stack may use only
// what the coroutine owns. It must not throw unless it is cancelled.
std::shared_ptr<void> Converse(boost::asio::io_context& loop, boost::asio::awaitable<void> conversation);

// Keeps each conversation until it ends. Its destructor cancels those that still run.
class Conversations {
 public:
  explicit Conversations(boost::asio::io_context& loop) : loop_(loop) {}
  void Begin(boost::asio::awaitable<void> conversation);

 private:
  boost::asio::awaitable<void> Run(boost::asio::awaitable<void> conversation, uint64_t id);

  boost::asio::io_context& loop_;
  uint64_t last_ = 0;
  std::map<uint64_t, std::shared_ptr<void>> under_way_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Throws boost::system::system_error in a cancelled conversation, since objects that it refers to may be destroyed.
// Call it after each wait that does not throw by itself.
void ThrowIfCancelled(const boost::asio::cancellation_state& state);

// Returns the answer to one request. Throws boost::system::system_error only if its conversation is cancelled.
boost::asio::awaitable<Answer> Asked(Client& client, Request request, Limits limits, size_t limit);

// A lock between conversations: one holds it, until it releases it or is cancelled; the others wait.
class Turn {
 public:
  class Held {
   public:
    explicit Held(std::shared_ptr<Turn> turn) : turn_(std::move(turn)) {}
    ~Held() { turn_->End(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

   private:
    const std::shared_ptr<Turn> turn_;
  };
  // Waits for the lock; destroying the result releases it. `turn` may outlive its owner. Throws like Asked.
  static boost::asio::awaitable<std::unique_ptr<Held>> Take(std::shared_ptr<Turn> turn);

 private:
  void End();

  std::shared_ptr<boost::asio::steady_timer> taken_;  // null: free; else others wait for it
};

struct Persistence {
  Client& http;
  Limits limits;
  RetryRules retry;
  std::function<double()> jitter;
  std::function<void(const std::string&)> say;
  std::optional<Duration> unanswered = {};  // patience until the first answer, since there may be no server
  std::shared_ptr<CloudClock> clock = std::make_shared<CloudClock>();  // shared by all copies
};

// The answer's Date header in seconds since 1970.
std::optional<int64_t> DateOf(const ResponseHead& head);
// Passes an answer's date to the clock. True: the clock was wrong, which is reported by `say`, and a signed request is
// worth another try. `where`: the server, for people.
bool HearClock(const Persistence& persistence, const ResponseHead& head, std::string_view where);

// Repeats a request until `judge` returns no refusal, the failure is final, or patience is over. `prepare` makes the
// request anew each time, since a signature expires; its error is final. RefusalOf judges an answer that is not whole.
using PrepareRequest = std::function<boost::asio::awaitable<StatusOr<Request>>()>;
using JudgeAnswer = std::function<std::optional<Refusal>(const Answer&)>;
boost::asio::awaitable<StatusOr<Answer>> AskedUntilAnswered(const Persistence& persistence, size_t limit,
                                                            PrepareRequest prepare, JudgeAnswer judge);

}  // namespace muster::http
