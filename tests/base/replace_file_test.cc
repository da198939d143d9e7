// SPDX-License-Identifier: Apache-2.0
#include "base/replace_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/descriptors.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ReplaceFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/replace-file-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Text(const std::string& name) const {
    std::ifstream file(Path(name));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string folder_;
};

TEST_F(ReplaceFileTest, LeavesTheNewBytesAndNothingElse) {
  ASSERT_TRUE(ReplaceFile(Path("a"), "one").ok());
  EXPECT_EQ(Text("a"), "one");
  ASSERT_TRUE(ReplaceFile(Path("a"), "", {.mode = 0600, .sync = true}).ok());
  EXPECT_EQ(Text("a"), "");
  struct stat facts {};
  ASSERT_EQ(stat(Path("a").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  EXPECT_THAT(Names(), ElementsAre("a"));
}

TEST_F(ReplaceFileTest, WorksBelowAnOpenFolderPieceByPiece) {
  const Descriptor folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::ofstream(Path("a.part")) << "what an earlier run has left, longer than the new bytes";
  const auto write = [&](const WritePiece& piece) {
    EXPECT_TRUE(piece("one ").ok());
    EXPECT_EQ(Text("a"), "");  // a partly written file is not visible
    return piece("two");
  };
  const Status status = ReplaceFile(folder.get(), "a", write, {.sync = true, .temporary = "a.part"});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Text("a"), "one two");
  EXPECT_THAT(Names(), ElementsAre("a"));
}

TEST_F(ReplaceFileTest, AnErrorLeavesTheOldFileAndNoTemporaryOne) {
  ASSERT_TRUE(ReplaceFile(Path("a"), "old").ok());
  const Status refused = ReplaceFile(AT_FDCWD, Path("a"), [](const WritePiece& piece) {
    EXPECT_TRUE(piece("new").ok());
    return absl::DataLossError("of a reason");
  });
  EXPECT_EQ(Message(refused), "of a reason");
  EXPECT_EQ(Text("a"), "old");
  EXPECT_THAT(Names(), ElementsAre("a"));

  // rename(2) fails: a folder is in the way.
  std::filesystem::create_directories(Path("b/c"));
  EXPECT_THAT(Message(ReplaceFile(Path("b"), "new")), HasSubstr("Is a directory"));
  EXPECT_THAT(Names(), ElementsAre("a", "b"));

  const Status no_folder = ReplaceFile(Path("none/a"), "new");
  EXPECT_TRUE(absl::IsNotFound(no_folder)) << no_folder;
  EXPECT_THAT(Message(no_folder), HasSubstr(Path("none/a")));
}

TEST_F(ReplaceFileTest, FollowsNoSymbolicLink) {
  ASSERT_TRUE(ReplaceFile(Path("elsewhere"), "its").ok());
  ASSERT_EQ(symlink("elsewhere", Path("a").c_str()), 0);
  ASSERT_TRUE(ReplaceFile(Path("a"), "ours").ok());
  EXPECT_EQ(Text("elsewhere"), "its");
  EXPECT_EQ(Text("a"), "ours");

  ASSERT_EQ(symlink("elsewhere", Path("a.part").c_str()), 0);
  EXPECT_FALSE(ReplaceFile(Path("a"), "new", {.temporary = Path("a.part")}).ok());
  EXPECT_EQ(Text("elsewhere"), "its");
  EXPECT_EQ(Text("a"), "ours");
}

TEST_F(ReplaceFileTest, TellsOfAFullDisk) {
  const Descriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.ok());
  const Status status = WriteAll(full.get(), "bytes", "attempt.json");
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(Message(status), "cannot write attempt.json: No space left on device");
}

TEST(RandomName, IsAnotherEachTime) {
  EXPECT_EQ(RandomName().size(), 16U);
  EXPECT_NE(RandomName(), RandomName());
}

}  // namespace
}  // namespace muster
