// SPDX-License-Identifier: Apache-2.0
// Many and hostile clients of http/server.h: bare sockets, from several addresses of this machine.
#include <gmock/gmock.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <list>

#include "base/text.h"
#include "http/server.h"

namespace muster::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using testing::HasSubstr;
using testing::StartsWith;

constexpr auto kGenerous = std::chrono::seconds(60);
constexpr char kCrowd[] = "127.0.0.2", kApi[] = "127.0.0.3";

class ServerLimits : public testing::Test {
 protected:
  struct Client {
    explicit Client(asio::io_context& loop) : socket(loop) {}
    tcp::socket socket;
    std::array<char, 4096> buffer;
    std::string got;
    bool closed = false;
  };

  void Listen(Server::Options options) {
    Server::Routes routes;
    routes["/review"] = {[](const Server::Request& request, const Server::Answer& answer) {
                           answer({200, "text/plain", fmt::format("{} bytes", request.body.size())});
                         },
                         true, 1 << 20};
    routes["/trailers"] = {[](const Server::Request& request, const Server::Answer& answer) {
                             answer({200, "text/plain", std::string(request.Find("late").value_or("none"))});
                           },
                           true, 1 << 20};
    routes["/later"].handler = [this](const Server::Request&, Server::Answer answer) {
      answers_.push_back(std::move(answer));
    };
    auto server = Server::Listen(loop_, "", 0, std::move(routes), std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  Client& Connect(const char* from, const std::string& text = "") {
    Client& client = clients_.emplace_back(loop_);
    client.socket.open(tcp::v4());
    client.socket.bind({asio::ip::make_address(from), 0});
    client.socket.connect({asio::ip::address_v4::loopback(), server_->port()});
    Read(client);
    Send(client, text);
    return client;
  }
  void Send(Client& client, const std::string& text) {
    auto kept = std::make_shared<std::string>(text);
    asio::async_write(client.socket, asio::buffer(*kept), [kept](const boost::system::error_code&, size_t) {});
  }
  void Read(Client& client) {
    client.socket.async_read_some(asio::buffer(client.buffer),
                                  [this, &client](const boost::system::error_code& error, size_t size) {
                                    client.got.append(client.buffer.data(), size);
                                    client.closed = error.failed();
                                    if (!error) Read(client);
                                  });
  }
  bool RunUntil(const std::function<bool()>& done) {
    const TimePoint deadline = MonotonicClock::now() + kGenerous;
    loop_.restart();
    while (!done() && loop_.run_one_until(deadline) > 0) {
    }
    return done();
  }
  // The answer to `text` on a new connection, until the server closes it.
  std::string Say(const std::string& text) {
    Client& client = Connect("127.0.0.1", text);
    EXPECT_TRUE(RunUntil([&] { return client.closed; })) << text;
    return client.got;
  }
  static std::string Review(size_t announced, size_t sent) {
    return fmt::format("POST /review HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}", announced, std::string(sent, 'x'));
  }
  static auto Closed() {
    return [](const Client* client) { return client->closed; };
  }

  asio::io_context loop_;
  std::list<Client> clients_;
  std::vector<Server::Answer> answers_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerLimits, RefusesARequestWhoseEndIsDoubtful) {
  Listen({});
  const std::string post = "POST /review HTTP/1.1\r\n", body = "\r\n5\r\nhello\r\n0\r\n\r\n";
  const struct {
    std::string request;
    int status;
  } rows[] = {
      {post + "Transfer-Encoding: xchunked\r\n" + body, 501},
      {post + "Transfer-Encoding: chunked, identity\r\n" + body, 501},
      {post + "Transfer-Encoding: gzip, chunked\r\n" + body, 501},
      {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n" + body, 400},
      {post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n" + body, 400},
      {post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" + body, 400},
      {post + "Content-Length: 5\r\nTransfer-Encoding: xchunked\r\n" + body, 400},
      {post + "Transfer-Encoding : chunked\r\n" + body, 400},
      {post + "Transfer-Encoding:\r\n chunked\r\n" + body, 400},
      {post + "A: b\r\n\tTransfer-Encoding: chunked\r\n" + body, 400},
      {post + " Transfer-Encoding: chunked\r\n" + body, 400},
      {post + "Transfer-Encoding: chunked\n" + body, 400},
      {"POST /review HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" + body, 400},
      {post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400},
      {post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400},
      {post + "Content-Length: 5, 5\r\n\r\nhello", 400},
      {post + "Content-Length: +5\r\n\r\nhello", 400},
      {post + "Content-Length: 0x5\r\n\r\nhello", 400},
      {post + "Content-Length: -5\r\n\r\nhello", 400},
      {post + "Content-Length: \r\n\r\nhello", 400},
      {post + "Host: a\r\nHost: b\r\nContent-Length: 5\r\n\r\nhello", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n5 5\r\nhello\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloxx0\r\n\r\n", 400},
      {"POST /review HTTP/2.0\r\n\r\n", 400},
  };
  for (const auto& row : rows) {
    const std::string got = Say(row.request + "GET /later HTTP/1.1\r\n\r\n");
    EXPECT_THAT(got, StartsWith(fmt::format("HTTP/1.1 {} ", row.status))) << row.request;
    EXPECT_EQ(got.find("HTTP/1.1 ", 1), std::string::npos) << row.request;  // there is no second request
  }
  EXPECT_TRUE(answers_.empty());
}

TEST_F(ServerLimits, AFieldAfterTheBodyIsNoHeader) {
  Listen({});
  const std::string request =
      "POST /trailers HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nLate: "
      "yes\r\n\r\n";
  EXPECT_THAT(Say(request), testing::EndsWith("\r\n\r\nnone"));
}

TEST_F(ServerLimits, ACrowdOfUnfinishedBodiesMakesRoomForAReview) {
  Listen({.memory = 1 << 20});
  std::vector<const Client*> crowd;
  for (int i = 0; i < 8; ++i) crowd.push_back(&Connect(kCrowd, Review(1 << 20, 300 << 10)));  // 2.4 MiB of 8
  EXPECT_TRUE(RunUntil([&] { return std::count_if(crowd.begin(), crowd.end(), Closed()) >= 5; }));
  const Client& api = Connect(kApi, Review(250 << 10, 250 << 10));
  EXPECT_TRUE(RunUntil([&] { return api.closed || api.got.ends_with("256000 bytes"); }));
  EXPECT_THAT(api.got, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_FALSE(api.closed);
}

TEST_F(ServerLimits, ARequestThatIsTooLargeForAllTogetherHearsSo) {
  Listen({.memory = 100'000});
  const Client& client = Connect(kApi, Review(1 << 20, 1 << 20));
  EXPECT_TRUE(RunUntil([&] { return client.got.find("\r\n\r\n") != std::string::npos; }));
  EXPECT_THAT(client.got, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
}

TEST_F(ServerLimits, ACrowdClosesItsOwnConnections) {
  Listen({.connections = 8});
  Client& api = Connect(kApi, Review(5, 5));
  Client& waits = Connect(kApi, "GET /later HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(RunUntil([&] { return api.got.ends_with("5 bytes") && answers_.size() == 1; }));
  std::vector<const Client*> crowd;
  for (int i = 0; i < 50; ++i) crowd.push_back(&Connect(kCrowd, i % 2 == 0 ? "" : Review(5, 5)));
  EXPECT_TRUE(RunUntil([&] { return std::count_if(crowd.begin(), crowd.end(), Closed()) >= 44; }));
  EXPECT_EQ(server_->connections(), 8U);
  EXPECT_FALSE(api.closed);
  EXPECT_FALSE(waits.closed);
  answers_.front()({.body = "at last"});
  Send(api, Review(6, 6));
  EXPECT_TRUE(RunUntil([&] { return api.got.ends_with("6 bytes") && waits.got.ends_with("at last"); }));
}

TEST_F(ServerLimits, NewConnectionsWaitWhileAllAreAnswered) {
  Listen({.connections = 2});
  std::vector<const Client*> first;
  for (int i = 0; i < 2; ++i) first.push_back(&Connect(kCrowd, "GET /later HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(RunUntil([&] { return answers_.size() == 2; }));
  const Client& waits = Connect(kApi, Review(5, 5));
  loop_.poll();
  EXPECT_EQ(server_->connections(), 2U);
  answers_.front()({.body = "done"});
  EXPECT_TRUE(RunUntil([&] { return waits.got.ends_with("5 bytes"); }));
  answers_.back()({.body = "done"});
  EXPECT_TRUE(RunUntil(
      [&] { return std::any_of(first.begin(), first.end(), [](auto* one) { return one->got.ends_with("done"); }); }));
}

}  // namespace
}  // namespace muster::http
