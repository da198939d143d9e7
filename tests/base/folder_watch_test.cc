// SPDX-License-Identifier: Apache-2.0
#include "base/folder_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "base/temporary_folder.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// Lets no descriptor be opened while it exists.
class NoDescriptor {
 public:
  NoDescriptor() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(STDIN_FILENO);
    close(next);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(next);
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~NoDescriptor() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptor(const NoDescriptor&) = delete;
  NoDescriptor& operator=(const NoDescriptor&) = delete;

 private:
  rlimit before_{};
};

// The parameter: whether there is an instance of inotify.
class FolderWatchTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto made = MakeTemporaryFolder("folder_watch_", {testing::TempDir()});
    ASSERT_TRUE(made.ok()) << made.status();
    folder_ = made->path;
    const boost::asio::posix::stream_descriptor any(loop_);  // the loop opens its own descriptors
    std::optional<NoDescriptor> none;
    if (!GetParam()) none.emplace();
    auto watch = FolderWatch::Begin(loop_, File("file"), "--file", [this] {
      ++calls_;
      if (ends_) watch_.reset();
    });
    ASSERT_TRUE(watch.ok()) << watch.status();
    watch_ = *std::move(watch);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string File(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) { std::ofstream(File(name)) << text; }

  // Whether the watch calls again.
  bool IsCalled() {
    const int before = calls_;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (calls_ == before && loop_.run_one_until(deadline) > 0) {
    }
    return calls_ > before;
  }

  boost::asio::io_context loop_;
  std::string folder_;
  std::unique_ptr<FolderWatch> watch_;
  int calls_ = 0;
  bool ends_ = false;
};

TEST_P(FolderWatchTest, CallsOnceSoonThenAfterEachChange) {
  EXPECT_TRUE(IsCalled()) << "soon";
  EXPECT_EQ(loop_.poll(), 0U) << "nothing has changed";
  Write("file", "a");
  EXPECT_TRUE(IsCalled()) << "it appeared";
  Write("file", "b");
  EXPECT_TRUE(IsCalled()) << "it was written";
  Write("other", "c");
  EXPECT_TRUE(IsCalled()) << "one beside it";
  fs::rename(File("other"), File("file"));
  EXPECT_TRUE(IsCalled()) << "another one took its place";
}

// The kubelet updates a volume in this way.
TEST_P(FolderWatchTest, SeesALinkThatIsSwapped) {
  fs::create_directory(File("..1"));
  fs::create_directory_symlink("..1", File("..data"));
  fs::create_symlink("..data/file", File("file"));
  EXPECT_TRUE(IsCalled());
  loop_.poll();
  fs::create_directory(File("..2"));
  fs::create_directory_symlink("..2", File("..new"));
  EXPECT_TRUE(IsCalled());
  loop_.poll();
  fs::rename(File("..new"), File("..data"));
  EXPECT_TRUE(IsCalled());
}

TEST_P(FolderWatchTest, EndsInsideOfItsCall) {
  ends_ = true;
  EXPECT_TRUE(IsCalled());
  Write("file", "a");
  loop_.run();  // nothing is left to wait for
  EXPECT_EQ(calls_, 1);
}

TEST(Inotify, ItsErrorsNameTheLimitToRaise) {
  for (const auto& [error, limit] : std::map<int, std::string>{{EMFILE, "fs.inotify.max_user_instances"},
                                                               {ENOSPC, "fs.inotify.max_user_watches"},
                                                               {ENFILE, "fs.file-max"}}) {
    EXPECT_THAT(std::string(Message(InotifyStatus(error, "--file: cannot watch"))),
                testing::AllOf(testing::StartsWith("--file: cannot watch: "), testing::HasSubstr(limit)));
  }
}

INSTANTIATE_TEST_SUITE_P(Inotify, FolderWatchTest, testing::Bool());

TEST_P(FolderWatchTest, NamesTheFolderThatIsNotThere) {
  const auto watch = FolderWatch::Begin(loop_, File("missing/file"), "--file=x", [] {});
  EXPECT_TRUE(absl::IsNotFound(watch.status())) << watch.status();
  EXPECT_THAT(std::string(watch.status().message()),
              testing::HasSubstr("--file=x: cannot watch the folder " + File("missing")));
}

}  // namespace
}  // namespace muster
