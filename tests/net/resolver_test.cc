// SPDX-License-Identifier: Apache-2.0
#include "net/resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include "base/text.h"
#include "net/connect.h"
#include "tests/net/fake_dns.h"

namespace muster::net {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

FakeDns::Reply TenOneTwoThree(const FakeDns::Question& question) {
  return question.v4 ? FakeDns::Has({"10.1.2.3"}) : FakeDns::Reply{};
}

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

  Resolver::Options Options(const std::string& servers = "127.0.0.1:1") { return {hosts_, {.servers = servers}}; }

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
  Resolver resolver(loop_, {"/nonexistent", {.servers = "127.0.0.1:1"}});
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
  FakeDns dns(loop_, TenOneTwoThree);
  Resolver resolver(loop_, Options(dns.address()));
  EXPECT_THAT(*Resolve(resolver, "pod-0.job.example."), ElementsAre("10.1.2.3"));
  EXPECT_THAT(*Resolve(resolver, "pod-1.job.example."), ElementsAre("10.1.2.3"));
}

TEST_F(ResolverTest, AnUnknownNameIsToldFromASilentServer) {
  FakeDns unknown(loop_, [](const auto&) { return FakeDns::Error(3); });
  Resolver resolver(loop_, Options(unknown.address()));
  Status status = Resolve(resolver, "nobody.example.").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("nobody.example."));

  FakeDns mute(loop_, [](const auto&) { return FakeDns::Silence(); });
  Resolver waiting(loop_, Options(mute.address()));
  status = Resolve(waiting, "slow.example.", seconds(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_GE(mute.asked.size(), 2u);
}

// The result if A or AAAA fails or gets no answer.
TEST_F(ResolverTest, OneFamilyIsEnough) {
  using Reply = FakeDns::Reply;
  using Question = FakeDns::Question;
  const Reply four = FakeDns::Has({"10.1.2.3"});
  const Reply six = FakeDns::Has({"fd00::7"});
  struct Row {
    const char* what;
    FakeDns::Script script;
    std::vector<std::string> addresses;
    absl::StatusCode code = absl::StatusCode::kOk;
    Duration limit = seconds(60);
  };
  const Row rows[] = {
      {"both", [&](const Question& q) { return q.v4 ? four : six; }, {"10.1.2.3", "fd00::7"}},
      {"A, AAAA silent", [&](const Question& q) { return q.v4 ? four : FakeDns::Silence(); }, {"10.1.2.3"}},
      {"AAAA, A silent", [&](const Question& q) { return q.v4 ? FakeDns::Silence() : six; }, {"fd00::7"}},
      {"A, AAAA fails", [&](const Question& q) { return q.v4 ? four : FakeDns::Error(2); }, {"10.1.2.3"}},
      {"A, AAAA refused", [&](const Question& q) { return q.v4 ? four : FakeDns::Error(5); }, {"10.1.2.3"}},
      {"A, no such name for AAAA", [&](const Question& q) { return q.v4 ? four : FakeDns::Error(3); }, {"10.1.2.3"}},
      {"AAAA, A has no data", [&](const Question& q) { return q.v4 ? Reply{} : six; }, {"fd00::7"}},
      {"no such name for A, AAAA silent",
       [](const Question& q) { return q.v4 ? FakeDns::Error(3) : FakeDns::Silence(); },
       {},
       absl::StatusCode::kNotFound},
      {"A has no data, AAAA silent",
       [](const Question& q) { return q.v4 ? Reply{} : FakeDns::Silence(); },
       {},
       absl::StatusCode::kDeadlineExceeded,
       milliseconds(300)},
      {"A silent, AAAA has no data",
       [](const Question& q) { return q.v4 ? FakeDns::Silence() : Reply{}; },
       {},
       absl::StatusCode::kDeadlineExceeded,
       milliseconds(300)},
      {"neither has data", [](const Question&) { return Reply{}; }, {}, absl::StatusCode::kNotFound},
      {"both fail", [](const Question&) { return FakeDns::Error(2); }, {}, absl::StatusCode::kUnavailable},
      {"both fail, then answer",
       [&](const Question& q) { return q.nth == 1 ? FakeDns::Error(2)
                                       : q.v4     ? four
                                                  : six; },
       {"10.1.2.3", "fd00::7"}},
      {"truncated, whole by TCP",
       [&](const Question& q) { return q.tcp ? (q.v4 ? four : six) : Reply{.truncated = true}; },
       {"10.1.2.3", "fd00::7"}},
  };
  for (const Row& row : rows) {
    FakeDns dns(loop_, row.script);
    Resolver resolver(loop_, Options(dns.address()));
    auto found = Resolve(resolver, "pod-0.example.", row.limit);
    EXPECT_EQ(found.status().code(), row.code) << row.what << ": " << found.status();
    EXPECT_THAT(found.value_or(std::vector<std::string>{}), ElementsAreArray(row.addresses)) << row.what;
  }
}

TEST_F(ResolverTest, ALostQuestionIsAskedAgainWithinTheLimit) {
  FakeDns dns(loop_, [](const auto& q) { return q.nth == 1 ? FakeDns::Silence() : TenOneTwoThree(q); });
  Resolver resolver(loop_, Options(dns.address()));
  EXPECT_THAT(*Resolve(resolver, "pod-0.example.", seconds(3)), ElementsAre("10.1.2.3"));
}

TEST_F(ResolverTest, AChangedHostsFileIsReadAgain) {
  FakeDns dns(loop_, [](const auto&) { return FakeDns::Error(3); });
  Resolver resolver(loop_, Options(dns.address()));
  EXPECT_FALSE(Resolve(resolver, "pod-0").ok());
  std::ofstream(hosts_) << "10.0.0.7 pod-0\n";
  EXPECT_THAT(*Resolve(resolver, "pod-0"), ElementsAre("10.0.0.7"));
  std::ofstream(hosts_) << "10.0.0.8 pod-0\n";
  EXPECT_THAT(*Resolve(resolver, "pod-0"), ElementsAre("10.0.0.8"));
}

TEST_F(ResolverTest, AChangedResolvConfIsReadAgain) {
  FakeDns first(loop_, [](const auto&) { return FakeDns::Error(3); });
  FakeDns second(
      loop_, [](const auto& q) { return q.name == "pod-0.b.example" ? TenOneTwoThree(q) : FakeDns::Error(3); },
      "127.0.0.2", first.port());
  const std::string resolv_conf = hosts_ + ".resolv";
  std::ofstream(resolv_conf) << "nameserver 127.0.0.1\nsearch a.example\n";
  Resolver resolver(loop_, {hosts_, {.resolv_conf = resolv_conf, .port = first.port()}});
  EXPECT_EQ(Resolve(resolver, "pod-0").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(first.asked, testing::Contains("A pod-0.a.example"));
  std::ofstream(resolv_conf) << "nameserver 127.0.0.2\nsearch a.example\n";
  EXPECT_EQ(Resolve(resolver, "pod-0").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(second.asked, testing::Contains("A pod-0.a.example"));
  std::ofstream(resolv_conf) << "nameserver 127.0.0.2\nsearch a.example b.example\n";
  EXPECT_THAT(*Resolve(resolver, "pod-0"), ElementsAre("10.1.2.3"));
  unlink(resolv_conf.c_str());
}

// A and AAAA come from the same domain: later domains are not asked for a missing record type.
TEST_F(ResolverTest, TheFirstDomainThatKnowsTheNameEndsTheSearch) {
  FakeDns dns(loop_, [](const auto& q) {
    if (q.name == "pod-0.a.example") return TenOneTwoThree(q);
    return q.v4 ? FakeDns::Has({"192.0.2.1"}) : FakeDns::Has({"2001:db8::1"});
  });
  const std::string resolv_conf = hosts_ + ".resolv";
  std::ofstream(resolv_conf) << "nameserver 127.0.0.1\nsearch a.example b.example\n";
  Resolver resolver(loop_, {hosts_, {.resolv_conf = resolv_conf, .port = dns.port()}});
  EXPECT_THAT(*Resolve(resolver, "pod-0"), ElementsAre("10.1.2.3"));
  unlink(resolv_conf.c_str());
}

// A domain whose server fails does not end the search, but the name is then "unavailable", not "not found".
TEST_F(ResolverTest, ADomainThatFailsDoesNotEndTheSearch) {
  FakeDns dns(loop_, [](const auto& q) {
    if (q.name == "pod-0.b.example") return TenOneTwoThree(q);
    return FakeDns::Error(q.name.ends_with(".a.example") ? 2 : 3);
  });
  const std::string resolv_conf = hosts_ + ".resolv";
  std::ofstream(resolv_conf) << "nameserver 127.0.0.1\nsearch a.example b.example\n";
  Resolver resolver(loop_, {hosts_, {.resolv_conf = resolv_conf, .port = dns.port()}});
  EXPECT_THAT(*Resolve(resolver, "pod-0"), ElementsAre("10.1.2.3"));
  EXPECT_EQ(Resolve(resolver, "pod-1").status().code(), absl::StatusCode::kUnavailable);
  unlink(resolv_conf.c_str());
}

TEST_F(ResolverTest, NonsenseIsNoName) {
  Resolver resolver(loop_, Options());
  for (const char* name : {"", "a b", "a/b", ".."}) {
    EXPECT_FALSE(Resolve(resolver, name, seconds(5)).ok()) << name;
  }
}

TEST_F(ResolverTest, ADestroyedResolverCallsNobody) {
  FakeDns mute(loop_, [](const auto&) { return FakeDns::Silence(); });
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
