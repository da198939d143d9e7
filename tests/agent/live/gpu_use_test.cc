// SPDX-License-Identifier: Apache-2.0
#include "agent/live/gpu_use.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

TEST(GpuUse, ALineOfNvidiaSmiIsRead) {
  const auto gpu = ParseGpuLine("3, GPU-5b1c, 97, 61234");
  ASSERT_TRUE(gpu.has_value());
  EXPECT_EQ(gpu->index, 3);
  EXPECT_EQ(gpu->uuid, "GPU-5b1c");
  EXPECT_EQ(gpu->use.share, 0.97);
  EXPECT_EQ(gpu->use.memory_bytes, int64_t{61234} << 20);
  const auto mig = ParseGpuLine("0, GPU-a, [N/A], [N/A]");
  ASSERT_TRUE(mig.has_value());
  EXPECT_EQ(mig->use, GpuUse{});
  for (const char* other : {"", "No devices were found", "0, a, 1", "-1, a, 1, 1", "x, a, 1, 1", "0, a, 1, 1, 1"}) {
    EXPECT_FALSE(ParseGpuLine(other).has_value()) << other;
  }
  EXPECT_EQ(ParseGpuLine("0, a, 101, 99999999999999")->use, GpuUse{});
}

TEST(GpuUse, EachRankHasItsPart) {
  std::map<int, GpuLine> gpus;
  for (int index = 0; index < 4; ++index) {
    gpus[index] = {index, "GPU-" + std::string(1, static_cast<char>('a' + index)), {0.25 * index, int64_t{1} << index}};
  }
  struct Row {
    std::optional<std::string> visible;
    size_t ranks;
    std::vector<GpuUse> want;
  };
  const GpuUse none;
  for (const Row& row : {
           Row{std::nullopt, 4, {{0.0, 1}, {0.25, 2}, {0.5, 4}, {0.75, 8}}},
           Row{std::nullopt, 2, {{0.125, 3}, {0.625, 12}}},
           Row{std::nullopt, 3, {none, none, none}},
           Row{"3,1", 2, {{0.75, 8}, {0.25, 2}}},
           Row{"GPU-c, GPU-a", 1, {{0.25, 5}}},
           Row{"2,7,1", 1, {{0.5, 4}}},
           Row{"", 2, {none, none}},
           Row{"-1", 1, {none}},
           Row{std::nullopt, 0, {}},
       }) {
    EXPECT_EQ(DealGpus(gpus, row.visible, row.ranks), row.want) << row.visible.value_or("all") << " " << row.ranks;
  }
  EXPECT_EQ(DealGpus({}, std::nullopt, 1), std::vector<GpuUse>{none});
}

}  // namespace
}  // namespace muster::agent
