// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/machine_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/probe/check_report.h"
#include "agent/probe/peer_round_trip.h"
#include "base/text.h"

namespace muster::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr int64_t kMiB = int64_t{1} << 20;

TimePoint In(std::chrono::milliseconds time) { return MonotonicClock::now() + time; }

TEST(CopyingCpus, SpreadsOverTheCachesWithinItsLimit) {
  using Caches = std::vector<std::pair<int, std::string>>;
  const Caches one = {{0, "0-3"}, {1, "0-3"}, {2, "0-3"}, {3, "0-3"}};
  const Caches two = {{0, "0-1"}, {1, "0-1"}, {2, "2-3"}, {3, "2-3"}};
  struct Row {
    Caches caches;
    int64_t cache, buffers;
    int at_most;
    std::vector<int> chosen;
  };
  const Row rows[] = {
      {one, 32 * kMiB, 256 * kMiB, 16, {0, 1, 2, 3}},
      {one, 32 * kMiB, 256 * kMiB, 2, {0, 1}},
      {one, 512 * kMiB, 256 * kMiB, 16, {0, 1, 2, 3}},  // too large for the buffers, but at least one cache is used
      {two, 32 * kMiB, 256 * kMiB, 16, {0, 2, 1, 3}},
      {two, 32 * kMiB, 256 * kMiB, 2, {0, 2}},
      {two, 100 * kMiB, 256 * kMiB, 16, {0, 1}},  // two caches would be too large for the buffers
      {two, 0, 256 * kMiB, 0, {0}},
      {{}, 32 * kMiB, 256 * kMiB, 16, {}},
  };
  for (const Row& row : rows) EXPECT_EQ(CopyingCpus(row.caches, row.cache, row.buffers, row.at_most), row.chosen);
}

TEST(MachineCheck, WithoutTimeSaysSo) {
  MachineFigure memory = MeasureMemory(In(std::chrono::milliseconds(-1)));
  EXPECT_FALSE(memory.value);
  EXPECT_FALSE(memory.why.empty());
  for (const MachineFigure& figure : MeasureLoopback(In(std::chrono::milliseconds(-1)))) {
    EXPECT_FALSE(figure.value) << figure.name;
    EXPECT_FALSE(figure.why.empty()) << figure.name;
  }
  auto peers = MeasurePeers({{"no-such-host.invalid", 1}}, In(std::chrono::milliseconds(-1)));
  ASSERT_EQ(peers.size(), 1u);
  EXPECT_EQ(peers[0].where, "no-such-host.invalid:1");
  EXPECT_FALSE(peers[0].why.empty());
}

TEST(MachineCheck, GivesFigures) {
  MachineFigure memory = MeasureMemory(In(std::chrono::seconds(3)));
  EXPECT_GT(memory.value.value_or(0), 0) << memory.why;
  auto loopback = MeasureLoopback(In(std::chrono::seconds(3)));
  ASSERT_EQ(loopback.size(), 2u);
  EXPECT_EQ(loopback[0].name, "loopback");
  EXPECT_GT(loopback[0].value.value_or(0), 0) << loopback[0].why;
  EXPECT_EQ(loopback[1].name, "loopback round trip");
  EXPECT_GT(loopback[1].value.value_or(0), 0) << loopback[1].why;
}

TEST(MachineCheck, ADiskThatIsNoneSaysWhy) {
  EXPECT_THAT(MeasureDisk("/no/such/folder", In(std::chrono::milliseconds(500))).why, HasSubstr("No such file"));
  EXPECT_THAT(MeasureDisk("README.md", In(std::chrono::milliseconds(500))).why, HasSubstr("Not a directory"));
}

TEST(ReadMeasured, TakesFiguresAndNothingElse) {
  EXPECT_THAT(ReadMeasured(R"({"measured": {"memory": 12.5, "disk": 0}, "parts": []})"),
              UnorderedElementsAre(Pair("memory", 12.5), Pair("disk", 0)));
  for (const char* text : {"", "all is well", "{", "[]", "null", "7", "{\"measured\": 3}", "{\"measured\": [1]}",
                           "{\"measured\": {\"a\": \"b\", \"c\": null, \"d\": -1, \"e\": {}, \"\": 1}}", "\xff\xfe",
                           "{\"measured\": {\"a\": 1e999}}"}) {
    EXPECT_THAT(ReadMeasured(text), IsEmpty()) << text;
  }
  std::string many = "{\"measured\": {\"0\": 1";
  for (int i = 1; i < 100; ++i) many += fmt::format(", \"{}\": 1", i);
  EXPECT_EQ(ReadMeasured(many + "}}").size(), 16u);
  EXPECT_THAT(ReadMeasured("{\"measured\": {\"" + std::string(65, 'x') + "\": 1}}"), IsEmpty());
}

TEST(DescribeMeasured, KnowsUnits) {
  EXPECT_EQ(DescribeMeasured({}), "");
  EXPECT_EQ(DescribeMeasured({{"disk", 512.3}, {"memory", 12.44}, {"round trip", 0.1234}, {"x", 7}}),
            ": disk 512 MB/s, memory 12.4 GB/s, round trip 0.12 ms, x 7.0");
}

}  // namespace
}  // namespace muster::agent
