// SPDX-License-Identifier: Apache-2.0
// Runs simulated jobs, one per seed. Prints a failing seed with its trace. MUSTER_SIM_SEED=n replays one;
// MUSTER_SIM_OFFSET=n takes other seeds. MUSTER_SIM_COUNT=1 lists all failing seeds, and passes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/text.h"
#include "tests/sim/world.h"

namespace muster::rendezvous::sim {
namespace {

// docs/rendezvous.md tells of known limits. No job of these seeds meets them.
constexpr uint64_t kFirstSeed = 96'000;
constexpr uint64_t kShards = 8;
constexpr uint64_t kSeedsPerShard = 6000;

std::string StoryOf(uint64_t seed) {
  Result again = World(seed, true).Run();
  std::string text = fmt::format("MUSTER_SIM_SEED={}: {}\n", seed, again.violation);
  size_t from = again.trace.size() > 400 ? again.trace.size() - 400 : 0;
  for (size_t i = from; i < again.trace.size(); ++i) text += again.trace[i] + "\n";
  return text;
}

class Simulation : public testing::TestWithParam<uint64_t> {};

TEST_P(Simulation, HoldsItsInvariants) {
  if (const char* chosen = std::getenv("MUSTER_SIM_SEED")) {
    uint64_t seed = std::strtoull(chosen, nullptr, 10);
    if (seed / kSeedsPerShard % kShards != GetParam()) GTEST_SKIP() << "seed " << seed << " is another shard's";
    std::string story = StoryOf(seed);
    puts(story.c_str());
    ASSERT_EQ(World(seed, false).Run().violation, "");
    return;
  }
  std::map<int, int> codes;
  int rounds = 0;
  int exempt = 0;
  const char* offset = std::getenv("MUSTER_SIM_OFFSET");
  uint64_t first = offset == nullptr ? kFirstSeed : std::strtoull(offset, nullptr, 10);
  for (uint64_t i = 0; i < kSeedsPerShard; ++i) {
    uint64_t seed = first + GetParam() * kSeedsPerShard + i;
    Result result = World(seed, false).Run();
    if (std::getenv("MUSTER_SIM_COUNT") != nullptr) {
      if (!result.violation.empty())
        printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), result.violation.c_str());
    } else {
      ASSERT_EQ(result.violation, "") << StoryOf(seed);
    }
    ++codes[result.exit_code];
    rounds += result.rounds;
    exempt += result.exempt ? 1 : 0;
  }
  EXPECT_GT(rounds, static_cast<int>(kSeedsPerShard)) << "worlds in which little happens hold every invariant";
  EXPECT_LT(exempt, static_cast<int>(kSeedsPerShard / 10)) << "their rounds are compared with no others";
  std::string text;
  for (const auto& [code, count] : codes) text += fmt::format(" {}x{}", code, count);
  printf("%llu seeds, %d rounds, %d with a coordinator that lost its memory; first verdicts:%s\n",
         static_cast<unsigned long long>(kSeedsPerShard), rounds, exempt, text.c_str());
}

INSTANTIATE_TEST_SUITE_P(Seeds, Simulation, testing::Range<uint64_t>(0, kShards));

}  // namespace
}  // namespace muster::rendezvous::sim
