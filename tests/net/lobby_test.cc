// SPDX-License-Identifier: Apache-2.0
#include "net/lobby.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <string>
#include <vector>

namespace muster::net {
namespace {

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

class LobbyTest : public testing::Test {
 protected:
  // The client's end of a connection that is in the lobby.
  Descriptor Connect() {
    const auto address = acceptor_.local_endpoint();
    Descriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(client.get(), address.data(), static_cast<socklen_t>(address.size())), 0);
    lobby_.Admit(Descriptor(accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)));
    return client;
  }
  static void Send(const Descriptor& client, const std::string& bytes) {
    EXPECT_EQ(send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  bool Closed(const Descriptor& client) {
    loop_.restart();
    loop_.poll();
    char byte;
    const ssize_t count = recv(client.get(), &byte, 1, MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno == ECONNRESET);
  }

  boost::asio::io_context loop_;
  boost::asio::ip::tcp::acceptor acceptor_{loop_, {boost::asio::ip::address_v4::loopback(), 0}};
  std::vector<Descriptor> ready_;
  Lobby lobby_{loop_, [this](int fd) { ready_.emplace_back(fd); }};
};

TEST_F(LobbyTest, HandsOverAClientOfTheProtocol) {
  const Descriptor client = Connect();
  Send(client, std::string(kPreface) + "more");
  EXPECT_FALSE(Closed(client));
  ASSERT_EQ(ready_.size(), 1U);
  char bytes[64];
  EXPECT_EQ(std::string(bytes, static_cast<size_t>(recv(ready_[0].get(), bytes, sizeof bytes, 0))),
            std::string(kPreface) + "more");
}

TEST_F(LobbyTest, WaitsForAllOfTheFirstBytes) {
  const Descriptor client = Connect();
  for (const char byte : std::string(kPreface)) {
    EXPECT_TRUE(ready_.empty());
    Send(client, std::string(1, byte));
    EXPECT_FALSE(Closed(client));
  }
  while (ready_.empty() && loop_.run_one_for(std::chrono::seconds(60)) > 0) {
  }
  EXPECT_EQ(ready_.size(), 1U);
}

TEST_F(LobbyTest, ClosesAClientOfAnotherProtocol) {
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), std::string(24, '\x15'),
                                   std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r"), std::string(1000, 'P')}) {
    const Descriptor client = Connect();
    Send(client, bytes);
    EXPECT_TRUE(Closed(client)) << bytes;
  }
  EXPECT_TRUE(ready_.empty());
}

TEST_F(LobbyTest, ClosesAClientThatStopsSending) {
  Descriptor client = Connect();
  Send(client, "PRI");
  shutdown(client.get(), SHUT_WR);
  EXPECT_TRUE(Closed(client));
  client.Close();
  EXPECT_TRUE(ready_.empty());
  EXPECT_FALSE(lobby_.CloseOldest());
}

TEST_F(LobbyTest, MakesRoomByTheOldestThatSaysNothing) {
  const Descriptor first = Connect();
  EXPECT_FALSE(lobby_.CloseOldest());  // it has just come
  while (!lobby_.CloseOldest()) {
  }
  EXPECT_TRUE(Closed(first));
  const Descriptor second = Connect();
  Send(second, kPreface);
  EXPECT_FALSE(Closed(second));
  EXPECT_FALSE(lobby_.CloseOldest());
  EXPECT_EQ(ready_.size(), 1U);
}

TEST_F(LobbyTest, ClosesAllAtItsEnd) {
  const Descriptor client = Connect();
  Send(client, kPreface);
  lobby_.Close();
  EXPECT_TRUE(Closed(client));
  EXPECT_TRUE(ready_.empty());
}

TEST_F(LobbyTest, HandsOverATlsHandshake) {
  const Descriptor client = Connect();
  Send(client, "\x16\x03\x01" + std::string(100, 'x'));
  EXPECT_FALSE(Closed(client));
  EXPECT_EQ(ready_.size(), 1U);
}

}  // namespace
}  // namespace muster::net
