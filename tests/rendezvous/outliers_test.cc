// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/outliers.h"

#include <gtest/gtest.h>

#include "tests/rendezvous/stage.h"

namespace muster::rendezvous {
namespace {

using testing::HasSubstr;

using Figures = std::map<std::string, double>;

std::string Told(const std::vector<Figures>& all) {
  std::vector<Node> nodes(all.size());
  std::vector<const Node*> pointers;
  for (size_t i = 0; i < all.size(); ++i) {
    nodes[i].name = fmt::format("n{}", i);
    nodes[i].measured = all[i];
    pointers.push_back(&nodes[i]);
  }
  return DescribeOutliers(FindOutliers(pointers));
}

std::vector<Figures> Of(const std::string& name, const std::vector<double>& values) {
  std::vector<Figures> all;
  for (double value : values) all.push_back({{name, value}});
  return all;
}

TEST(Outliers, ANodeSlowerThanHalfTheOthersIsNamed) {
  struct Row {
    std::vector<Figures> nodes;
    const char* told;
  };
  const Row rows[] = {
      {{}, ""},
      {Of("memory", {1}), ""},
      {Of("memory", {1, 100}), ""},  // of two nodes, either may be the slow one
      {Of("memory", {12.4, 12.4, 3.1}), "node n2 is slow: memory 3.1 GB/s, the others 12.4 GB/s"},
      {Of("memory", {12.4, 12.4, 6.2}), ""},  // exactly half
      {Of("memory", {12.4, 12.4, 1000}), ""},
      {Of("memory", {10, 20, 1}), "node n2 is slow: memory 1.0 GB/s, the others 10.0 GB/s"},
      {Of("memory", {1, 1, 10, 10, 10}),
       "node n0 is slow: memory 1.0 GB/s, the others 10.0 GB/s; node n1 is slow: memory 1.0 GB/s, the others 10.0 "
       "GB/s"},
      {Of("loopback", {4, 4, 1}), "node n2 is slow: loopback 1.0 GB/s, the others 4.0 GB/s"},
      {Of("disk", {500, 500, 0}), "node n2 is slow: disk 0 MB/s, the others 500 MB/s"},
      {Of("round trip", {0.25, 0.25, 1.0}), ""},  // exactly twice plus 0.5 ms
      {Of("round trip", {0.25, 0.25, 1.5}), "node n2 is slow: round trip 1.5 ms, the others 0.25 ms"},
      {Of("loopback round trip", {0.25, 0.25, 9}), "node n2 is slow: loopback round trip 9.0 ms, the others 0.25 ms"},
      {Of("temperature", {1, 1, 1000}), ""},  // not in the table of measures
      {{{{"memory", 10}}, {{"memory", 10}}, {}, {{"memory", 1}}},
       "node n3 is slow: memory 1.0 GB/s, the others 10.0 GB/s"},
      {{{{"memory", 10}, {"disk", 8}}, {{"memory", 10}, {"disk", 8}}, {{"memory", 1}, {"disk", 1}}},
       "node n2 is slow: memory 1.0 GB/s, the others 10.0 GB/s; disk 1.0 MB/s, the others 8.0 MB/s"},
  };
  for (const Row& row : rows) EXPECT_EQ(Told(row.nodes), row.told);
}

TEST(Outliers, OfManyAFewAreTold) {
  std::vector<double> values(100, 10.0);
  for (size_t i = 0; i < 7; ++i) values[i] = 1;
  EXPECT_THAT(Told(Of("memory", values)), HasSubstr("; 3 more are slow"));
}

TEST(Outliers, AreSaidToEveryNodeOfARoundAndInTheStatus) {
  Stage s(Job(3, 3));
  for (const char* name : {"a", "b", "c"}) {
    Hello hello = s.Greeting(name);
    hello.node.measured["memory"] = *name == 'b' ? 3 : 12;
    s.Join(hello);
  }
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(s.Seat(name).reason, "all 3 nodes are ready; node b is slow: memory 3.0 GB/s, the others 12.0 GB/s");
  }
  StatusReport report = Describe(s.state, s.now);
  EXPECT_EQ(report.reason, s.Seat("a").reason);
  for (const StatusLine& line : report.nodes) {
    EXPECT_EQ(line.remark, line.node == "b" ? "slow: memory 3.0 GB/s, the others 12.0 GB/s" : "");
  }
}

}  // namespace
}  // namespace muster::rendezvous
