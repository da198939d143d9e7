// SPDX-License-Identifier: Apache-2.0
#include "net/dns_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAreArray;

TEST(SearchRules, AreThoseOfResolvConf) {
  struct Row {
    const char* text;
    const char* localdomain;
    const char* res_options;
    const char* host_name;
    SearchRules rules;
  };
  const Row rows[] = {
      {"", "", "", "box", {}},
      {"", "", "", "box.corp.example", {{"corp.example"}, 1}},
      {"nameserver 10.0.0.10\nsearch ns.svc.cluster.local svc.cluster.local\noptions ndots:5\n",
       "",
       "",
       "box.corp",
       {{"ns.svc.cluster.local", "svc.cluster.local"}, 5}},
      {"search a.example\nsearch b.example.\n", "", "", "", {{"b.example"}, 1}},
      {"search a.example\r\ndomain b.example c.example\r\n", "", "", "", {{"b.example"}, 1}},
      {"search .\n", "", "", "", {{""}, 1}},
      {"# search a.example\n;domain b\noptions\tedns0 ndots:2 ndots:x\nsearch\n", "", "", "", {{}, 2}},
      {"options ndots:99\n", "", "", "", {{}, 15}},
      {"search a.example\noptions ndots:5\n",
       "c.example d.example",
       "timeout:1 ndots:0",
       "",
       {{"c.example", "d.example"}, 0}},
  };
  for (const Row& row : rows) {
    SearchRules rules = ReadSearchRules(row.text, row.localdomain, row.res_options, row.host_name);
    EXPECT_THAT(rules.domains, ElementsAreArray(row.rules.domains)) << row.text;
    EXPECT_EQ(rules.ndots, row.rules.ndots) << row.text;
  }
}

TEST(CompleteNames, AreInGlibcsOrder) {
  struct Row {
    const char* name;
    SearchRules rules;
    std::vector<std::string> names;
  };
  const Row rows[] = {
      {"pod", {}, {"pod."}},
      {"pod.", {{"a.example"}, 1}, {"pod."}},
      {"pod", {{"a.example", "b.example"}, 1}, {"pod.a.example.", "pod.b.example.", "pod."}},
      {"pod.svc", {{"a.example"}, 1}, {"pod.svc.", "pod.svc.a.example."}},
      {"pod.svc", {{"a.example"}, 5}, {"pod.svc.a.example.", "pod.svc."}},
      {"pod", {{"", "a.example", "a.example"}, 1}, {"pod.", "pod.a.example."}},
  };
  for (const Row& row : rows) EXPECT_THAT(CompleteNames(row.name, row.rules), ElementsAreArray(row.names)) << row.name;
}

TEST(PatienceFor, TheFamilyThatIsSilent) {
  struct Row {
    Heard a, aaaa;
    Duration left, patience;
  };
  const Row rows[] = {
      {Heard::kNothing, Heard::kNothing, seconds(5), seconds(5)},
      {Heard::kAddresses, Heard::kAddresses, seconds(5), seconds(0)},
      {Heard::kNoName, Heard::kFailed, seconds(5), seconds(0)},
      {Heard::kAddresses, Heard::kNothing, seconds(5), milliseconds(500)},
      {Heard::kNothing, Heard::kAddresses, seconds(5), milliseconds(500)},
      {Heard::kAddresses, Heard::kNothing, milliseconds(200), milliseconds(100)},  // half for the connection
      {Heard::kAddresses, Heard::kNothing, seconds(0), seconds(0)},
      {Heard::kNoName, Heard::kNothing, seconds(5), milliseconds(50)},
      {Heard::kNothing, Heard::kNoName, seconds(5), seconds(5)},  // some servers say that of every AAAA: RFC 4074, 4.2
      {Heard::kNoData, Heard::kNothing, seconds(5), seconds(5)},
      {Heard::kFailed, Heard::kNothing, seconds(5), seconds(5)},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(PatienceFor(row.a, row.aaaa, row.left), row.patience)
        << static_cast<int>(row.a) << " " << static_cast<int>(row.aaaa);
  }
}

TEST(FirstTry, FitsTwiceIntoTheLimit) {
  EXPECT_EQ(FirstTry(milliseconds(1)), milliseconds(100));
  EXPECT_EQ(FirstTry(milliseconds(900)), milliseconds(300));
  EXPECT_EQ(FirstTry(seconds(3)), seconds(1));
  EXPECT_EQ(FirstTry(seconds(60)), seconds(2));
  EXPECT_EQ(FirstTry(std::chrono::hours(1000)), seconds(2));
}

}  // namespace
}  // namespace muster::net
