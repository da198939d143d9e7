// SPDX-License-Identifier: Apache-2.0
// Tests log files on a disk that hangs (a FIFO that the test reads) or is full.
#include "launcher/log_files.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

#include <boost/asio/post.hpp>
#include <mutex>

#include "base/log.h"
#include "tests/launcher/harness.h"

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using testing::HasSubstr;

class LogFilesTest : public Harness {
 protected:
  LogFilesTest() {
    MakeFifo("disk");
    // Open both ends, so that the writer's open does not block, and its close is not an end of file.
    disk_ = open(Path("disk").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    log::SetOutlet([this](const std::string& line) {
      std::lock_guard lock(mutex_);
      said_ += line;
    });
  }
  ~LogFilesTest() override {
    log::SetOutlet({});
    close(disk_);
  }

  std::string Said() {
    std::lock_guard lock(mutex_);
    return said_;
  }
  // Lets the disk take what is there.
  void Take() {
    char buffer[64 << 10];
    for (ssize_t got; (got = read(disk_, buffer, sizeof buffer)) > 0;) taken_.append(buffer, got);
  }
  bool UntilTaken(const std::function<bool()>& done) {
    return Until([&] {
      Take();
      return done();
    });
  }
  static std::string Lines(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += fmt::format("line {}\n", i);
    return text;
  }
  std::shared_ptr<LogFile> OpenDisk(LogFiles& files) {
    auto file = files.Open(Path("disk"), true);
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }

  // Writes until there is no room; returns what was written.
  static std::string Fill(LogFiles& files, LogFile& file) {
    const std::string text = Lines(1000);
    std::string written;
    while (files.HasRoom()) {
      file.Write(text);
      written += text;
    }
    return written;
  }

  int disk_ = -1;
  std::string taken_;

 private:
  std::mutex mutex_;
  std::string said_;
};

TEST_F(LogFilesTest, WhatIsWrittenIsThereWhenItIsTold) {
  const size_t before = OpenDescriptors();
  LogFiles files(loop_);
  bool written = false;
  files.WhenWritten({}, [&] { written = true; });
  EXPECT_TRUE(written) << "there was nothing";
  auto one = files.Open(Path("sub/one"), true);
  auto two = files.Open(Path("sub/two"), true);
  ASSERT_TRUE(one.ok() && two.ok());
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    (*one)->Write(fmt::format("{}\n", i));
    (*two)->Write("x");
    expected += fmt::format("{}\n", i);
  }
  one->reset();
  two->reset();
  written = false;
  files.WhenWritten({}, [&] { written = true; });
  ASSERT_TRUE(Until([&] { return written; }));
  EXPECT_EQ(ReadFile(Path("sub/one")), expected);
  EXPECT_EQ(ReadFile(Path("sub/two")), std::string(1000, 'x'));
  EXPECT_EQ(OpenDescriptors(), before) << "closed too";
  EXPECT_EQ(Said(), "");
}

TEST_F(LogFilesTest, ADiskThatHangsStopsNotTheLoopAndLosesNothing) {
  LogFiles files(loop_);
  auto file = OpenDisk(files);
  const std::string text = Lines(100000);
  file->Write(text);
  EXPECT_TRUE(files.HasRoom());
  bool turned = false;
  boost::asio::post(loop_, [&] { turned = true; });
  ASSERT_TRUE(Until([&] { return turned; }));
  file.reset();
  bool written = false;
  files.WhenWritten({}, [&] { written = true; });
  EXPECT_FALSE(written);
  ASSERT_TRUE(UntilTaken([&] { return written; }));
  Take();
  EXPECT_EQ(taken_, text);
  EXPECT_EQ(Said(), "");
}

TEST_F(LogFilesTest, AFullQueueHoldsBackUntilTheDiskGoesOn) {
  LogFiles files(loop_, {.queue_bytes = 256 << 10, .stall_limit = minutes(10)});
  auto file = OpenDisk(files);
  const std::string expected = Fill(files, *file);
  int resumed = 0;
  files.WhenRoom([&] { ++resumed; });
  files.WhenRoom([&] { ++resumed; });
  for (int i = 0; i < 20; ++i) loop_.poll();
  EXPECT_EQ(resumed, 0);
  ASSERT_TRUE(UntilTaken([&] { return resumed == 2; }));
  EXPECT_TRUE(files.HasRoom());
  ASSERT_TRUE(UntilTaken([&] { return taken_.size() == expected.size(); }));
  EXPECT_EQ(taken_, expected);
  files.WhenRoom([&] { ++resumed; });
  EXPECT_TRUE(Until([&] { return resumed == 3; })) << "at once, where there is room";
}

TEST_F(LogFilesTest, ADiskThatHangsForLongCostsLinesWhichAreCounted) {
  LogFiles files(loop_, {.queue_bytes = 128 << 10, .stall_limit = milliseconds(20)});
  auto file = OpenDisk(files);
  const std::string expected = Fill(files, *file);
  const std::string text = Lines(1000);
  bool resumed = false;
  files.WhenRoom([&] { resumed = true; });
  ASSERT_TRUE(Until([&] { return resumed; }));
  EXPECT_THAT(Said(), HasSubstr("their disk has taken nothing for 0.02 s; lines are dropped until it does"));
  EXPECT_TRUE(files.HasRoom()) << "nobody has to wait any more";
  file->Write(text);
  file->Write(text);
  ASSERT_TRUE(UntilTaken([&] { return taken_.size() == expected.size(); }));
  ASSERT_TRUE(Until([&] { return Said().find("lacks") != std::string::npos; }));
  EXPECT_THAT(Said(), HasSubstr(fmt::format("a log file lacks 2000 lines ({} bytes): they were dropped while it could "
                                            "not be written file={}",
                                            2 * text.size(), Path("disk"))));
  file->Write("again\n");
  ASSERT_TRUE(UntilTaken([&] { return taken_ == expected + "again\n"; }));
}

TEST_F(LogFilesTest, TheEndIsNotWaitedForForEver) {
  for (const LogFiles::Patience patience : {LogFiles::Patience{.stall = milliseconds(20), .limit = minutes(1)},
                                            LogFiles::Patience{.stall = minutes(1), .limit = milliseconds(20)}}) {
    std::string expected;
    taken_.clear();
    {
      LogFiles files(loop_);
      auto file = OpenDisk(files);
      for (int i = 0; i < 4; ++i) {  // pieces of the queue
        file->Write(Lines(20000));
        expected += Lines(20000);
      }
      file.reset();
      bool told = false;
      files.WhenWritten(patience, [&] { told = true; });
      ASSERT_TRUE(Until([&] { return told; }));
      EXPECT_THAT(Said(),
                  HasSubstr(fmt::format("log files are incomplete: their disk hangs or is very slow; it has not "
                                        "written the last {} bytes",
                                        expected.size())));
    }  // the thread goes on by itself
    ASSERT_TRUE(UntilTaken([&] { return taken_.size() == expected.size(); }));
    EXPECT_EQ(taken_, expected);
  }
}

TEST_F(LogFilesTest, AWorkersEndIsToldWhileItsDiskHangs) {
  MakeFifo("never");
  WorkerSpec ends = Probe({"lines", "30000"});
  ends.output.out = {.file = Path("disk"), .console = false, .keep_tail = true};
  WorkerSpec stays = Shell("read line < " + Path("never"), 1);
  ASSERT_TRUE(Start({ends, stays}).ok());
  ASSERT_TRUE(Until([&] { return !exits_.empty(); }));
  EXPECT_EQ(exits_[0].local_rank, 0);
  EXPECT_EQ(exits_[0].exit_code, 0);
  EXPECT_EQ(exits_[0].stdout_tail.back(), "line 29999");
  group_->Stop(SIGTERM, minutes(1));
  ASSERT_TRUE(UntilTaken([&] { return gone_ > 0; }));
  Take();
  EXPECT_EQ(taken_, Lines(30000));
  EXPECT_EQ(Said(), "");
}

TEST_F(LogFilesTest, AGroupThatGoesBeforeItsLogIsWrittenSaysSo) {
  WorkerSpec spec = Probe({"lines", "30000"});
  spec.output.out = {.file = Path("disk"), .console = false};
  ASSERT_TRUE(Start({spec}).ok());
  ASSERT_TRUE(Until([&] { return !group_->running(); }));
  group_.reset();
  EXPECT_EQ(gone_, 0);
  EXPECT_THAT(Said(), HasSubstr("log files are incomplete"));
  ASSERT_TRUE(UntilTaken([&] { return taken_.size() == Lines(30000).size(); })) << "the thread goes on";
}

TEST_F(LogFilesTest, OutputThatIsHeldBackIsNoSilence) {
  MakeFifo("go");
  WorkerSpec spec = Shell("read line < " + Path("go") + "; yes | head -c 20000000");
  spec.output.out = {.file = Path("disk"), .console = false, .observed = true};
  ASSERT_TRUE(Start({spec}).ok());
  std::ofstream(Path("go")) << "1\n";
  // The disk takes nothing, the queue is full and the worker waits. LastOutput() counts that as output now.
  std::optional<TimePoint> asked;
  ASSERT_TRUE(Until([&] {
    const TimePoint now = MonotonicClock::now();
    if (group_->LastOutput() >= now) asked = now;
    return asked.has_value();
  }));
  ASSERT_TRUE(UntilTaken([&] { return gone_ > 0; }));
  Take();
  EXPECT_EQ(taken_.size(), 20000000u);
}

TEST_F(LogFilesTest, AFullLogFileCostsLinesOnly) {
  WorkerSpec spec = Probe({"lines", "1000"});
  spec.output.out = {.file = "/dev/full", .console = true, .prefix = ""};
  ExitRecord record = RunOne(spec);
  EXPECT_EQ(record.exit_code, 0);
  EXPECT_EQ(ConsoleOut(), Lines(1000));
  EXPECT_THAT(Said(),
              HasSubstr(fmt::format("a log file lacks 1000 lines ({} bytes): they were dropped while it could not be "
                                    "written file=/dev/full",
                                    Lines(1000).size())));
}

TEST_F(LogFilesTest, AFullDiskCostsLinesUntilThereIsRoom) {
  // Use a mount namespace of this process: its mounts end with the process.
  if (unshare(CLONE_NEWNS) != 0) GTEST_SKIP() << "needs root, for a small disk";
  ASSERT_EQ(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  std::filesystem::create_directory(Path("full"));
  if (mount("none", Path("full").c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "cannot mount a tmpfs";
  WorkerSpec spec = Shell(
      "i=0; while [ $i -lt 3000 ]; do echo 012345678901234567890123456789; i=$((i+1)); done; echo full >&2; read room "
      "< " +
      Path("room") + "; echo again");
  spec.output.out = {.file = Path("full/log"), .console = false, .keep_tail = true};
  MakeFifo("room");
  ASSERT_TRUE(Start({spec}).ok());
  ASSERT_TRUE(UntilFile(Path("err.0")));
  ASSERT_TRUE(Until([&] { return Said().find("No space left on device") != std::string::npos; }));
  std::filesystem::resize_file(Path("full/log"), 0);
  std::ofstream(Path("room")) << "1\n";
  ASSERT_TRUE(UntilGone());
  EXPECT_EQ(group_->records()[0].exit_code, 0);
  EXPECT_THAT(Said(), HasSubstr("a log file lacks "));
  EXPECT_THAT(ReadFile(Path("full/log")), testing::EndsWith("again\n"));
  umount2(Path("full").c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace muster::launcher
