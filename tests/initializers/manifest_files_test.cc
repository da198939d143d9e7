// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/manifest_files.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace muster::initializers {
namespace {

ManifestFile Full(const std::string& path) {
  return {path, uint64_t{1} << 63, "crc32c:e3069283", true, "\"etag\"", -5, true, "a.tar", true};
}

TEST(ManifestFiles, AreWhatWasAdded) {
  ManifestFiles files{
      Full("a"), {.path = "b"}, Full(std::string(300, 'c')), {.path = "d", .version = std::string(200'000, 'v')}};
  ASSERT_EQ(files.size(), 4U);
  EXPECT_EQ(files[0], Full("a"));
  EXPECT_EQ(files[1], ManifestFile{.path = "b"});
  EXPECT_EQ(files[2], Full(std::string(300, 'c')));
  EXPECT_EQ(files[3].version.size(), 200'000U);
  size_t at = 0;
  for (const ManifestFile& file : files) EXPECT_EQ(file, files[at++]);
  const ManifestFiles copy = files;
  files.SetModified(1, 7);
  files.SetStaged(1, true);
  files.SetStaged(0, false);
  EXPECT_EQ(files[1], (ManifestFile{.path = "b", .modified_ns = 7, .staged = true}));
  EXPECT_FALSE(files[0].staged);
  EXPECT_TRUE(files[0].verified && files[0].unpacked);
  EXPECT_EQ(copy[1], ManifestFile{.path = "b"});
  EXPECT_FALSE(copy == files);
}

TEST(ManifestFiles, AreSortedAndFound) {
  ManifestFiles files{
      {.path = "b"}, {.path = "a/"}, {.path = "b", .staged = true}, {.path = "a"}, {.path = "\xc3\xa9"}};
  EXPECT_FALSE(files.sorted());
  files.Sort();
  EXPECT_TRUE(files.sorted());
  ASSERT_EQ(files.size(), 4U) << "one of each path";
  EXPECT_EQ(files.PathOf(0), "a");
  EXPECT_EQ(files.PathOf(1), "a/");
  EXPECT_TRUE(files[2].staged);
  EXPECT_EQ(files.Find("\xc3\xa9"), 3U) << "by bytes";
  EXPECT_EQ(files.Find("b"), 2U);
  for (const char* path : {"", "aa", "z", "\xff"}) EXPECT_EQ(files.Find(path), std::nullopt) << path;
}

TEST(ManifestFiles, GoOneByOne) {
  constexpr int kMany = 10'000;  // enough for several pieces
  for (const bool sorted : {false, true}) {
    ManifestFiles files, others;
    for (int i = 0; i < kMany; ++i) files.push_back({.path = fmt::format("{:05}", kMany - i)});
    if (sorted) files.Sort();
    for (int i = 0; i < kMany; ++i) others.push_back(files.PopFront());
    EXPECT_TRUE(files.empty());
    EXPECT_EQ(others.sorted(), sorted);
    EXPECT_EQ(others.size(), size_t{kMany});
    files.push_back({.path = "again"});
    EXPECT_EQ(files.PopFront().path, "again");
  }
}

}  // namespace
}  // namespace muster::initializers
