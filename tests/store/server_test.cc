// SPDX-License-Identifier: Apache-2.0
// The server over real sockets, with client.h, and with raw bytes of clients that misbehave.
#include "rendezvous/store/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <future>
#include <thread>

#include "base/host_names.h"
#include "base/log.h"
#include "tests/net/ipv6_port.h"
#include "tests/store/store_client.h"
#include "tests/store/wire.h"

namespace muster::store {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr auto kGenerous = 60s;

class Raw {
 public:
  explicit Raw(uint16_t port, std::string_view first = {}, int receive_buffer = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    if (!first.empty()) Send(first);
  }
  Raw(Raw&& other) noexcept : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {}
  ~Raw() { Close(); }

  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  bool connected() const { return connected_; }
  int fd() const { return fd_; }
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // Sends as much as is possible without waiting. Returns the number of bytes.
  size_t SendSome(std::string_view bytes) {
    ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? 0 : static_cast<size_t>(sent);
  }
  // Receives exactly `bytes` bytes; fewer if the server closes or sends nothing for a long time.
  std::string Receive(size_t bytes) {
    std::string text(bytes, 0);
    size_t have = 0;
    while (have < bytes) {
      pollfd one{fd_, POLLIN, 0};
      if (::poll(&one, 1, 60'000) <= 0) break;
      ssize_t count = ::recv(fd_, text.data() + have, bytes - have, 0);
      if (count <= 0) break;
      have += static_cast<size_t>(count);
    }
    text.resize(have);
    return text;
  }
  bool Closed() {
    pollfd one{fd_, POLLIN, 0};
    char byte;
    return ::poll(&one, 1, 60'000) == 1 && ::recv(fd_, &byte, 1, 0) <= 0;
  }

 private:
  int fd_ = -1;
  bool connected_ = false;
};

class ServerTest : public testing::Test {
 protected:
  // Runs `what` on the server's loop and waits for it.
  template <typename F>
  auto OnLoop(F what) {
    auto task = std::make_shared<std::packaged_task<decltype(what())()>>(std::move(what));
    auto future = task->get_future();
    boost::asio::post(*io_, [task] { (*task)(); });
    return future.get();
  }
  void SetUp() override { Start({}); }
  void Start(StoreOptions options) {
    Stop();
    io_ = std::make_unique<boost::asio::io_context>(1);
    auto server = StoreServer::Listen(*io_, "127.0.0.1", 0, std::move(options));
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(*server);
    port_ = server_->port();
    guard_.emplace(io_->get_executor());
    thread_ = std::thread([this] { io_->run(); });
  }
  void Stop() {
    if (!thread_.joinable()) return;
    OnLoop([this] { server_.reset(); });
    guard_.reset();
    io_->stop();
    thread_.join();
  }
  void TearDown() override { Stop(); }

  StoreCounters Counters() {
    return OnLoop([this] { return server_->counters(); });
  }
  StoreClient Connect() {
    auto client = StoreClient::Connect("127.0.0.1", port_, kGenerous);
    EXPECT_TRUE(client.ok()) << client.status().message();
    return std::move(*client);
  }
  // Waits until the server has `open` connections.
  void AwaitOpen(uint64_t open) {
    for (auto deadline = MonotonicClock::now() + kGenerous; Counters().open != open;) {
      ASSERT_LT(MonotonicClock::now(), deadline) << "open: " << Counters().open;
      std::this_thread::yield();
    }
  }

  std::unique_ptr<boost::asio::io_context> io_;
  std::unique_ptr<StoreServer> server_;
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> guard_;
  std::thread thread_;
  uint16_t port_ = 0;
};

const std::string kHello = Hex("00 CEF7853C");

TEST_F(ServerTest, EveryOperationOfTheClient) {
  StoreClient client = Connect();
  EXPECT_TRUE(client.Set("/a", "one").ok());
  EXPECT_EQ(*client.Get("/a"), "one");
  EXPECT_EQ(*client.Get("/missing"), "");
  EXPECT_EQ(*client.Add("/n", 5), 5);
  EXPECT_EQ(*client.Add("/n", -2), 3);
  EXPECT_EQ(*client.CompareSet("/a", "one", "two"), "two");
  EXPECT_EQ(*client.CompareSet("/a", "one", "three"), "two");
  EXPECT_TRUE(*client.Check({"/a", "/n"}));
  EXPECT_FALSE(*client.Check({"/a", "/missing"}));
  EXPECT_TRUE(client.Wait({"/a", "/n"}, kGenerous).ok());
  EXPECT_TRUE(client.Append("/a", "!").ok());
  EXPECT_THAT(*client.MultiGet({"/a", "/n"}), ElementsAre("two!", "3"));
  EXPECT_TRUE(client.MultiSet({{"/x", "1"}, {"/y", "2"}}).ok());
  EXPECT_EQ(*client.NumKeys(), 4);
  EXPECT_THAT(*client.ListKeys(), UnorderedElementsAre("/a", "/n", "/x", "/y"));
  EXPECT_TRUE(*client.Delete("/x"));
  EXPECT_FALSE(*client.Delete("/x"));
  EXPECT_TRUE(client.QueuePush("/q", "v").ok());
  EXPECT_EQ(*client.QueueLength("/q"), 1);
  EXPECT_EQ(*client.QueuePop("/q"), "v");
  EXPECT_EQ(*client.QueuePop("/q"), std::nullopt);
  EXPECT_TRUE(client.Barrier("/b", 1, kGenerous).ok());
  EXPECT_TRUE(client.Ping().ok());
}

TEST_F(ServerTest, AWaitThatIsCancelledLeavesTheConnectionGood) {
  StoreClient client = Connect();
  Status status = client.Wait({"/never", "/not either"}, 1ms);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(std::string(Message(status)), testing::HasSubstr("/never, /not either"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(client.Barrier("/b", 2, 1ms)));
  EXPECT_TRUE(client.Set("/never", "").ok());
  EXPECT_EQ(*client.NumKeys(), 2);
}

TEST_F(ServerTest, LargeValuesGoThroughWhole) {
  StoreClient client = Connect();
  std::string value(kMaxValue, 0);
  for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * 2654435761u >> 13);
  ASSERT_TRUE(client.Set("/large", value).ok());
  EXPECT_EQ(*client.Get("/large"), value);
  EXPECT_THAT(*client.MultiGet({"/large", "/large"}), ElementsAre(value, value));
}

TEST_F(ServerTest, OneByteAtATimeInEachGeneration) {
  const std::string requests[] = {
      kHello + Hex("0D 2A000000 01 0200000000000000 2F61 0100000000000000 62 03 0200000000000000 2F61"),
      Hex("00 0200000000000000 2F61 0100000000000000 62 02 0200000000000000 2F61"),
  };
  const std::string answers[] = {Hex("2A000000 0100000000000000 62"), Hex("0100000000000000 62")};
  for (int i = 0; i < 2; ++i) {
    Raw raw(port_);
    for (char byte : requests[i]) raw.Send({&byte, 1});
    EXPECT_EQ(raw.Receive(answers[i].size()), answers[i]);
  }
}

TEST_F(ServerTest, ViolationsCloseOnlyTheirOwnConnection) {
  StoreClient good = Connect();
  const std::string bad[] = {
      "garbage",
      kHello + Hex("13"),
      kHello + Hex("03 FFFFFFFFFFFFFFFF"),
      kHello + Hex("01 0100000000000000 6B FFFFFFFFFFFFFF7F"),
      kHello + Hex("06 FFFFFFFFFFFFFFFF"),
      kHello + Hex("01 0100000000000000 6B 0100000000000000 78 04 0100000000000000 6B 0100000000000000"),
      Hex("00 CEF7853D 00000000"),
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",
      Hex("16 0301 0200"),
  };
  for (const std::string& bytes : bad) {
    Raw raw(port_, bytes);
    EXPECT_TRUE(raw.Closed()) << bytes;
    EXPECT_TRUE(good.Ping().ok());
  }
  EXPECT_EQ(Counters().open, 1u);
}

TEST_F(ServerTest, HalfARequestAndNothingMoreDelaysNobody) {
  std::vector<Raw> slow;
  for (int i = 0; i < 50; ++i) {
    slow.emplace_back(port_, kHello + Hex("01 0100000000000000 6B 0000800000000000 78"));
    slow.emplace_back(port_, kHello + Hex("06 0000020000000000 05"));
    slow.emplace_back(port_, Hex("00 CEF7"));
    slow.emplace_back(port_);
  }
  StoreClient good = Connect();
  AwaitOpen(201);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(*good.Add("/n", 1), i + 1);
  slow.clear();
  AwaitOpen(1);
}

TEST_F(ServerTest, AClientThatDoesNotReadIsNotReadFrom) {
  StoreClient good = Connect();
  ASSERT_TRUE(good.Set("k", std::string(1 << 20, 'x')).ok());
  ASSERT_EQ(*good.NumKeys(), 1);  // SET has no answer: this answer shows that it is done
  Raw lazy(port_, kHello, 4096);
  // 10,000 requests would be 10 GB of answers.
  std::string one = Hex("03 0100000000000000 6B"), many;
  for (int i = 0; i < 10'000; ++i) many += one;
  size_t sent = lazy.SendSome(many);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(*good.Add("/n", 1), i + 1);
  EXPECT_LT(Counters().operations, 300u);  // a few of `lazy`, about 100 of `good`
  // Now it reads: the answers come whole and in order.
  for (int i = 0; i < 20; ++i) {
    std::string answer = lazy.Receive(8 + (1 << 20));
    ASSERT_EQ(answer.size(), 8u + (1 << 20));
    ASSERT_EQ(answer.substr(0, 9), Hex("0000100000000000") + "x");
  }
  EXPECT_GT(sent, 20 * one.size());
  lazy.Close();
  AwaitOpen(1);
}

TEST_F(ServerTest, RequestsSentAheadAreAnsweredInOrder) {
  Raw raw(port_, kHello);
  std::string requests, answers;
  for (int i = 1; i <= 20'000; ++i) {
    PutOp(&requests, Op::kAdd);
    PutString(&requests, "n");
    PutNumber<int64_t>(&requests, 1);
    PutNumber<int64_t>(&answers, i);
  }
  std::thread sender([&] { raw.Send(requests); });
  EXPECT_EQ(raw.Receive(answers.size()), answers);
  sender.join();
}

TEST_F(ServerTest, WaitersAreWokenAndThoseWhoLeftAreNot) {
  std::vector<Raw> waiters;
  for (int i = 0; i < 1000; ++i) waiters.emplace_back(port_, kHello + Hex("06 0100000000000000 0100000000000000 6B"));
  AwaitOpen(1000);
  for (int i = 0; i < 500; ++i) waiters[2 * i].Close();
  AwaitOpen(500);
  StoreClient good = Connect();
  ASSERT_TRUE(good.Set("k", "").ok());
  for (int i = 0; i < 500; ++i) EXPECT_EQ(waiters[2 * i + 1].Receive(1), std::string(1, '\0'));
}

TEST_F(ServerTest, TheAnswerToAWaitComesBeforeThatToItsCancellation) {
  // The protocol: 0, then 1, if the answer crossed with the cancellation; else only 1.
  StoreClient good = Connect();
  for (int i = 0; i < 200; ++i) {
    std::string key = "k" + std::to_string(100 + i);
    std::string wait = kHello;
    PutKeys(&wait, Op::kWait, std::vector<std::string>{key});
    Raw raw(port_, wait);
    std::thread setter([&] { EXPECT_TRUE(good.Set(key, "").ok()); });
    raw.Send(Hex("0C"));
    std::string answer = raw.Receive(1);
    setter.join();
    if (answer == std::string(1, '\0')) answer = raw.Receive(1);
    ASSERT_EQ(answer, std::string(1, '\1'));
    raw.Send(Hex("0D 01020304"));
    ASSERT_EQ(raw.Receive(4), Hex("01020304"));
  }
}

TEST_F(ServerTest, BarrierOfManyConnections) {
  std::string request = kHello;
  PutOp(&request, Op::kBarrier);
  PutString(&request, "b");
  PutNumber<int64_t>(&request, 3000);
  std::vector<Raw> ranks;
  for (int i = 0; i < 3000; ++i) ranks.emplace_back(port_, request);
  for (Raw& rank : ranks) ASSERT_EQ(rank.Receive(1), std::string(1, '\0'));
}

TEST_F(ServerTest, ANewKeySpaceIsEmptyAndClosesEveryone) {
  StoreClient old = Connect();
  ASSERT_TRUE(old.Set("k", "old").ok());
  Raw waiter(port_, kHello + Hex("06 0100000000000000 0100000000000000 77"));
  Raw half(port_, kHello + Hex("01 01"));
  AwaitOpen(3);
  OnLoop([this] { server_->NewKeySpace(); });
  EXPECT_TRUE(waiter.Closed());
  EXPECT_TRUE(half.Closed());
  EXPECT_FALSE(old.Get("k").ok());
  EXPECT_FALSE(old.Get("k").ok());
  EXPECT_EQ(Counters().open, 0u);
  StoreClient fresh = Connect();
  EXPECT_EQ(*fresh.NumKeys(), 0);
}

TEST_F(ServerTest, TheOldGenerationsSecondConnection) {
  Raw first(port_, Hex("03 0500000000000000 696E69742F 0100000000000000"));
  Raw second(port_);
  EXPECT_EQ(first.Receive(8), Hex("0100000000000000"));
  first.Send(Hex("08 0500000000000000 696E69742F"));
  EXPECT_EQ(first.Receive(8), Hex("0100000000000000"));
  second.Send(Hex("07 0100000000000000 6B"));
  EXPECT_EQ(second.Receive(1), Hex("03"));
  first.Send(Hex("00 0100000000000000 6B 0200000000000000 6F6E"));  // SET k on
  EXPECT_EQ(second.Receive(28), Hex("01 0100000000000000 6B 0000000000000000 0200000000000000 6F6E"));
  first.Send(Hex("08 0100000000000000 6B"));
  EXPECT_EQ(first.Receive(8), Hex("0100000000000000"));
  EXPECT_EQ(second.Receive(28), Hex("02 0100000000000000 6B 0200000000000000 6F6E 0000000000000000"));
}

TEST_F(ServerTest, AWatcherThatDoesNotReadIsClosedAndDelaysNobody) {
  StoreClient good = Connect();
  Raw reader(port_, Hex("07 0100000000000000 6B")), lazy(port_, Hex("07 0100000000000000 6B"), 4096);
  EXPECT_EQ(reader.Receive(1), Hex("03"));
  EXPECT_EQ(lazy.Receive(1), Hex("03"));
  const std::string value(1 << 20, 'x');
  size_t before = 0;
  for (int i = 0; i < 100 && Counters().open == 3; ++i) {
    ASSERT_TRUE(good.Set("k", value).ok());
    ASSERT_EQ(reader.Receive(1 + 9 + 16 + before + value.size()).size(), 1 + 9 + 16 + before + value.size());
    before = value.size();
  }
  AwaitOpen(2);
  EXPECT_TRUE(good.Ping().ok());
}

TEST_F(ServerTest, ForeignBytesGoToWhoeverTakesThem) {
  std::promise<std::pair<int, std::string>> taken;
  StoreOptions options;
  options.foreign = [&](boost::asio::ip::tcp::socket socket, std::string first_bytes) {
    taken.set_value({socket.release(), std::move(first_bytes)});
  };
  Start(std::move(options));
  StoreClient good = Connect();
  Raw raw(port_, "PRI * HTTP/2.0\r\n");
  auto [fd, first_bytes] = taken.get_future().get();
  EXPECT_EQ(first_bytes, "PRI * HTTP/2.0\r\n");
  EXPECT_EQ(::send(fd, "hello", 5, 0), 5);
  EXPECT_EQ(raw.Receive(5), "hello");
  char control[16] = {};  // the congestion control, as on the store's own connections
  socklen_t length = sizeof(control);
  EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, &length), 0);
  EXPECT_STREQ(control, "reno");
  EXPECT_TRUE(good.Ping().ok());
  ::close(fd);
  EXPECT_EQ(Counters().foreign, 1u);
  EXPECT_EQ(Counters().open, 1u);
}

TEST_F(ServerTest, AtTheLimitOfDescriptorsAcceptingPausesAndGoesOn) {
  std::atomic<int> warnings = 0;
  log::SetOutlet([&](const std::string& line) { warnings += line.find("(ulimit -n)") != std::string::npos ? 1 : 0; });
  StoreClient good = Connect();
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  std::vector<Raw> sockets;
  for (int i = 0; i < 20; ++i) sockets.emplace_back(0);  // unconnected: descriptors to free later
  // A connection needs two descriptors of this process. From here on there is only one.
  int next = ::dup(0);
  ::close(next);
  rlimit tight{static_cast<rlim_t>(next) + 1, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &tight);
  Raw waiting(port_, kHello + Hex("0D 01000000"));
  EXPECT_TRUE(waiting.connected());  // by the kernel; the server cannot accept it yet
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (Counters().pauses < 3 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_GE(Counters().pauses, 3u);
  EXPECT_EQ(warnings, 1) << "one for all pauses in a row";
  EXPECT_TRUE(good.Ping().ok());
  sockets.clear();
  EXPECT_EQ(waiting.Receive(4), Hex("01000000"));
  ::setrlimit(RLIMIT_NOFILE, &before);
  log::SetOutlet({});
}

TEST_F(ServerTest, ACrowdLeavesTheDescriptorsThatAreKept) {
  StoreOptions options;
  options.keep_descriptors = [] { return 4; };
  Start(std::move(options));
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  int next = ::dup(0);
  ::close(next);
  rlimit tight{static_cast<rlim_t>(next) + 40, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &tight);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::vector<Raw> crowd;  // each takes two descriptors: the client's and the server's
  while (Counters().pauses == 0 && crowd.size() < 20) {
    crowd.emplace_back(port_, kHello);
    // One after the other: a socket opened here while the server counts would use a descriptor that the server keeps.
    while (Counters().pauses == 0 && Counters().accepted < crowd.size() &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
  }
  std::vector<int> own;
  for (int i = 0; i < 3; ++i) own.push_back(::dup(0));
  for (int fd : own) {
    EXPECT_GE(fd, 0);
    ::close(fd);
  }
  EXPECT_GT(Counters().pauses, 0u);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(ServerTest, ListeningSaysWhatIsWrong) {
  auto listen = [this](std::string_view host, uint16_t port) {
    return OnLoop([this, host, port] { return StoreServer::Listen(*io_, host, port); });
  };
  EXPECT_EQ(listen("127.0.0.1", port_).status(), ListenStatus(EADDRINUSE, "127.0.0.1", port_));
  EXPECT_TRUE(absl::IsInvalidArgument(listen("some.host", 0).status()));
  auto any = listen("", 0);
  ASSERT_TRUE(any.ok()) << any.status().message();
  EXPECT_TRUE(StoreClient::Connect("127.0.0.1", (*any)->port(), kGenerous).ok());
  OnLoop([&any] { any->reset(); });
}

TEST_F(ServerTest, DoesNotFallBackToIpv4WhereIpv6IsTaken) {
  boost::asio::io_context loop;
  const auto taken = TakeIpv6Port(loop);
  if (!taken) GTEST_SKIP() << "no IPv6 on this machine";
  EXPECT_TRUE(absl::IsAlreadyExists(StoreServer::Listen(loop, "", taken->local_endpoint().port(), {}).status()));
}

TEST_F(ServerTest, ClosingRefusesAndTheClientSaysSo) {
  StoreClient client = Connect();
  OnLoop([this] { server_->Close(); });
  EXPECT_TRUE(absl::IsUnavailable(client.Ping()));
  EXPECT_FALSE(StoreClient::Connect("127.0.0.1", port_, kGenerous).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(StoreClient::Connect("a name", port_, kGenerous).status()));
}

}  // namespace
}  // namespace muster::store
