// SPDX-License-Identifier: Apache-2.0
#include "initializers/transfer/local_copy.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/asio/executor_work_guard.hpp>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "initializers/stores/local_folder.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;

// A file of a claim as it was listed, and another object in its place when it is copied.
class LocalCopyTest : public testing::Test {
 protected:
  LocalCopyTest() {
    std::string pattern = testing::TempDir() + "muster-local-XXXXXX";
    folder_ = fs::canonical(mkdtemp(pattern.data()));
    fs::create_directories(folder_ + "/claim/sub");
    std::ofstream(folder_ + "/secret") << "secret";
    std::ofstream(folder_ + "/claim/sub/file") << "inside";
  }
  ~LocalCopyTest() override { fs::remove_all(folder_); }

  // `facts_of`: the file whose version the listing has.
  Entry Listed(const std::string& path, const std::string& facts_of) const {
    struct stat facts {};
    EXPECT_EQ(stat((folder_ + "/" + facts_of).c_str(), &facts), 0);
    Entry entry;
    entry.path = "file";
    entry.key = fmt::format("{}/{}", folder_, path);
    entry.size = static_cast<uint64_t>(facts.st_size);
    entry.version = LocalVersion(facts);
    return entry;
  }
  Status Copy(Entry entry) {
    auto staging = Staging::Open(folder_ + "/target");
    EXPECT_TRUE(staging.ok()) << staging.status();
    asio::io_context loop;
    const auto work = asio::make_work_guard(loop);
    DiskPool pool(loop, 1, 2);
    Status ended = absl::UnknownError("not yet");
    MoveEvents events;
    events.file = [this](const MovedFile& file) { moved_.push_back(file.entry.path); };
    events.say = [](const std::string&) {};
    events.end = [&](Status status) {
      ended = std::move(status);
      loop.stop();
    };
    auto mover = MakeLocalCopy(loop, **staging, pool, {"file:///claim", true, false}, std::move(events));
    std::vector<Entry> entries;
    entries.push_back(std::move(entry));
    mover->Add(std::move(entries));
    mover->EndOfList();
    loop.run_for(std::chrono::seconds(60));
    return ended;
  }
  void Refuses(const Entry& entry) {
    const Status status = Copy(entry);
    EXPECT_TRUE(absl::IsAborted(status)) << status;
    EXPECT_NE(Message(status).find("has become a link, or no file"), std::string_view::npos) << status;
    EXPECT_TRUE(moved_.empty());
  }

  std::string folder_;
  std::vector<std::string> moved_;
};

TEST_F(LocalCopyTest, WhatWasListedIsCopied) {
  EXPECT_TRUE(Copy(Listed("claim/sub/file", "claim/sub/file")).ok());
  EXPECT_EQ(moved_, std::vector<std::string>{"file"});
}

TEST_F(LocalCopyTest, ALinkInItsPlaceIsNotFollowed) {
  fs::remove(folder_ + "/claim/sub/file");
  fs::create_symlink(folder_ + "/secret", folder_ + "/claim/sub/file");
  Refuses(Listed("claim/sub/file", "secret"));
}

TEST_F(LocalCopyTest, ALinkInPlaceOfItsFolderIsNotFollowed) {
  fs::create_directory(folder_ + "/elsewhere");
  fs::rename(folder_ + "/secret", folder_ + "/elsewhere/file");
  fs::remove_all(folder_ + "/claim/sub");
  fs::create_directory_symlink(folder_ + "/elsewhere", folder_ + "/claim/sub");
  Refuses(Listed("claim/sub/file", "elsewhere/file"));
}

TEST_F(LocalCopyTest, APipeInItsPlaceIsNotWaitedFor) {
  const Entry entry = Listed("claim/sub/file", "claim/sub/file");
  fs::remove(folder_ + "/claim/sub/file");
  ASSERT_EQ(mkfifo(entry.key.c_str(), 0600), 0);
  Refuses(entry);
}

}  // namespace
}  // namespace muster::initializers
