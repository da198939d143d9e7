// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/earlier_run.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <deque>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "initializers/target/metadata_files.h"

namespace muster::initializers {
namespace {

namespace fs = std::filesystem;

constexpr char kSource[] = "s3://b/p/";

class EarlierRunTest : public testing::Test {
 protected:
  EarlierRunTest() {
    std::string name = testing::TempDir() + "/earlier-XXXXXX";
    target_ = mkdtemp(name.data());
    fs::create_directories(target_ + "/.muster");
    manifest_.source = kSource;
    manifest_.version = "commit";
  }
  ~EarlierRunTest() override { fs::remove_all(target_); }

  // Makes a file on disk, and its record in the manifest.
  ManifestFile& Lay(const std::string& path, const std::string& content, const std::string& version) {
    fs::create_directories(fs::path(target_ + "/" + path).parent_path());
    std::ofstream(target_ + "/" + path) << content;
    struct stat facts {};
    EXPECT_EQ(lstat((target_ + "/" + path).c_str(), &facts), 0);
    ManifestFile file;
    file.path = path;
    file.size = content.size();
    file.version = version;
    file.verified = true;
    file.hash = "crc32c:00000000";
    file.modified_ns = ModifiedOf(facts);
    files_.push_back(file);
    return files_.back();
  }
  EarlierRun Read(EarlierRun::Wanted wanted = {kSource, "", true, true}) {
    manifest_.files = {};
    for (const ManifestFile& file : files_) manifest_.files.push_back(file);
    std::ofstream(target_ + "/.muster/manifest.json") << WriteManifest(manifest_);
    auto run = ReadIt(wanted);
    EXPECT_TRUE(run.ok()) << run.status();
    return run.ok() ? *std::move(run) : EarlierRun();
  }
  StatusOr<EarlierRun> ReadIt(const EarlierRun::Wanted& wanted) {
    auto say = [this](const std::string& text) { said_ += text; };
    return EarlierRun::Read(target_, wanted, say, [this] { return ++asked_ == lost_at_ ? lost_ : absl::OkStatus(); });
  }
  static Entry EntryOf(const std::string& path, uint64_t size, const std::string& version) {
    Entry entry;
    entry.path = path;
    entry.size = size;
    entry.version = version;
    return entry;
  }

  std::string target_, said_;
  Manifest manifest_;
  std::deque<ManifestFile> files_;  // of manifest_
  int asked_ = 0, lost_at_ = 0;
  const Status lost_ = absl::UnavailableError("another one has it now");
};

TEST_F(EarlierRunTest, WithoutAnEarlierRunNothingIsKept) {
  auto run = ReadIt({kSource, "", true, false});
  ASSERT_TRUE(run.ok());
  EXPECT_FALSE(run->whole());
  EXPECT_TRUE(run->all_kept());
  EXPECT_TRUE(run->Keep(EntryOf("a", 1, "v")).empty());
  EXPECT_EQ(said_, "");
}

TEST_F(EarlierRunTest, WhoLosesTheTargetMeanwhileIsTold) {
  for (const char* path : {"a", "b", "c"}) Lay(path, "1", "v");
  Read();
  EXPECT_EQ(std::exchange(asked_, 0), 3);
  lost_at_ = 2;
  EXPECT_EQ(ReadIt({kSource, "", true, false}).status(), lost_);
  EXPECT_EQ(asked_, 2);
}

TEST_F(EarlierRunTest, OneThatCannotBeReadIsSaid) {
  std::ofstream(target_ + "/.muster/manifest.json") << "{";
  auto run = ReadIt({kSource, "", true, false});
  ASSERT_TRUE(run.ok());
  EXPECT_FALSE(run->whole());
  EXPECT_NE(said_.find("cannot be read"), std::string::npos);
}

TEST_F(EarlierRunTest, OneThatCannotBeOpenedIsSaid) {
  fs::create_symlink("elsewhere", target_ + "/.muster/manifest.json");
  auto run = ReadIt({kSource, "", true, false});
  ASSERT_TRUE(run.ok());
  EXPECT_FALSE(run->whole());
  EXPECT_NE(said_.find("cannot be read"), std::string::npos);
}

TEST_F(EarlierRunTest, OfAnotherSourceOrSelectionDoesNotCount) {
  Lay("a", "1", "v");
  EXPECT_TRUE(Read().whole());
  EXPECT_FALSE(Read({"s3://b/q/", "", true, false}).whole());
  EXPECT_FALSE(Read({kSource, "-*.md\n", true, false}).whole());
}

TEST_F(EarlierRunTest, KeepsWhatIsThereInThatVersion) {
  Lay("a", "1", "v1");
  Lay("d/b", "22", "v2");
  Lay("unpinned", "3", "");
  EarlierRun run = Read();
  EXPECT_TRUE(run.whole());
  EXPECT_EQ(run.version(), "commit");
  EXPECT_EQ(run.files(), 3U);
  EXPECT_EQ(run.bytes(), 4U);
  EXPECT_EQ(run.PathOf("v2"), "d/b");
  EXPECT_EQ(run.PathOf("v3"), std::nullopt);
  EXPECT_TRUE(run.Keep(EntryOf("a", 1, "other")).empty());
  EXPECT_TRUE(run.Keep(EntryOf("a", 2, "v1")).empty());
  EXPECT_TRUE(run.Keep(EntryOf("unpinned", 1, "")).empty()) << "nothing says that it is the same";
  ASSERT_EQ(run.Keep(EntryOf("a", 1, "v1")).size(), 1U);
  EXPECT_TRUE(run.Keep(EntryOf("a", 1, "v1")).empty()) << "once";
  EXPECT_FALSE(run.all_kept());
}

TEST_F(EarlierRunTest, WhatWasTouchedHereIsNotKept) {
  Lay("longer", "1", "v").size = 2;
  Lay("touched", "1", "v").modified_ns -= 1;
  Lay("gone", "1", "v");
  Lay("link", "1", "v");
  fs::remove(target_ + "/gone");
  fs::remove(target_ + "/link");
  fs::create_symlink("touched", target_ + "/link");
  Lay("right", "1", "v");
  EarlierRun run = Read();
  EXPECT_FALSE(run.whole());
  for (const char* path : {"longer", "touched", "gone", "link"}) {
    EXPECT_TRUE(run.Keep(EntryOf(path, 1, "v")).empty()) << path;
  }
  EXPECT_EQ(run.Keep(EntryOf("right", 1, "v")).size(), 1U);
  EXPECT_TRUE(run.all_kept());
}

TEST_F(EarlierRunTest, WithoutAHashWhereNoneIsWanted) {
  Lay("a", "1", "v").hash.clear();
  EXPECT_FALSE(Read().whole());
  EXPECT_TRUE(Read().Keep(EntryOf("a", 1, "v")).empty());
  EXPECT_TRUE(Read({kSource, "", false, false}).whole());
  EXPECT_EQ(said_, "");
}

TEST_F(EarlierRunTest, AFolderIsKeptWhileItIsOne) {
  fs::create_directories(target_ + "/there");
  for (const char* path : {"there/", "gone/"}) files_.push_back({.path = path, .verified = true});
  EarlierRun run = Read();
  EXPECT_FALSE(run.whole());
  EXPECT_EQ(run.Keep(EntryOf("there/", 0, "")).size(), 1U);
  EXPECT_TRUE(run.Keep(EntryOf("gone/", 0, "")).empty());
}

TEST_F(EarlierRunTest, AnArchiveIsKeptWithAllThatCameOutOfIt) {
  for (const char* archive : {"a.tar", "b.tar"}) {
    ManifestFile& file = Lay(archive, "tar", "v");
    file.unpacked = true;
    fs::remove(target_ + "/" + archive);
    for (const char* name : {"1", "2"}) Lay(fmt::format("{}-{}", archive, name), "x", "v").archive = archive;
  }
  EarlierRun all = Read();
  EXPECT_TRUE(all.whole());
  EXPECT_EQ(all.files(), 2U);
  EXPECT_EQ(all.bytes(), 6U);
  EXPECT_EQ(all.Keep(EntryOf("a.tar", 3, "v")).size(), 3U);
  fs::remove(target_ + "/b.tar-2");
  EarlierRun one = Read();
  EXPECT_FALSE(one.whole());
  EXPECT_EQ(one.Keep(EntryOf("a.tar", 3, "v")).size(), 3U);
  EXPECT_TRUE(one.Keep(EntryOf("b.tar", 3, "v")).empty());
}

TEST_F(EarlierRunTest, WhatStaysOfAnotherSource) {
  Lay("a", "1", "v");
  Lay("gone", "1", "v").verified = false;
  Lay("z", "1", "v");
  files_.push_back({.path = "folder/", .verified = true});
  const EarlierRun run = Read({"s3://other/", "", true, false});
  EXPECT_FALSE(run.whole());
  EXPECT_EQ(run.NotAmong({{.path = "b"}, {.path = "z"}}), (std::vector<std::string>{"a", "gone"}));
  fs::remove(target_ + "/gone");
  EXPECT_EQ(run.NotAmong({}), (std::vector<std::string>{"a", "z"}));
  EXPECT_EQ(Read().unverified(), 1u);
}

}  // namespace
}  // namespace muster::initializers
