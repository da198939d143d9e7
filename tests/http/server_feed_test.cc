// SPDX-License-Identifier: Apache-2.0
// Answers that go on: pieces as the client reads them, and the end of each side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <deque>

#include "base/text.h"
#include "http/server.h"

namespace muster::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// What a feed has to say, and what became of it.
struct Said {
  std::deque<std::optional<std::string>> pieces;  // nullopt: the end
  size_t asked = 0;
  bool gone = false;
  Feed* feed = nullptr;
};

class ScriptedFeed final : public Feed {
 public:
  explicit ScriptedFeed(std::shared_ptr<Said> said) : said_(std::move(said)) { said_->feed = this; }
  ~ScriptedFeed() override {
    said_->gone = true;
    said_->feed = nullptr;
  }
  std::optional<std::string> Next() override {
    ++said_->asked;
    if (said_->pieces.empty()) return "";
    std::optional<std::string> piece = std::move(said_->pieces.front());
    said_->pieces.pop_front();
    return piece;
  }

 private:
  std::shared_ptr<Said> said_;
};

class FeedTest : public testing::Test {
 protected:
  void Listen(Server::Options options = {}) {
    Server::Routes routes;
    routes["/feed"].handler = [this](const Server::Request&, const Server::Answer& answer) {
      answer({.content_type = "text/event-stream", .body = "begin\n", .feed = std::make_shared<ScriptedFeed>(said_)});
    };
    auto server = Server::Listen(loop_, "localhost", 0, std::move(routes), std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void Ask(const std::string& method = "GET") {
    client_.connect({asio::ip::address_v4::loopback(), server_->port()});
    asio::write(client_, asio::buffer(method + " /feed HTTP/1.1\r\nHost: a\r\n\r\n"));
  }
  void Read() {
    client_.async_read_some(asio::buffer(buffer_), [this](error_code error, size_t size) {
      got_.append(buffer_.data(), size);
      error ? void(ended_ = error) : Read();
    });
  }
  // Runs the loop until `done`; fails after a minute.
  void Until(const std::function<bool()>& done, const char* what) {
    asio::steady_timer limit(loop_, std::chrono::seconds(60));
    auto late = std::make_shared<bool>(false);  // the handler of a cancelled wait runs later
    limit.async_wait([late](const error_code& error) { *late = !error; });
    while (!done() && !*late) loop_.run_one();
    ASSERT_FALSE(*late) << "waited in vain for " << what << "; got: " << got_.substr(0, 500);
  }

  asio::io_context loop_;
  std::shared_ptr<Said> said_ = std::make_shared<Said>();
  std::unique_ptr<Server> server_;
  asio::ip::tcp::socket client_{loop_};
  std::array<char, 65'536> buffer_;
  std::string got_;
  error_code ended_;
};

TEST_F(FeedTest, SendsAPieceAfterTheOtherAndTheEnd) {
  Listen();
  said_->pieces = {"one ", "two "};
  Ask();
  Read();
  Until([&] { return got_.ends_with("two "); }, "what is there");
  EXPECT_THAT(got_, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(got_, HasSubstr("Content-Type: text/event-stream\r\n"));
  EXPECT_THAT(got_, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(got_, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(got_, EndsWith("\r\n\r\nbegin\none two "));
  said_->feed->Wake();  // nothing is there: nothing is sent
  said_->pieces = {"three", std::nullopt};
  said_->feed->Wake();
  Until([&] { return ended_ == asio::error::eof; }, "the end");
  EXPECT_THAT(got_, EndsWith("two three"));
  client_.close();
  Until([&] { return said_->gone && server_->connections() == 0; }, "the end of the connection");
}

TEST_F(FeedTest, KnowsThatTheClientHasGone) {
  Listen();
  Ask();
  Read();
  Until([&] { return said_->asked > 0; }, "the feed");
  client_.close();
  Until([&] { return said_->gone; }, "the end of the feed");
  EXPECT_EQ(server_->connections(), 0u);
}

// Nothing piles up for a client that does not read; it is closed in the end.
TEST_F(FeedTest, AClientThatDoesNotReadIsAskedForNoMore) {
  Listen({.request = std::chrono::milliseconds(300)});
  for (int i = 0; i < 1000; ++i) said_->pieces.emplace_back(std::string(1 << 20, 'x'));
  Ask();
  Until([&] { return said_->gone; }, "the end of the feed");
  EXPECT_LT(said_->asked, 100u);
}

TEST_F(FeedTest, HeadHasNoFeed) {
  Listen();
  said_->pieces = {"one"};
  Ask("HEAD");
  Read();
  Until([&] { return ended_ == asio::error::eof; }, "the end");
  EXPECT_THAT(got_, EndsWith("\r\n\r\n"));
  EXPECT_EQ(said_->asked, 0u);
  client_.close();
  Until([&] { return server_->connections() == 0; }, "the end of the connection");
}

TEST_F(FeedTest, EndsWithTheServer) {
  Listen();
  Ask();
  Read();
  Until([&] { return said_->asked > 0; }, "the feed");
  server_.reset();
  Until([&] { return said_->gone && ended_.failed(); }, "the end");
}

}  // namespace
}  // namespace muster::http
