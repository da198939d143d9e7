// SPDX-License-Identifier: Apache-2.0
#include "base/startup_pages.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace muster {
namespace {

// Mapped KiB of this program's code and constants, that is, of mappings of its file that are not writable.
long MappedKib() {
  std::ifstream maps("/proc/self/smaps");
  long total = 0;
  bool counts = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string first, second;
    words >> first >> second;
    if (second.size() == 4 && second[3] == 'p') counts = second[1] == '-' && line.ends_with("base_test");
    if (counts && first == "Rss:") total += std::stol(second);
  }
  return total;
}

TEST(StartupPages, AreLetGoAndComeBack) {
  if (getenv("MUSTER_EMULATED") != nullptr) GTEST_SKIP() << "under emulation: the mapped sizes in smaps are all 0";
  const long before = MappedKib();
  DropStartupPages();
  const long after = MappedKib();  // code that ran after the drop is mapped again
  EXPECT_GT(after, 0);
  EXPECT_LT(after, before);
}

}  // namespace
}  // namespace muster
