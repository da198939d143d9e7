// SPDX-License-Identifier: Apache-2.0
#include "http/conversation.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/text.h"
#include "http/date.h"
#include "http/endpoint_url.h"

namespace muster::http {

namespace asio = boost::asio;

namespace {

struct Running {
  asio::cancellation_signal signal;
  enum class State { kNotBegun, kRuns, kOver } state = State::kNotBegun;
};

// What co_spawn calls at the end. Its type has a cancellation slot and no executor, so co_spawn passes a cancellation
// on at once. If it had an executor (as bind_cancellation_slot's has), the loop would do that, after what is already
// due.
struct Ended {
  using cancellation_slot_type = asio::cancellation_slot;
  cancellation_slot_type get_cancellation_slot() const noexcept { return running->signal.slot(); }
  void operator()(const std::exception_ptr&) const { running->state = Running::State::kOver; }

  std::shared_ptr<Running> running;
};

// co_spawn's own waits throw in a cancelled conversation, and nobody would catch it. So one that has not begun is not
// cancelled by the signal, and co_spawn's last wait does not throw.
asio::awaitable<void> Guarded(std::shared_ptr<Running> running, asio::awaitable<void> conversation) {
  if (running->state == Running::State::kOver) co_return;
  running->state = Running::State::kRuns;
  try {
    co_await std::move(conversation);
  } catch (const boost::system::system_error&) {  // it is cancelled
  }
  co_await asio::this_coro::throw_if_cancelled(false);
}

}  // namespace

void ThrowIfCancelled(const asio::cancellation_state& state) {
  if (state.cancelled() != asio::cancellation_type::none) {
    throw boost::system::system_error(asio::error::operation_aborted);
  }
}

std::shared_ptr<void> Converse(asio::io_context& loop, asio::awaitable<void> conversation) {
  auto running = std::make_shared<Running>();
  asio::co_spawn(loop, Guarded(running, std::move(conversation)), Ended{running});
  return std::shared_ptr<void>(running.get(), [running](void*) {
    const auto before = std::exchange(running->state, Running::State::kOver);
    if (before == Running::State::kRuns) running->signal.emit(asio::cancellation_type::terminal);
  });
}

void Conversations::Begin(asio::awaitable<void> conversation) {
  const uint64_t id = ++last_;
  under_way_[id] = Converse(loop_, Run(std::move(conversation), id));
}

asio::awaitable<void> Conversations::Run(asio::awaitable<void> conversation, uint64_t id) {
  co_await std::move(conversation);
  // Erase it later: a handle must not be destroyed while its own conversation runs.
  asio::post(loop_, [this, alive = std::weak_ptr<bool>(alive_), id] {
    if (!alive.expired()) under_way_.erase(id);
  });
}

asio::awaitable<Answer> Asked(Client& client, Request request, Limits limits, size_t limit) {
  Answer answer;
  // The loop owns a coroutine that waits on its timer, and destroys it with itself if the wait never ends.
  asio::steady_timer answered(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  const auto asking = Ask(client, request, limits, limit, [&answer, &answered](Answer its) {
    answer = std::move(its);
    answered.cancel();
  });
  co_await answered.async_wait(asio::as_tuple(asio::use_awaitable));
  ThrowIfCancelled(co_await asio::this_coro::cancellation_state);
  co_return answer;
}

asio::awaitable<std::unique_ptr<Turn::Held>> Turn::Take(std::shared_ptr<Turn> turn) {
  while (turn->taken_) {
    const auto taken = turn->taken_;
    co_await taken->async_wait(asio::as_tuple(asio::use_awaitable));
    ThrowIfCancelled(co_await asio::this_coro::cancellation_state);
  }
  turn->taken_ =
      std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  co_return std::make_unique<Held>(std::move(turn));
}

void Turn::End() { std::exchange(taken_, nullptr)->cancel(); }

std::optional<int64_t> DateOf(const ResponseHead& head) {
  auto date = head.Find("date");
  return date ? ParseDate(*date, UnixSeconds()) : std::nullopt;
}

bool HearClock(const Persistence& persistence, const ResponseHead& head, std::string_view where) {
  const auto date = DateOf(head);
  if (!date || !persistence.clock->Hear(*date)) return false;
  const int64_t offset = persistence.clock->offset();
  persistence.say(
      fmt::format("this machine's clock is {} s {} that of {}; signatures and expirations use the server's time",
                  std::abs(offset), offset < 0 ? "ahead of" : "behind", where));
  return true;
}

asio::awaitable<StatusOr<Answer>> AskedUntilAnswered(const Persistence& persistence, size_t limit,
                                                     PrepareRequest prepare, JudgeAnswer judge) {
  RetryState state;
  RetryRules rules = persistence.retry;
  if (persistence.unanswered) rules.patience = std::min(rules.patience, *persistence.unanswered);
  asio::steady_timer pause(co_await asio::this_coro::executor);
  while (true) {
    StatusOr<Request> request = co_await prepare();
    if (!request.ok()) co_return request.status();
    Answer answer = co_await Asked(persistence.http, *request, persistence.limits, limit);
    Refusal refusal;
    if (answer.end.kind == TransferEnd::Kind::kWhole) {
      rules = persistence.retry;
      std::optional<Refusal> judged = judge(answer);
      if (!judged) co_return std::move(answer);
      refusal = std::move(*judged);
    } else {
      refusal = RefusalOf(answer.end, WithoutQuery(request->url));
    }
    if (refusal.kind == Refusal::Kind::kFatal || refusal.kind == Refusal::Kind::kChanged) co_return refusal.status;
    RetryDecision decision = DecideRetry(rules, &state, {true, refusal.asked, std::string(Message(refusal.status))},
                                         MonotonicClock::now(), persistence.jitter());
    if (!decision.pause) co_return absl::UnavailableError(decision.reason);
    persistence.say(decision.reason);
    pause.expires_after(*decision.pause);
    co_await pause.async_wait(asio::use_awaitable);
  }
}

}  // namespace muster::http
