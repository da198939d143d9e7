// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/staging.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "initializers/disk/disk_pool.h"

namespace muster::initializers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

StagedRange At(uint64_t offset, uint64_t length, uint32_t crc = 7) { return {{offset, length}, crc}; }

using Ranges = std::vector<StagedRange>;

Status GoOn() { return absl::OkStatus(); }

class StagingTest : public testing::Test {
 protected:
  StagingTest() {
    std::string pattern = testing::TempDir() + "muster-staging-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    target_ = folder_ + "/a/target";
  }
  ~StagingTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Staging> Open() {
    auto staging = Staging::Open(target_);
    EXPECT_TRUE(staging.ok()) << staging.status();
    return staging.ok() ? *std::move(staging) : nullptr;
  }
  std::string Content(const std::string& path) const {
    std::ifstream file(target_ + "/" + path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string folder_;
  std::string target_;
};

TEST_F(StagingTest, AFileThatIsPublished) {
  auto staging = Open();
  ASSERT_TRUE(staging->WriteWhole("one", "hello", {}, true).ok());
  EXPECT_FALSE(std::filesystem::exists(target_ + "/d/e/hello.txt"));
  ASSERT_TRUE(staging->Publish({{"one", "d/e/hello.txt"}, {"", "empty/"}}, GoOn).ok());
  EXPECT_EQ(Content("d/e/hello.txt"), "hello");
  EXPECT_TRUE(std::filesystem::is_directory(target_ + "/empty"));
  staging->Clear();
  EXPECT_FALSE(std::filesystem::exists(target_ + "/.muster/staging"));
}

TEST_F(StagingTest, PublicationEndsWhereItIsTold) {
  auto staging = Open();
  for (const char* name : {"one", "two"}) ASSERT_TRUE(staging->WriteWhole(name, "x", {}, false).ok());
  const std::vector<Staging::Place> places = {{"one", "one"}, {"two", "two"}};
  int calls = 0;
  const auto overtaken = [&] { return ++calls == 1 ? absl::OkStatus() : absl::UnavailableError("overtaken"); };
  EXPECT_TRUE(absl::IsUnavailable(staging->Publish(places, overtaken)));
  EXPECT_TRUE(std::filesystem::exists(target_ + "/one"));
  EXPECT_FALSE(std::filesystem::exists(target_ + "/two"));
  EXPECT_TRUE(absl::IsUnavailable(staging->CheckPlaces(places, overtaken)));
}

TEST_F(StagingTest, WhatAnEarlierStartLeft) {
  {
    auto staging = Open();
    ASSERT_TRUE(staging->WriteWhole("whole", "x", {"crc32c:01020304", true}, false).ok());
    auto file = staging->OpenFile("half", 2 * kBlockBytes, false);
    ASSERT_TRUE(file.ok()) << file.status();
    std::string bytes(kBlockBytes, 'b');
    ASSERT_TRUE((*file)->Write(kBlockBytes, bytes).ok());
    ASSERT_TRUE((*file)->Note(At(kBlockBytes, kBlockBytes, 5)).ok());
  }
  std::ofstream(target_ + "/.muster/staging/half.ranges", std::ios::app) << "123 4";  // killed in the middle of a line
  auto staging = Open();
  EXPECT_TRUE(staging->IsWhole("whole"));
  ASSERT_NE(staging->HashOf("whole"), nullptr);
  EXPECT_EQ(*staging->HashOf("whole"), (StagedHash{"crc32c:01020304", true}));
  EXPECT_EQ(staging->HashOf("half"), nullptr);
  EXPECT_GE(staging->Held("half"), kBlockBytes);
  EXPECT_EQ(staging->Held("other"), 0U);
  EXPECT_FALSE(staging->IsWhole("half"));
  auto file = staging->OpenFile("half", 2 * kBlockBytes, false);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->noted(), (Ranges{At(kBlockBytes, kBlockBytes, 5)}));
  ASSERT_TRUE((*file)->Note(At(0, kBlockBytes, 6)).ok());  // the cut line did not swallow the new one
  EXPECT_EQ(ReadRangeLines(Content(".muster/staging/half.ranges"), 2 * kBlockBytes),
            (Ranges{At(0, kBlockBytes, 6), At(kBlockBytes, kBlockBytes, 5)}));
  std::string read(kBlockBytes, '\0');
  EXPECT_EQ((*file)->Read(kBlockBytes, read.data(), read.size()).value_or(0), kBlockBytes);
  EXPECT_EQ(read, std::string(kBlockBytes, 'b'));
  ASSERT_TRUE((*file)->Finish({}, true).ok());
  EXPECT_EQ(std::filesystem::file_size(target_ + "/.muster/staging/half"), 2 * kBlockBytes);
}

TEST_F(StagingTest, WhatNobodyWantsAnyMoreGivesItsRoom) {
  {
    auto staging = Open();
    for (const char* name : {"wanted", "whole"}) {
      ASSERT_TRUE(staging->WriteWhole(name, std::string(9000, 'x'), {"crc32c:01020304", true}, false).ok());
    }
    auto file = staging->OpenFile("half", kBlockBytes, false);
    ASSERT_TRUE(file.ok()) << file.status();
    std::string bytes(kBlockBytes, 'b');
    ASSERT_TRUE((*file)->Write(0, bytes).ok());
  }
  auto staging = Open();
  EXPECT_TRUE(staging->IsWhole("wanted"));
  auto begun = staging->OpenFile("half", kBlockBytes, false);  // opening a file claims it
  EXPECT_EQ(staging->leftovers().files, 1U);
  const DiskRoom dropped = staging->DropLeftovers();
  EXPECT_GE(dropped.bytes, 9000U);
  EXPECT_EQ(dropped.files, 1U);
  EXPECT_EQ(staging->leftovers().bytes, 0U);
  EXPECT_TRUE(std::filesystem::exists(target_ + "/.muster/staging/wanted"));
  EXPECT_TRUE(std::filesystem::exists(target_ + "/.muster/staging/half.part"));
  EXPECT_FALSE(std::filesystem::exists(target_ + "/.muster/staging/whole"));
  EXPECT_FALSE(staging->IsWhole("whole"));
  (*begun)->Discard();
  EXPECT_FALSE(std::filesystem::exists(target_ + "/.muster/staging/half.part"));
  EXPECT_FALSE(std::filesystem::exists(target_ + "/.muster/staging/half.ranges"));
}

TEST_F(StagingTest, AFileThatIsThereByAnotherName) {
  auto staging = Open();
  EXPECT_TRUE(absl::IsNotFound(staging->AdoptWhole("one", target_ + "/before")));
  EXPECT_FALSE(staging->IsWhole("one"));
  std::ofstream(target_ + "/before") << "x";
  ASSERT_TRUE(staging->AdoptWhole("one", target_ + "/before").ok());
  EXPECT_TRUE(staging->IsWhole("one"));
  ASSERT_TRUE(staging->Publish({{"one", "after"}}, GoOn).ok());
  EXPECT_TRUE(std::filesystem::equivalent(target_ + "/before", target_ + "/after"));
}

TEST(StagingInMemory, AFileHasItsLengthAndTakesNoPagesBeforehand) {
  struct statfs kind {};
  if (statfs("/dev/shm", &kind) != 0 || kind.f_type != TMPFS_MAGIC) GTEST_SKIP() << "/dev/shm is not a tmpfs";
  std::string target = "/dev/shm/muster-staging-XXXXXX";
  ASSERT_NE(mkdtemp(target.data()), nullptr);
  {
    auto staging = Staging::Open(target);
    ASSERT_TRUE(staging.ok()) << staging.status();
    auto file = (*staging)->OpenFile("one", 4 * kBlockBytes, true);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_FALSE((*file)->direct());
    struct stat facts {};
    ASSERT_EQ(stat((target + "/.muster/staging/one.part").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_size, static_cast<off_t>(4 * kBlockBytes));
    EXPECT_EQ(facts.st_blocks, 0);
  }
  std::filesystem::remove_all(target);
}

TEST_F(StagingTest, PastThePageCacheAnyLengthWillDo) {
  auto staging = Open();
  const uint64_t size = kBlockBytes + 5;
  auto file = staging->OpenFile("odd", size, true);
  ASSERT_TRUE(file.ok()) << file.status();
  std::unique_ptr<char, void (*)(void*)> bytes(static_cast<char*>(std::aligned_alloc(kBlockAlignment, kBlockBytes)),
                                               &std::free);
  std::fill(bytes.get(), bytes.get() + kBlockBytes, 'x');
  ASSERT_TRUE((*file)->Write(kBlockBytes, {bytes.get(), 5}).ok());
  std::fill(bytes.get(), bytes.get() + kBlockBytes, 'x');
  ASSERT_TRUE((*file)->Write(0, {bytes.get(), kBlockBytes}).ok());
  ASSERT_TRUE((*file)->Finish({}, true).ok());
  EXPECT_EQ(Content(".muster/staging/odd"), std::string(size, 'x'));
}

TEST_F(StagingTest, LinksAreNotFollowed) {
  auto staging = Open();
  ASSERT_TRUE(staging->WriteWhole("one", "x", {}, false).ok());
  std::filesystem::create_directory(folder_ + "/outside");
  std::filesystem::create_directory_symlink(folder_ + "/outside", target_ + "/link");
  EXPECT_TRUE(absl::IsFailedPrecondition(staging->CheckPath("link/file")));
  EXPECT_TRUE(absl::IsFailedPrecondition(staging->CheckPath("link/")));
  EXPECT_TRUE(staging->CheckPath("link").ok()) << "a file may take a link's place";
  Status status = staging->Publish({{"one", "link/file"}}, GoOn);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("link is a link or a file"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/outside"));
}

TEST_F(StagingTest, PipesAreNotWaitedFor) {
  auto staging = Open();
  for (const char* name : {"a.part", "b.ranges", "c"}) {
    ASSERT_EQ(mkfifo(fmt::format("{}/.muster/staging/{}", target_, name).c_str(), 0600), 0);
  }
  for (const char* name : {"a", "b"}) {
    Status status = staging->OpenFile(name, 1, false).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("has to be a regular file, which Muster writes, but is none: remove it"));
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(staging->WriteWhole("a", "x", {}, false)));
  EXPECT_TRUE(absl::IsFailedPrecondition(staging->OpenWhole("c").status()));
}

TEST_F(StagingTest, AFolderInTheWay) {
  auto staging = Open();
  ASSERT_TRUE(staging->WriteWhole("one", "x", {}, false).ok());
  std::filesystem::create_directories(target_ + "/file/below");
  EXPECT_TRUE(absl::IsFailedPrecondition(staging->CheckPath("file")));
  EXPECT_TRUE(staging->CheckPath("file/").ok());
  EXPECT_TRUE(staging->CheckPath("file/other").ok());
  EXPECT_TRUE(staging->CheckPath("not/there").ok());
  Status status = staging->Publish({{"one", "file"}}, GoOn);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is a folder, where a file has to be"));
}

TEST_F(StagingTest, TheTargetIsAFile) {
  std::ofstream(folder_ + "/a") << "x";
  EXPECT_FALSE(Staging::Open(folder_ + "/a").ok());
  EXPECT_FALSE(Staging::Open(folder_ + "/a/b").ok());
}

TEST(StagedNames, TellVersionsApart) {
  Entry entry;
  entry.path = "a";
  entry.version = "b";
  const std::string name = Staging::NameOf("s3://x", entry);
  EXPECT_EQ(name.size(), 32u);
  Entry other = entry;
  other.version = "c";
  EXPECT_NE(Staging::NameOf("s3://x", other), name);
  other = entry;
  other.size = 1;
  EXPECT_NE(Staging::NameOf("s3://x", other), name);
  other = entry;
  other.path = "ab";  // the concatenated texts are equal
  other.version = "";
  EXPECT_NE(Staging::NameOf("s3://x", other), name);
}

}  // namespace
}  // namespace muster::initializers
