// Small requests one after the other, as a coroutine on the loop: lists, looks, credentials. And their retries.
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

// Runs the coroutine. When the last copy of the handle goes, the coroutine is cancelled; the loop destroys it later. So
// no destructor of an object on its stack may refer to anything that the coroutine does not own. It must not throw.
std::shared_ptr<void> Converse(boost::asio::io_context& loop, boost::asio::awaitable<void> conversation);

// Conversations under way, each held until it ends. What is left of them is cancelled with their owner.
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

// A cancelled conversation goes no further, as what it refers to may be gone: throws boost::system::system_error. After
// each wait that does not throw by itself.
void ThrowIfCancelled(const boost::asio::cancellation_state& state);

// The answer to one request. Throws boost::system::system_error only where its conversation is cancelled.
boost::asio::awaitable<Answer> Asked(Client& client, Request request, Limits limits, size_t limit);

// One conversation at a time does something; the others wait until it has done it, or was cancelled.
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
  // `turn` may outlive its owner. Throws as Asked does.
  static boost::asio::awaitable<std::unique_ptr<Held>> Take(std::shared_ptr<Turn> turn);

 private:
  void End();

  std::shared_ptr<boost::asio::steady_timer> taken_;  // null: nobody has it; else those wait for it who want it
};

struct Persistence {
  Client& http;
  Limits limits;
  RetryRules retry;
  std::function<double()> jitter;
  std::function<void(const std::string&)> say;
  std::optional<Duration> unanswered = {};  // patience until the first answer: there may be nobody
  std::shared_ptr<CloudClock> clock = std::make_shared<CloudClock>();  // of all copies
};

// When an answer was made, by its server.
std::optional<int64_t> DateOf(const ResponseHead& head);
// The clock hears an answer's date; true: it was off, which is said, and what it signed is worth another try. `where`:
// the server, for people.
bool HearClock(const Persistence& persistence, const ResponseHead& head, std::string_view where);

// Asks until `judge` is content (no refusal), the failure is final, or patience is over. `prepare` makes the request
// anew each time (a signature ages); a Status it gives is final. What the network failed at is transient by itself.
using PrepareRequest = std::function<boost::asio::awaitable<StatusOr<Request>>()>;
using JudgeAnswer = std::function<std::optional<Refusal>(const Answer&)>;
boost::asio::awaitable<StatusOr<Answer>> AskedUntilAnswered(const Persistence& persistence, size_t limit,
                                                            PrepareRequest prepare, JudgeAnswer judge);

}  // namespace muster::http
