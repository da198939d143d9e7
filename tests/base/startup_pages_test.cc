#include "base/startup_pages.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace muster {
namespace {

// KiB of this program's code and constants that are mapped now: of its file, and not to be written.
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
  const long before = MappedKib();
  DropStartupPages();
  const long after = MappedKib();  // what has run since, which is here again
  EXPECT_GT(after, 0);
  EXPECT_LT(after, before);
}

}  // namespace
}  // namespace muster
