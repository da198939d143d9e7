// SPDX-License-Identifier: Apache-2.0
#include "agent/http_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <thread>

namespace muster::agent {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using testing::HasSubstr;

// Asks a server that sends `text`, in pieces of `piece` bytes, and closes.
StatusOr<FetchAnswer> Fetch(const std::string& text, size_t piece) {
  asio::io_context serving;
  tcp::acceptor acceptor(serving, {asio::ip::address_v4::loopback(), 0});
  std::thread server([&] {
    tcp::socket client(serving);
    acceptor.accept(client);
    client.set_option(tcp::no_delay(true));
    std::array<char, 1024> request;
    boost::system::error_code ignored;
    client.read_some(asio::buffer(request), ignored);
    for (size_t at = 0; at < text.size(); at += piece) {
      asio::write(client, asio::buffer(text.substr(at, piece)), ignored);
    }
  });
  asio::io_context loop;
  net::Resolver resolver(loop);
  FetchRequest request;
  request.host = "127.0.0.1";
  request.port = acceptor.local_endpoint().port();
  StatusOr<FetchAnswer> answer = absl::UnknownError("not called");
  auto fetch = HttpFetch::Start(loop, resolver, request, std::chrono::seconds(20), [&](StatusOr<FetchAnswer> got) {
    answer = std::move(got);
    loop.stop();
  });
  loop.run();
  server.join();
  return answer;
}

TEST(HttpFetch, AnInterimResponseIsNotTheAnswer) {
  const std::string answer = "HTTP/1.1 200 OK\r\nETag: \"7\"\r\nContent-Length: 5\r\n\r\nhello";
  const std::string hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nETag: \"6\"\r\n\r\n";
  for (const std::string& before :
       {std::string(), std::string("HTTP/1.1 100 Continue\r\n\r\n"), hints, hints + hints}) {
    for (size_t piece : {size_t{1}, size_t{1000}}) {
      auto got = Fetch(before + answer, piece);
      ASSERT_TRUE(got.ok()) << before << got.status();
      EXPECT_EQ(got->status, 200) << before;
      EXPECT_EQ(got->body, "hello") << before;
      EXPECT_EQ(got->etag, "\"7\"") << before;
    }
  }
}

TEST(HttpFetch, NoAnswerAfterAnInterimResponse) {
  auto got = Fetch("HTTP/1.1 100 Continue\r\n\r\n", 1000);
  ASSERT_FALSE(got.ok());
  EXPECT_THAT(std::string(got.status().message()), HasSubstr("closed without an answer"));
}

// 101 ends HTTP on the connection, so nothing follows it.
TEST(HttpFetch, SwitchingProtocolsIsTheAnswer) {
  auto got = Fetch("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 1000);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->status, 101);
}

}  // namespace
}  // namespace muster::agent
