// SPDX-License-Identifier: Apache-2.0
// Each fuzz target, with the files of its corpus: whole, cut off, and with a bit flipped. A target aborts if it finds a
// fault. A fuzzer finds more (`make fuzz`); this shows that the targets compile and hold for what is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#define MUSTER_FUZZ_TARGET(name) extern "C" int name(const uint8_t* data, size_t size);
#include "fuzz_targets.inc"
#undef MUSTER_FUZZ_TARGET

namespace {

constexpr size_t kPlaces = 32;  // of a file, at which it is cut off and has a flipped bit

struct Target {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
};
constexpr Target kTargets[] = {
#define MUSTER_FUZZ_TARGET(name) {#name, name},
#include "fuzz_targets.inc"
#undef MUSTER_FUZZ_TARGET
};

class FuzzSeeds : public testing::TestWithParam<Target> {
 protected:
  // The memory ends where the input does, so that the sanitizers see who reads on.
  static void Run(std::string_view input) {
    const std::vector<uint8_t> bytes(input.begin(), input.end());
    GetParam().run(bytes.data(), bytes.size());
  }
};

TEST_P(FuzzSeeds, HoldForTheCorpus) {
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(std::string("tests/fuzz/corpus/") + GetParam().name)) {
    SCOPED_TRACE(file.path());
    std::ifstream stream(file.path(), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    Run(bytes);
    const size_t step = std::max<size_t>(1, bytes.size() / kPlaces);
    for (size_t at = 0; at < bytes.size(); at += step) {
      Run(std::string_view(bytes).substr(0, at));
      const auto flipped = static_cast<char>(1 << at % 8);
      bytes[at] = static_cast<char>(bytes[at] ^ flipped);
      Run(bytes);
      bytes[at] = static_cast<char>(bytes[at] ^ flipped);
    }
    ++files;
  }
  EXPECT_GT(files, 0);
}

INSTANTIATE_TEST_SUITE_P(All, FuzzSeeds, testing::ValuesIn(kTargets), [](const auto& info) { return info.param.name; });

}  // namespace
