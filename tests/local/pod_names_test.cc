// SPDX-License-Identifier: Apache-2.0
// Host names and addresses of a run's pods.
#include "local/pod/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/text.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::local {

using namespace controller;

namespace {

using ::testing::StartsWith;

Json PodNamed(std::string_view name, std::string_view spec = "{}", std::string_view labels = "{}") {
  return YamlOf(
      fmt::format("{{kind: Pod, metadata: {{name: {}, namespace: team, labels: {}}}, spec: {}}}", name, labels, spec));
}

Json ServiceNamed(std::string_view name, std::string_view selector) {
  return YamlOf(fmt::format("{{kind: Service, metadata: {{name: {}, namespace: team}}, spec: {{selector: {}}}}}", name,
                            selector));
}

TEST(PodNames, AnAddressForEachHostName) {
  PodNames names;
  const std::string first = names.AddressOf(PodNamed("a-x1", "{hostname: a}"));
  EXPECT_EQ(names.AddressOf(PodNamed("a-x2", "{hostname: a}")), first) << "in its place";
  EXPECT_EQ(names.AddressOf(PodNamed("a")), first) << "without a hostname, its name is one";
  EXPECT_NE(names.AddressOf(PodNamed("b")), first);
  EXPECT_EQ(names.AddressOf(PodNamed("a", "{hostname: a}")), first);
}

TEST(PodNames, AddressesAreOfTheLoopbackNetworkAndOfOneHostEach) {
  PodNames names;
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string address = names.AddressOf(PodNamed(fmt::format("p{}", i)));
    const auto parts = Split(address, '.');
    ASSERT_EQ(parts.size(), 4);
    EXPECT_EQ(parts[0], "127");
    EXPECT_GE(ParseInt(parts[1]).value_or(0), 1) << "127.0.x.y is of the machine's own services";
    for (const auto part : parts) EXPECT_LE(ParseInt(part).value_or(256), 255) << address;
    EXPECT_GE(ParseInt(parts[3]).value_or(0), 2);
    EXPECT_LE(ParseInt(parts[3]).value_or(255), 254);
    seen.insert(address);
  }
  EXPECT_EQ(seen.size(), 1000);
}

TEST(PodNames, LinesOfTheFile) {
  const std::string spelled = " s s.team s.team.svc s.team.svc.cluster.local";
  const std::string of_pod = " a.s a.s.team a.s.team.svc a.s.team.svc.cluster.local";
  struct Row {
    const char* what;
    Json pod;
    std::vector<Json> services;
    std::string names;
  };
  const Json pod = PodNamed("p", "{hostname: a, subdomain: s}", "{job: t, index: '0'}");
  for (const Row& row : std::vector<Row>{
           {"no Service", pod, {}, " a"},
           {"its name alone", PodNamed("p"), {}, " p"},
           {"of its subdomain", pod, {ServiceNamed("s", "{job: t}")}, " a" + of_pod + spelled},
           {"that selects others", pod, {ServiceNamed("s", "{job: u}")}, " a"},
           {"that asks for more", pod, {ServiceNamed("s", "{job: t, more: x}")}, " a"},
           {"that selects by a number", pod, {ServiceNamed("s", "{index: 0}")}, " a"},
           {"that selects none", pod, {ServiceNamed("s", "{}")}, " a"},
           {"of no subdomain",
            PodNamed("p", "{hostname: a}", "{job: t}"),
            {ServiceNamed("s", "{job: t}")},
            " a" + spelled},
           {"two",
            pod,
            {ServiceNamed("o", "{index: '0'}"), ServiceNamed("s", "{job: t, index: '0'}")},
            " a o o.team o.team.svc o.team.svc.cluster.local" + of_pod + spelled},
       }) {
    PodNames names;
    std::vector<const Json*> services;
    for (const Json& service : row.services) services.push_back(&service);
    EXPECT_EQ(names.FileOf({&row.pod}, services),
              fmt::format("127.0.0.1 localhost\n::1 localhost\n{}{}\n", names.AddressOf(row.pod), row.names))
        << row.what;
  }
}

TEST(PodNames, EachPodHasItsLine) {
  PodNames names;
  const Json a = PodNamed("a"), b = PodNamed("b");
  EXPECT_EQ(names.FileOf({&a, &b}, {}),
            fmt::format("127.0.0.1 localhost\n::1 localhost\n{} a\n{} b\n", names.AddressOf(a), names.AddressOf(b)));
  EXPECT_THAT(names.FileOf({}, {}), StartsWith("127.0.0.1 localhost\n"));
}

TEST(PodNames, AnAddressThatIsSetCounts) {
  PodNames names;
  names.SetAddress("a", "198.18.0.2");
  EXPECT_EQ(names.AddressOf(PodNamed("a-x1", "{hostname: a}")), "198.18.0.2");
}

TEST(PodNames, NamesOfOnePodEach) {
  PodNames names;
  names.SetAddress("a", "198.18.0.2");
  names.SetAddress("b", "198.18.0.3");
  const Json a = PodNamed("a-x1", "{hostname: a, subdomain: job}"), b = PodNamed("b");
  EXPECT_THAT(names.NamesOf({&a, &b}),
              testing::ElementsAre(
                  testing::Pair("a", "198.18.0.2"), testing::Pair("a.job", "198.18.0.2"),
                  testing::Pair("a.job.team", "198.18.0.2"), testing::Pair("a.job.team.svc", "198.18.0.2"),
                  testing::Pair("a.job.team.svc.cluster.local", "198.18.0.2"), testing::Pair("b", "198.18.0.3")));
}

TEST(PodNames, AddressesInText) {
  const std::map<std::string, std::string> names = {{"a", "1.1"}, {"a.job", "1.2"}, {"1.1", "wrong"}};
  for (const auto& [text, replaced] : std::vector<std::pair<std::string, std::string>>{
           {"a.job", "1.2"},
           {"MASTER=a.job:29500", "MASTER=1.2:29500"},
           {"tcp://a:1/x,a.job.", "tcp://1.1:1/x,1.2."},
           {"a.job slots=2\nb", "1.2 slots=2\nb"},
           {"a.job.other a-b ab a_b A", "a.job.other a-b ab a_b A"},
           {"", ""},
       }) {
    EXPECT_EQ(WithAddresses(text, names), replaced) << text;
  }
}

}  // namespace
}  // namespace muster::local
