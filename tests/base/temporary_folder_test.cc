// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(TemporaryFolders, AreTmpdirAndTheUsualOnes) {
  EXPECT_THAT(TemporaryFolders(std::nullopt), ElementsAre("/tmp", "/var/tmp"));
  EXPECT_THAT(TemporaryFolders(""), ElementsAre("/tmp", "/var/tmp"));
  EXPECT_THAT(TemporaryFolders("/job/1"), ElementsAre("/job/1", "/tmp", "/var/tmp"));
  EXPECT_THAT(TemporaryFolders("/var/tmp"), ElementsAre("/var/tmp", "/tmp"));
  EXPECT_THAT(TemporaryFolders("here"), ElementsAre(std::filesystem::current_path() / "here", "/tmp", "/var/tmp"));
}

TEST(TemporaryFolders, TheFirstThatTakesOneHasIt) {
  auto first = MakeTemporaryFolder("test_", {testing::TempDir()});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->passed_over, "");
  struct stat facts {};
  ASSERT_EQ(stat(first->path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0700u);

  const std::string missing = first->path + "/missing";
  auto second = MakeTemporaryFolder("test_", {missing, first->path});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(second->path, StartsWith(first->path + "/test_"));
  EXPECT_EQ(second->passed_over, missing + ": No such file or directory");

  auto none = MakeTemporaryFolder("test_", {missing, "/dev/null"});
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr(missing + ": No such file or directory; /dev/null: Not a"));
  std::filesystem::remove_all(first->path);
}

}  // namespace
}  // namespace muster
