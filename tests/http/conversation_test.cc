// SPDX-License-Identifier: Apache-2.0
// Tests cancelled conversations. web_test.py and others test their requests.
#include "http/conversation.h"

#include <gtest/gtest.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/text.h"

namespace muster::http {
namespace {

namespace asio = boost::asio;

// A server that accepts connections and never answers.
class SilentServer {
 public:
  explicit SilentServer(asio::io_context& loop)
      : acceptor_(loop, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {}
  std::string url() const { return fmt::format("http://127.0.0.1:{}/", acceptor_.local_endpoint().port()); }
  void OnConnected(std::function<void()> connected) {
    acceptor_.async_accept(
        [this, connected = std::move(connected)](boost::system::error_code error, asio::ip::tcp::socket socket) {
          if (error) return;
          socket_.emplace(std::move(socket));
          connected();
        });
  }

 private:
  asio::ip::tcp::acceptor acceptor_;
  std::optional<asio::ip::tcp::socket> socket_;
};

struct Trace {
  bool asked = false, answered = false, unwound = false;
};

struct Unwound {
  bool* flag;
  ~Unwound() { *flag = true; }
};

asio::awaitable<void> AskOnce(Client& client, Request request, Trace* trace) {
  const Unwound unwound{&trace->unwound};
  trace->asked = true;
  const Answer answer = co_await Asked(client, std::move(request), {}, 1000);
  trace->answered = true;
}

TEST(Conversation, ThatIsCancelledHearsNoAnswer) {
  asio::io_context loop;
  SilentServer server(loop);
  Client client(loop, {});
  Trace trace;
  Request request;
  request.url = server.url();
  std::shared_ptr<void> handle = Converse(loop, AskOnce(client, request, &trace));
  server.OnConnected([&] { handle.reset(); });
  loop.run_for(std::chrono::seconds(10));
  EXPECT_TRUE(trace.asked);
  EXPECT_TRUE(trace.unwound);
  EXPECT_FALSE(trace.answered);
}

// A stopped program does not run its loop again.
TEST(Conversation, IsUnwoundWithAStoppedLoopOnceCancelled) {
  Trace trace;
  {
    asio::io_context loop;
    SilentServer server(loop);
    Client client(loop, {});
    Request request;
    request.url = server.url();
    std::shared_ptr<void> handle = Converse(loop, AskOnce(client, request, &trace));
    server.OnConnected([&] { loop.stop(); });
    loop.run_for(std::chrono::seconds(10));
    ASSERT_TRUE(loop.stopped());
    EXPECT_TRUE(trace.asked);
    EXPECT_FALSE(trace.unwound);
  }
  EXPECT_TRUE(trace.unwound);
}

// The handle is destroyed between two runs of the loop: before the coroutine begins, while it waits, and when the end
// of its wait is already due.
TEST(Conversation, ThatIsCancelledOutsideTheLoopDoesNothingMore) {
  for (const std::string when : {"before", "waiting", "due"}) {
    asio::io_context loop;
    asio::steady_timer wait(loop, TimePoint::max());
    bool unwound = false, went_on = false;
    auto talk = [&]() -> asio::awaitable<void> {
      const Unwound its{&unwound};
      co_await wait.async_wait(asio::as_tuple(asio::use_awaitable));
      ThrowIfCancelled(co_await asio::this_coro::cancellation_state);
      went_on = true;
    };
    std::shared_ptr<void> handle = Converse(loop, talk());
    if (when != "before") loop.poll();
    if (when == "due") wait.cancel();
    handle.reset();
    loop.restart();
    loop.run_for(std::chrono::seconds(10));
    EXPECT_FALSE(went_on) << when;
    EXPECT_EQ(unwound, when != "before") << when;
  }
}

TEST(Conversation, ThatIsCancelledAsksNoMore) {
  asio::io_context loop;
  SilentServer server(loop);
  Client client(loop, {});
  int prepared = 0, judged = 0, ended = 0;
  const Persistence persistence{client, {}, {}, [] { return 0.5; }, [](const std::string&) {}};
  auto prepare = [&]() -> asio::awaitable<StatusOr<Request>> {
    ++prepared;
    Request request;
    request.url = server.url();
    co_return request;
  };
  auto judge = [&](const Answer&) -> std::optional<Refusal> {
    ++judged;
    return std::nullopt;
  };
  Trace trace;
  auto talk = [&]() -> asio::awaitable<void> {
    const Unwound unwound{&trace.unwound};
    auto answer = co_await AskedUntilAnswered(persistence, 1000, prepare, judge);
    ++ended;
  };
  std::shared_ptr<void> handle = Converse(loop, talk());
  bool cancelled = false;
  server.OnConnected([&] {
    EXPECT_FALSE(trace.unwound);
    handle.reset();
    cancelled = true;
  });
  loop.run_for(std::chrono::seconds(10));
  EXPECT_TRUE(cancelled);
  EXPECT_TRUE(trace.unwound);
  EXPECT_EQ(prepared, 1);
  EXPECT_EQ(judged, 0);
  EXPECT_EQ(ended, 0);
}

TEST(Turn, IsOnesAtATimeAndGoesOnWhenItsHolderIsCancelled) {
  asio::io_context loop;
  SilentServer server(loop);
  Client client(loop, {});
  auto turn = std::make_shared<Turn>();
  std::string order;
  auto take = [&](char name, bool asks) -> asio::awaitable<void> {
    const auto held = co_await Turn::Take(turn);
    order += name;
    Request request;
    request.url = server.url();
    if (asks) co_await Asked(client, std::move(request), {}, 1000);
    order += '.';
  };
  std::shared_ptr<void> first = Converse(loop, take('a', true));
  std::shared_ptr<void> second = Converse(loop, take('b', false));
  std::shared_ptr<void> third = Converse(loop, take('c', false));
  server.OnConnected([&] {
    order += '|';
    second.reset();
    first.reset();
  });
  loop.run_for(std::chrono::seconds(10));
  EXPECT_EQ(order, "a|c.");
}

}  // namespace
}  // namespace muster::http
