// SPDX-License-Identifier: Apache-2.0
// Writing the file /dev/termination-log: in place, or a clear error.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/termination_message.h"

namespace muster {
namespace {

// The termination message in a file; nullopt if there is no valid one.
std::optional<TerminationMessage> Held(const std::string& path) {
  auto message = ParseTerminationMessage(ReadTerminationText(path));
  if (!message.ok()) return std::nullopt;
  return *std::move(message);
}

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kLine[] = R"({"version":1,"exit_code":3,"class":"fatal"})";

class TerminationFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/muster-termination-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    chmod(folder_.c_str(), 0755);
    path_ = folder_ + "/termination-log";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Fill(std::string_view text) { std::ofstream(path_) << text; }
  static std::string Content(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static struct stat Facts(const std::string& path) {
    struct stat facts {};
    stat(path.c_str(), &facts);
    return facts;
  }

  // Runs `body` in a child process, where it may drop privileges, mount or lower limits. Returns the result of `body`.
  static std::string InChild(const std::function<std::string()>& body) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
    pid_t child = fork();
    if (child == 0) {
      std::string text = body();
      _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    close(ends[1]);
    std::string text(4096, '\0');
    ssize_t n = read(ends[0], text.data(), text.size());
    close(ends[0]);
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    return text;
  }

  static std::string Said(const Status& status) { return status.ToString(); }

  std::string folder_;
  std::string path_;
};

TEST_F(TerminationFile, IsWrittenInPlace) {
  Fill(std::string(5000, 'x'));
  ino_t inode = Facts(path_).st_ino;
  EXPECT_EQ(WriteTerminationMessage(path_, kLine), absl::OkStatus());
  EXPECT_EQ(Content(path_), kLine);
  EXPECT_EQ(Facts(path_).st_ino, inode);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "no temporary file stays";
}

TEST_F(TerminationFile, MissingIsNotFoundAndStaysMissing) {
  EXPECT_TRUE(absl::IsNotFound(WriteTerminationMessage(path_, kLine)));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(TerminationFile, OddPlacesAreNamed) {
  std::filesystem::create_directory(path_);
  Status status = WriteTerminationMessage(path_, kLine);
  EXPECT_THAT(Said(status), AllOf(HasSubstr(path_ + ": Is a directory"), HasSubstr("exit code still holds")));
  EXPECT_FALSE(absl::IsNotFound(status));

  status = WriteTerminationMessage("/dev/full", kLine);
  EXPECT_THAT(Said(status), AllOf(HasSubstr("/dev/full: No space left"), HasSubstr("exit code still holds")));
  EXPECT_EQ(WriteTerminationMessage("/dev/null", kLine), absl::OkStatus());
}

TEST_F(TerminationFile, APipeDoesNotBlock) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  Status status = WriteTerminationMessage(path_, kLine);  // no reader
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(absl::IsNotFound(status));
  EXPECT_THAT(Said(status), AllOf(HasSubstr(path_), HasSubstr("exit code still holds")));
  EXPECT_EQ(Held(path_), std::nullopt);

  int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  EXPECT_THAT(Said(WriteTerminationMessage(path_, kLine)), HasSubstr(path_ + ": not a regular file"));
  char byte = 0;
  EXPECT_EQ(read(reader, &byte, 1), 0) << "nothing was written";
  close(reader);
}

TEST_F(TerminationFile, ReadOnlyForThisUser) {
  Fill("old");
  chmod(path_.c_str(), 0444);
  std::string said = InChild([&] {
    if (geteuid() == 0 && setuid(65534) != 0) return std::string("cannot change user");
    return Said(WriteTerminationMessage(path_, kLine));
  });
  EXPECT_THAT(said, AllOf(HasSubstr(path_ + ": Permission denied"), HasSubstr("exit code still holds")));
  EXPECT_EQ(Content(path_), "old");
}

TEST_F(TerminationFile, BindMountAsUnderKubernetes) {
  std::string behind = folder_ + "/behind";
  std::ofstream(behind) << "";
  Fill("hidden");
  std::string said = InChild([&]() -> std::string {
    if (unshare(CLONE_NEWNS) != 0) return "skip";
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "skip";
    if (mount(behind.c_str(), path_.c_str(), nullptr, MS_BIND, nullptr) != 0) return "skip";
    if (Status status = WriteTerminationMessage(path_, kLine); !status.ok()) return Said(status);
    if (mount(nullptr, path_.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) != 0) return "no remount";
    return Said(WriteTerminationMessage(path_, "other"));
  });
  if (said == "skip") GTEST_SKIP() << "needs root, for a bind mount";
  EXPECT_THAT(said, AllOf(HasSubstr(path_ + ": Read-only file system"), HasSubstr("exit code still holds")));
  EXPECT_EQ(Content(behind), kLine);
  EXPECT_EQ(Content(path_), "hidden");
}

TEST_F(TerminationFile, HalfALineIsTakenBack) {
  Fill("old");
  std::string said = InChild([&] {
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit{10, 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    return Said(WriteTerminationMessage(path_, kLine));  // ten bytes, then EFBIG
  });
  EXPECT_THAT(said, HasSubstr(path_ + ": File too large"));
  EXPECT_EQ(Content(path_), "");
}

TEST_F(TerminationFile, ReadsOnlyOurs) {
  EXPECT_EQ(Held(path_), std::nullopt);
  EXPECT_EQ(Held(folder_), std::nullopt);
  EXPECT_EQ(Held("/dev/zero"), std::nullopt);
  for (std::string text : {"", "Error: out of disk\n", R"({"message":{"message":"x","extraInfo":{}}})"}) {
    Fill(text);
    EXPECT_EQ(Held(path_), std::nullopt) << text;
  }
  Fill(std::string(1 << 20, ' '));
  EXPECT_EQ(Held(path_), std::nullopt);

  TerminationMessage message{.exit_code = 200, .exit_class = ExitClass::kRetryable, .reason = "late"};
  ASSERT_EQ(WriteTerminationMessage(path_, EncodeTerminationMessage(message)), absl::OkStatus());
  EXPECT_EQ(Held(path_), message);
}

}  // namespace
}  // namespace muster
