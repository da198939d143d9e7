// Runs the fuzzer's corpus as an ordinary test: each file whole, cut at every place, and with every bit flipped.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/store_fuzz.h"

namespace muster::store {
namespace {

TEST(StoreCorpus, EveryInputCutAndBent) {
  int inputs = 0;
  for (auto& file : std::filesystem::directory_iterator("tests/fuzz/corpus/store_fuzz")) {
    std::ifstream stream(file.path(), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    ++inputs;
    FuzzStore(bytes);
    if (bytes.size() > 512) continue;
    for (size_t i = 0; i < bytes.size(); ++i) {
      FuzzStore(std::string_view(bytes).substr(0, i));
      std::string bent = bytes;
      for (int bit = 0; bit < 8; ++bit) {
        bent[i] = static_cast<char>(bytes[i] ^ 1 << bit);
        FuzzStore(bent);
      }
    }
  }
  EXPECT_GE(inputs, 8);
}

}  // namespace
}  // namespace muster::store
