// SPDX-License-Identifier: Apache-2.0
// Which log folders of earlier runs are removed, on a real disk.
#include "agent/old_logs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/host_fs.h"
#include "base/text.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kDay = 24 * 3600;

TEST(SuperfluousLogs, AreOlderThanAWeekAndNotAmongTheNewestFive) {
  constexpr int64_t now = 100 * kDay;
  auto ended = [](std::vector<int64_t> days) {
    std::vector<LogFolder> folders;
    for (int64_t day : days) folders.push_back({std::to_string(day), day * kDay});
    return folders;
  };
  EXPECT_THAT(SuperfluousLogs(ended({}), now), IsEmpty());
  EXPECT_THAT(SuperfluousLogs(ended({1, 2, 3, 4, 5}), now), IsEmpty()) << "the newest five";
  EXPECT_THAT(SuperfluousLogs(ended({99, 1, 2, 98, 93, 92, 97, 96}), now),
              ElementsAre(LogFolder{"92", 92 * kDay}, LogFolder{"2", 2 * kDay}, LogFolder{"1", 1 * kDay}));
  EXPECT_THAT(SuperfluousLogs(ended({99, 98, 97, 96, 95, 94, 93}), now), IsEmpty()) << "none is old";
  EXPECT_THAT(SuperfluousLogs(ended({300, 301, 302, 303, 304, 305}), now), IsEmpty()) << "of a clock that is ahead";
}

class OldLogs : public testing::Test {
 protected:
  OldLogs() {
    std::string folder = testing::TempDir() + "/old-logs-XXXXXX";
    above_ = mkdtemp(folder.data());
  }
  ~OldLogs() override { fs::remove_all(above_); }

  std::string Folder(const std::string& name, bool marked = true) {
    const std::string folder = above_ + "/" + name;
    fs::create_directories(folder + "/run/attempt_0");
    std::ofstream(folder + "/run/attempt_0/stderr.log") << "text";
    if (marked) LogMark(folder).End(false);
    return folder;
  }
  void Age(const std::string& folder, int64_t days) {
    struct stat facts {};
    ASSERT_EQ(stat(above_.c_str(), &facts), 0);  // the time of this file system
    const timespec then[2] = {{facts.st_mtim.tv_sec - days * kDay, 0}, {facts.st_mtim.tv_sec - days * kDay, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, (folder + "/.alive").c_str(), then, 0), 0);
  }

  std::string above_;
};

TEST_F(OldLogs, GoWithTheNextRun) {
  for (int i = 0; i < 5; ++i) Folder(fmt::format("muster_newer{}", i));
  Age(Folder("muster_old001"), 8);
  const std::string lives = Folder("muster_lives1", false);
  const LogMark living(lives);
  Age(lives, 30);
  const std::string foreign = Folder("muster_foreign", true);  // seven characters
  Age(foreign, 30);
  Folder("muster_nomark", false);
  const std::string target = Folder("elsewhere");
  Age(target, 30);
  fs::create_directory_symlink(target, above_ + "/muster_linked");
  fs::create_directory(above_ + "/muster_mark2l");
  fs::create_symlink(target + "/.alive", above_ + "/muster_mark2l/.alive");
  std::ofstream(above_ + "/muster_afile1") << "text";

  auto names = [this] {
    const auto list = HostFs().List(above_);
    return std::set<std::string>(list.begin(), list.end());
  };
  std::set<std::string> expected = names();
  expected.erase("muster_old001");
  const std::string own = Folder("muster_thenew", false);
  RemoveOldLogs(above_, LogMark(own));
  expected.insert("muster_thenew");
  EXPECT_EQ(names(), expected);
  EXPECT_TRUE(fs::exists(target + "/run/attempt_0/stderr.log"));
}

TEST_F(OldLogs, AnotherUsersStay) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  for (int i = 0; i < 6; ++i) Age(Folder(fmt::format("muster_other{}", i)), 30);
  for (int i = 0; i < 6; ++i) {
    const std::string folder = fmt::format("{}/muster_other{}", above_, i);
    ASSERT_EQ(i % 2 == 0 ? chown(folder.c_str(), 1, 1) : chown((folder + "/.alive").c_str(), 1, 1), 0);
  }
  const std::string own = Folder("muster_thenew", false);
  RemoveOldLogs(above_, LogMark(own));
  EXPECT_EQ(HostFs().List(above_).size(), 7u);
}

TEST_F(OldLogs, AreRemovedAFewAtATime) {
  for (int i = 10; i < 50; ++i) Age(Folder(fmt::format("muster_many{}", i)), 30);
  const std::string own = Folder("muster_thenew", false);
  const LogMark mark(own);
  std::vector<size_t> left;
  for (int run = 0; run < 4; ++run) {
    RemoveOldLogs(above_, mark);
    left.push_back(HostFs().List(above_).size());
  }
  EXPECT_THAT(left, ElementsAre(25u, 9u, 5u, 5u));
}

}  // namespace
}  // namespace muster::agent
