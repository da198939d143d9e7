// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/wait_targets.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;

struct Row {
  std::string text;
  std::optional<WaitKind> kind;
  WaitTarget want;
};

TEST(WaitTargets, AreRead) {
  const Row rows[] = {
      {"master-0", {}, {WaitKind::kDns, "master-0", 0}},
      {"master-0.train.svc.", {}, {WaitKind::kDns, "master-0.train.svc.", 0}},
      {"master_0:29500", {}, {WaitKind::kTcp, "master_0", 29500}},
      {"10.0.0.7:1", {}, {WaitKind::kTcp, "10.0.0.7", 1}},
      {"10.0.0.7", {}, {WaitKind::kDns, "10.0.0.7", 0}},
      {"::1", {}, {WaitKind::kDns, "::1", 0}},
      {"[::1]", {}, {WaitKind::kDns, "::1", 0}},
      {"[2001:db8::1]:65535", {}, {WaitKind::kTcp, "2001:db8::1", 65535}},
      {"host:80", WaitKind::kDns, {WaitKind::kDns, "host", 0}},
      {"host:80", WaitKind::kRendezvous, {WaitKind::kRendezvous, "host", 80}},
      {"host", WaitKind::kRendezvous, {WaitKind::kRendezvous, "host", 29400}},
      {"::1", WaitKind::kRendezvous, {WaitKind::kRendezvous, "::1", 29400}},
  };
  for (const Row& row : rows) {
    auto target = ParseWaitTarget(row.text, row.kind);
    ASSERT_TRUE(target.ok()) << row.text << ": " << target.status();
    EXPECT_EQ(*target, row.want) << row.text << " -> " << target->Name();
  }
}

TEST(WaitTargets, ThatAreNoneAreNamed) {
  for (std::string text :
       {"",      ":80",       "host:",   "host:0",     "host:65536",  "host:-1",        "host:+1",   "host:http",
        "a b",   "a/b",       "a..b",    ".a",         ".",           "[::1",           "[::1]80",   "[::1]:",
        "[]:80", "[host]:80", "1::2::3", "::1:99999:", "h\xc3\xb6st", "http://host:80", "host:80:90"}) {
    auto target = ParseWaitTarget(text, std::nullopt);
    ASSERT_FALSE(target.ok()) << text;
    EXPECT_NE(Message(target.status()).find(fmt::format("'{}'", text)), std::string_view::npos) << target.status();
  }
  EXPECT_FALSE(ParseWaitTarget("host", WaitKind::kTcp).ok());
  EXPECT_FALSE(ParseWaitTarget(std::string(64, 'a'), std::nullopt).ok());
  EXPECT_TRUE(ParseWaitTarget(std::string(63, 'a'), std::nullopt).ok());
  std::string longest;
  for (int i = 0; i < 5; ++i) longest += std::string(50, 'a') + ".";
  EXPECT_FALSE(ParseWaitTarget(longest + "abcd", std::nullopt).ok());
}

TEST(WaitTargets, AddressesCanBeDialled) {
  EXPECT_EQ((WaitTarget{WaitKind::kTcp, "::1", 80}).Address(), "[::1]:80");
  EXPECT_EQ((WaitTarget{WaitKind::kTcp, "host", 80}).Address(), "host:80");
  EXPECT_EQ((WaitTarget{WaitKind::kDns, "::1", 0}).Address(), "::1");
  EXPECT_EQ((WaitTarget{WaitKind::kRendezvous, "host", 80}).Name(), "rendezvous host:80");
}

TEST(WaitTargets, PausesGrowToTheLimit) {
  EXPECT_EQ(WaitPause(1, 1), milliseconds(100));
  EXPECT_EQ(WaitPause(1, 0), milliseconds(50));
  EXPECT_EQ(WaitPause(2, 1), milliseconds(200));
  EXPECT_EQ(WaitPause(5, 1), milliseconds(1600));
  for (int failures : {6, 7, 1000, 2'000'000'000}) {
    EXPECT_EQ(WaitPause(failures, 1), milliseconds(2000));
    EXPECT_EQ(WaitPause(failures, 0), milliseconds(1000));
  }
}

TEST(WaitTargets, TheOrderOfAddressesIsNoNews) {
  EXPECT_EQ(StableReason("b: refused; a: refused"), StableReason("a: refused; b: refused"));
  EXPECT_NE(StableReason("a: refused; b: refused"), StableReason("a: refused; b: no answer"));
  EXPECT_EQ(StableReason("alone"), "alone");
  EXPECT_EQ(StableReason(""), "");
}

TEST(WaitTargets, DurationsForPeople) {
  EXPECT_EQ(ForPeople(milliseconds(200)), "200 ms");
  EXPECT_EQ(ForPeople(milliseconds(1500)), "1.5 s");
  EXPECT_EQ(ForPeople(std::chrono::seconds(300)), "300 s");
}

}  // namespace
}  // namespace muster::agent
