#include "net/resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <boost/asio/ip/udp.hpp>
#include <fstream>
#include <optional>

#include "base/text.h"
#include "net/connect.h"

namespace muster::net {
namespace {

namespace asio = boost::asio;
using asio::ip::udp;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

// Answers every A question with 10.1.2.3, every AAAA question with no address; or nothing at all.
class FakeDns {
 public:
  explicit FakeDns(asio::io_context& loop, int rcode = 0, bool mute = false)
      : socket_(loop, udp::endpoint(asio::ip::address_v4::loopback(), 0)), rcode_(rcode), mute_(mute) {
    Receive();
  }
  std::string address() { return fmt::format("127.0.0.1:{}", socket_.local_endpoint().port()); }
  int asked = 0;

 private:
  void Receive() {
    socket_.async_receive_from(asio::buffer(question_), from_,
                               [this](const boost::system::error_code& error, size_t size) {
                                 if (error) return;
                                 ++asked;
                                 if (!mute_ && size > 16) Answer(size);
                                 Receive();
                               });
  }
  void Answer(size_t size) {
    // Header and question come back; the name ends with a zero byte, four bytes of type and class follow.
    size_t end = 12;
    while (end < size && question_[end] != 0) end += static_cast<unsigned char>(question_[end]) + 1u;
    bool v4 = question_[end + 2] == 1;
    end += 5;
    std::string answer(question_.data(), end);
    answer[2] = static_cast<char>(0x81);
    answer[3] = static_cast<char>(0x80 | rcode_);
    bool has = v4 && rcode_ == 0;
    answer[6] = 0;
    answer[7] = has ? 1 : 0;
    for (int at = 8; at < 12; ++at) answer[at] = 0;
    if (has) answer += std::string("\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x0a\x01\x02\x03", 16);
    boost::system::error_code ignored;
    socket_.send_to(asio::buffer(answer), from_, 0, ignored);
  }

  udp::socket socket_;
  udp::endpoint from_;
  std::array<char, 1500> question_;
  int rcode_;
  bool mute_;
};

class ResolverTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "hostsXXXXXX";
    int fd = mkstemp(path.data());
    ASSERT_GE(fd, 0);
    close(fd);
    hosts_ = path;
  }
  void TearDown() override { unlink(hosts_.c_str()); }

  Resolver::Options Options(const std::string& servers = "127.0.0.1:1") { return {hosts_, servers}; }

  StatusOr<std::vector<std::string>> Resolve(Resolver& resolver, const std::string& name,
                                             Duration limit = seconds(60)) {
    std::optional<StatusOr<std::vector<std::string>>> result;
    resolver.Resolve(name, limit, [&](StatusOr<std::vector<asio::ip::address>> found) {
      if (!found.ok()) {
        result = found.status();
        return;
      }
      std::vector<std::string> texts;
      for (const auto& address : *found) texts.push_back(address.to_string());
      result = texts;
    });
    EXPECT_FALSE(result) << "called back from within the call";
    while (!result) {
      if (loop_.stopped()) loop_.restart();
      loop_.run_one();
    }
    return *result;
  }

  asio::io_context loop_;
  std::string hosts_;
};

TEST_F(ResolverTest, NumericAddressesAndLocalhostNeedNobody) {
  Resolver resolver(loop_, {"/nonexistent", "127.0.0.1:1"});
  EXPECT_THAT(*Resolve(resolver, "10.1.2.3"), ElementsAre("10.1.2.3"));
  EXPECT_THAT(*Resolve(resolver, "::1"), ElementsAre("::1"));
  EXPECT_THAT(*Resolve(resolver, "[fe80::1]"), ElementsAre("fe80::1"));
  EXPECT_THAT(*Resolve(resolver, "localhost"), ElementsAre("127.0.0.1", "::1"));
  EXPECT_THAT(*Resolve(resolver, "LocalHost."), ElementsAre("127.0.0.1", "::1"));
}

TEST_F(ResolverTest, TheHostsFileComesBeforeDns) {
  std::ofstream(hosts_) << "# a comment\n10.0.0.9 other\n10.0.0.7\tPod-0.svc pod-0 # the first\nfd00::7 pod-0\n"
                           "nonsense pod-0\n10.0.0.7 pod-0\n";
  Resolver resolver(loop_, Options());
  EXPECT_THAT(*Resolve(resolver, "pod-0"), ElementsAre("10.0.0.7", "fd00::7"));
  EXPECT_THAT(*Resolve(resolver, "POD-0.svc"), ElementsAre("10.0.0.7"));
}

TEST_F(ResolverTest, DnsAnswersTheRest) {
  FakeDns dns(loop_);
  Resolver resolver(loop_, Options(dns.address()));
  EXPECT_THAT(*Resolve(resolver, "pod-0.job.example."), ElementsAre("10.1.2.3"));
  EXPECT_THAT(*Resolve(resolver, "pod-1.job.example."), ElementsAre("10.1.2.3"));
}

TEST_F(ResolverTest, AnUnknownNameIsToldFromASilentServer) {
  FakeDns unknown(loop_, 3);
  Resolver resolver(loop_, Options(unknown.address()));
  Status status = Resolve(resolver, "nobody.example.").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("nobody.example."));

  FakeDns mute(loop_, 0, true);
  Resolver waiting(loop_, Options(mute.address()));
  status = Resolve(waiting, "slow.example.", seconds(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_GE(mute.asked, 1);
}

TEST_F(ResolverTest, NonsenseIsNoName) {
  Resolver resolver(loop_, Options());
  for (const char* name : {"", "a b", "a/b", ".."}) {
    EXPECT_FALSE(Resolve(resolver, name, seconds(5)).ok()) << name;
  }
}

TEST_F(ResolverTest, ADestroyedResolverCallsNobody) {
  FakeDns mute(loop_, 0, true);
  bool called = false;
  {
    Resolver resolver(loop_, Options(mute.address()));
    resolver.Resolve("slow.example.", seconds(60), [&](const auto&) { called = true; });
    resolver.Resolve("127.0.0.1", seconds(60), [&](const auto&) { called = true; });
  }
  loop_.poll();
  EXPECT_FALSE(called);
}

TEST(HostPort, ReadsEveryForm) {
  EXPECT_EQ(ParseHostPort("pod-0:29400")->host, "pod-0");
  EXPECT_EQ(ParseHostPort("pod-0:29400")->port, 29400);
  EXPECT_EQ(ParseHostPort("[::1]:80")->host, "::1");
  for (const char* wrong : {"", "pod-0", "pod-0:", ":80", "pod-0:0", "pod-0:65536", "pod-0:x", "::1:80", "pod-0:-1"}) {
    EXPECT_EQ(ParseHostPort(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace muster::net
