// SPDX-License-Identifier: Apache-2.0
// Tests on which thread and in which order sinks and intakes are called. web_test.py and others test failing requests.
#include "http/client_threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <list>
#include <mutex>
#include <thread>

#include "base/text.h"
#include "tests/base/made_bytes.h"

namespace muster::http {
namespace {

namespace asio = boost::asio;
using Taken = Intake::Taken;

// Answers the first request of each connection with a fixed text, and keeps the connection open.
class WebServer {
 public:
  WebServer(asio::io_context& loop, std::string answer)
      : acceptor_(loop, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0)), answer_(std::move(answer)) {
    asio::co_spawn(loop, Serve(), asio::detached);
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}/", acceptor_.local_endpoint().port()); }

 private:
  asio::awaitable<void> Serve() {
    while (true) {
      sockets_.push_back(co_await acceptor_.async_accept(asio::use_awaitable));
      asio::co_spawn(acceptor_.get_executor(), Answer(sockets_.back()), asio::detached);
    }
  }
  asio::awaitable<void> Answer(asio::ip::tcp::socket& socket) {
    std::string request;
    co_await asio::async_read_until(socket, asio::dynamic_buffer(request), "\r\n\r\n", asio::use_awaitable);
    boost::system::error_code gone;
    co_await asio::async_write(socket, asio::buffer(answer_), asio::redirect_error(asio::use_awaitable, gone));
  }

  asio::ip::tcp::acceptor acceptor_;
  const std::string answer_;
  std::list<asio::ip::tcp::socket> sockets_;
};

std::string Answer(std::string_view body, size_t announced) {
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", announced, body);
}
std::string Answer(std::string_view body) { return Answer(body, body.size()); }

// Events in their order: "head" and "end" on the loop, "take" on a thread, "gone" on any of them.
struct Trace {
  void Add(const std::string& what) {
    const std::lock_guard lock(mutex);
    if (all.empty() || all.back() != what) all.push_back(what);
  }
  std::vector<std::string> All() {
    const std::lock_guard lock(mutex);
    return all;
  }
  std::mutex mutex;
  std::vector<std::string> all;
};

struct NotedIntake final : Intake {
  explicit NotedIntake(Trace& to) : trace(to) {}
  ~NotedIntake() override { trace.Add("gone"); }
  Taken Take(std::string_view bytes) override {
    trace.Add("take");
    thread = std::this_thread::get_id();
    const Taken word = say ? say() : Taken::kAll;
    if (word == Taken::kAll) body += bytes;
    if (took) took();
    return word;
  }
  Trace& trace;
  std::function<Taken()> say;
  std::function<void()> took;
  std::string body;
  std::thread::id thread;
};

struct NotedSink final : Sink {
  NotedSink(asio::io_context& on, Trace& to) : loop(on), trace(to) {}
  std::shared_ptr<Intake> Head(const ResponseHead& head) override {
    trace.Add("head");
    EXPECT_EQ(std::this_thread::get_id(), thread);
    status = head.status;
    if (intake && on_head) on_head();
    return std::exchange(intake, nullptr);
  }
  void End(const TransferEnd& what) override {
    trace.Add("end");
    EXPECT_EQ(std::this_thread::get_id(), thread);
    end = what;
    if (--*to_end == 0) loop.stop();
  }
  asio::io_context& loop;
  Trace& trace;
  const std::thread::id thread = std::this_thread::get_id();
  std::shared_ptr<NotedIntake> intake;
  std::function<void()> on_head;
  int one = 1;
  int* to_end = &one;
  int status = 0;
  std::optional<TransferEnd> end;
};

class ClientThreadsTest : public testing::Test {
 protected:
  std::shared_ptr<NotedIntake> NewIntake() { return std::make_shared<NotedIntake>(trace_); }
  Transport::Id Start(ClientThreads& threads, const WebServer& server, NotedSink& sink) {
    Request request;
    request.url = server.url();
    return threads.Start(request, {}, sink);
  }
  void Run() { loop_.restart(), loop_.run_for(std::chrono::seconds(60)); }

  asio::io_context loop_;
  Trace trace_;
};

TEST_F(ClientThreadsTest, AHeadIsJudgedBeforeAnythingIsTaken) {
  const std::string body = MadeBytes(3 << 20, 1);
  const WebServer server(loop_, Answer(body));
  ClientThreads threads(loop_, {}, 2);
  NotedSink sink(loop_, trace_);
  std::string got;
  std::thread::id taker;
  sink.intake = NewIntake();
  sink.intake->took = [&got, &taker, intake = sink.intake.get()] { got = intake->body, taker = intake->thread; };
  Start(threads, server, sink);
  EXPECT_TRUE(trace_.All().empty());
  Run();
  EXPECT_EQ(trace_.All(), (std::vector<std::string>{"head", "take", "gone", "end"}));
  EXPECT_EQ(sink.status, 200);
  EXPECT_EQ(sink.end->kind, TransferEnd::Kind::kWhole);
  EXPECT_EQ(got, body);
  EXPECT_NE(taker, std::this_thread::get_id());
}

TEST_F(ClientThreadsTest, AnAnswerWithoutABody) {
  const WebServer server(loop_, Answer(""));
  ClientThreads threads(loop_, {}, 2);
  NotedSink sink(loop_, trace_);
  sink.intake = NewIntake();
  Start(threads, server, sink);
  Run();
  ASSERT_TRUE(sink.end);
  EXPECT_EQ(sink.end->kind, TransferEnd::Kind::kWhole);
  EXPECT_EQ(trace_.All().front(), "head");
}

TEST_F(ClientThreadsTest, AHeadThatIsNotWanted) {
  const WebServer server(loop_, Answer("a page", 1 << 20));
  ClientThreads threads(loop_, {}, 2);
  NotedSink sink(loop_, trace_);
  Start(threads, server, sink);
  Run();
  ASSERT_TRUE(sink.end);
  EXPECT_EQ(sink.end->kind, TransferEnd::Kind::kRefused);
}

TEST_F(ClientThreadsTest, ABodyOfWhichThereIsEnough) {
  const WebServer server(loop_, Answer("a page", 1 << 20));
  ClientThreads threads(loop_, {}, 2);
  NotedSink sink(loop_, trace_);
  sink.intake = NewIntake();
  sink.intake->say = [] { return Taken::kEnough; };
  Start(threads, server, sink);
  Run();
  ASSERT_TRUE(sink.end);
  EXPECT_EQ(sink.end->kind, TransferEnd::Kind::kRefused);
}

TEST_F(ClientThreadsTest, ABodyThatWaits) {
  const std::string body = MadeBytes(1 << 20, 2);
  const WebServer server(loop_, Answer(body));
  ClientThreads threads(loop_, {}, 2);
  NotedSink sink(loop_, trace_);
  Transport::Id id = 0;
  std::string got;
  int asked = 0;
  sink.intake = NewIntake();
  sink.intake->say = [&] { return ++asked % 2 == 1 ? Taken::kNotNow : Taken::kAll; };
  sink.intake->took = [&, intake = sink.intake.get()] {
    got = intake->body;
    if (asked % 2 == 1) asio::post(loop_, [&] { threads.Resume(id); });
  };
  id = Start(threads, server, sink);
  Run();
  ASSERT_TRUE(sink.end);
  EXPECT_EQ(sink.end->kind, TransferEnd::Kind::kWhole);
  EXPECT_EQ(got, body);
}

TEST_F(ClientThreadsTest, WhatIsCancelledIsLetGoAndNothingIsHeardOfIt) {
  const WebServer server(loop_, Answer("the beginning", 1 << 20));
  ClientThreads threads(loop_, {}, 2);
  NotedSink sink(loop_, trace_);
  Transport::Id id = 0;
  auto let_go = [this](NotedIntake* intake) {
    delete intake;
    loop_.stop();
  };
  sink.intake = std::shared_ptr<NotedIntake>(new NotedIntake(trace_), let_go);
  sink.intake->took = [&] { asio::post(loop_, [&] { threads.Cancel(id); }); };
  id = Start(threads, server, sink);
  Run();
  EXPECT_EQ(trace_.All(), (std::vector<std::string>{"head", "take", "gone"}));
  threads.Cancel(id);  // allowed after the end
  loop_.restart();
  loop_.poll();
  EXPECT_FALSE(sink.end);
}

TEST_F(ClientThreadsTest, TheirEndWaitsForWhatIsTakenAndIsSilent) {
  const WebServer server(loop_, Answer("the beginning", 1 << 20));
  NotedSink sink(loop_, trace_);
  {
    ClientThreads threads(loop_, {}, 2);
    sink.intake = NewIntake();
    sink.intake->took = [&] { loop_.stop(); };
    Start(threads, server, sink);
    Run();
  }
  EXPECT_EQ(trace_.All(), (std::vector<std::string>{"head", "take", "gone"}));
  loop_.restart();
  loop_.poll();
  EXPECT_FALSE(sink.end);
}

TEST_F(ClientThreadsTest, BodiesAreTakenSideBySideUpToTheMost) {
  for (const int most : {1, 2}) {
    const WebServer server(loop_, Answer("the beginning", 1 << 20));
    ClientThreads threads(loop_, {}, most);
    std::list<NotedSink> sinks;
    std::mutex mutex;
    std::vector<std::thread::id> takers;
    for (int i = 0; i < 4; ++i) {
      NotedSink& sink = sinks.emplace_back(loop_, trace_);
      sink.intake = NewIntake();
      sink.intake->took = [&, intake = sink.intake.get()] {
        const std::lock_guard lock(mutex);
        takers.push_back(intake->thread);
        if (takers.size() == 4) loop_.stop();
      };
      Start(threads, server, sink);
    }
    Run();
    ASSERT_EQ(takers.size(), 4u);
    std::sort(takers.begin(), takers.end());
    EXPECT_EQ(std::unique(takers.begin(), takers.end()) - takers.begin(), most);
    for (NotedSink& sink : sinks) EXPECT_FALSE(sink.end);
  }
}

}  // namespace
}  // namespace muster::http
