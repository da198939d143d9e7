// SPDX-License-Identifier: Apache-2.0
// Tests the console with readers that do not read, and with descriptors that cannot be written.
#include <pty.h>
#include <sys/socket.h>
#include <termios.h>

#include <algorithm>
#include <thread>

#include "tests/launcher/harness.h"

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using testing::HasSubstr;

class ConsoleTest : public Harness {
 protected:
  ~ConsoleTest() override {
    for (int end : {reader_, writer_}) {
      if (end != -1) close(end);
    }
  }

  void MakePipe() {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    reader_ = ends[0];
    writer_ = ends[1];
    fcntl(reader_, F_SETFL, O_NONBLOCK);
  }
  void MakeSocket() {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    reader_ = ends[0];
    writer_ = ends[1];
    fcntl(reader_, F_SETFL, O_NONBLOCK);
  }
  // All text that can be read now.
  std::string Take() {
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = read(reader_, buffer, sizeof buffer)) > 0;) text.append(buffer, got);
    return text;
  }
  bool Untouched() const { return (fcntl(writer_, F_GETFL) & O_NONBLOCK) == 0; }

  WorkerSpec Teed(int lines) {
    WorkerSpec spec = Probe({"lines", std::to_string(lines)});
    spec.output.out = {.file = Path("log"), .console = true, .prefix = ""};
    return spec;
  }
  static std::string Lines(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += fmt::format("line {}\n", i);
    return text;
  }

  // A slow reader loses nothing, since the worker waits.
  void SlowReaderGetsAll() {
    UseConsole({.out = writer_, .err = err_, .queue_bytes = 64 << 10, .stall_limit = minutes(10)});
    ASSERT_TRUE(Start({Teed(100000)}).ok());
    ASSERT_TRUE(Until([&] { return !console_->HasRoom(Console::Stream::kOut); }));
    EXPECT_TRUE(exits_.empty());
    std::string got;
    const std::string expected = Lines(100000);
    ASSERT_TRUE(Until([&] {
      got += Take();
      return got.size() >= expected.size();
    }));
    EXPECT_TRUE(got == expected);
    EXPECT_TRUE(UntilGone());
    EXPECT_TRUE(ReadFile(Path("log")) == expected);
    EXPECT_TRUE(Untouched());
  }

  int reader_ = -1;
  int writer_ = -1;
};

TEST_F(ConsoleTest, SlowPipeGetsAll) {
  MakePipe();
  SlowReaderGetsAll();
}

TEST_F(ConsoleTest, SlowSocketGetsAll) {
  MakeSocket();
  SlowReaderGetsAll();
}

TEST_F(ConsoleTest, AWorkerThatIsOnlyObservedWaitsForItsReaderAsLongAsItTakes) {
  MakePipe();
  UseConsole({.out = writer_, .err = err_, .queue_bytes = 64 << 10, .stall_limit = milliseconds(1)});
  WorkerSpec spec = Probe({"lines", "100000"});
  spec.output.out = {.observed = true};
  ASSERT_TRUE(Start({spec}).ok());
  ASSERT_TRUE(Until([&] { return !console_->HasRoom(Console::Stream::kOut); }));
  std::string got;
  const std::string expected = Lines(100000);
  ASSERT_TRUE(Until([&] {
    got += Take();
    return got.size() >= expected.size();
  }));
  EXPECT_TRUE(got == expected) << "nothing was dropped";
  EXPECT_TRUE(UntilGone());
}

TEST_F(ConsoleTest, SlowPipeThatCannotBeReopenedGetsAll) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to lose its rights over the pipe";
  MakePipe();
  ASSERT_EQ(fchown(writer_, 0, 0), 0);
  fchmod(writer_, 0600);
  ASSERT_EQ(seteuid(65534), 0);
  EXPECT_EQ(open(fmt::format("/proc/self/fd/{}", writer_).c_str(), O_WRONLY | O_NONBLOCK), -1);
  UseConsole({.out = writer_, .err = err_});
  ASSERT_EQ(seteuid(0), 0);
  console_->Write(Console::Stream::kOut, Lines(100000));
  std::string got;
  const std::string expected = Lines(100000);
  ASSERT_TRUE(Until([&] {
    got += Take();
    return got.size() >= expected.size();
  }));
  EXPECT_TRUE(got == expected);
  EXPECT_TRUE(Untouched());
}

TEST_F(ConsoleTest, AStalledReaderStopsNoWorkerAndTheLossIsSaid) {
  MakePipe();
  UseConsole({.out = writer_, .err = err_, .queue_bytes = 64 << 10, .stall_limit = milliseconds(20)});
  ASSERT_TRUE(Start({Teed(100000)}).ok());
  ASSERT_TRUE(UntilGone());
  EXPECT_EQ(group_->records()[0].exit_code, 0);
  EXPECT_EQ(ReadFile(Path("log")), Lines(100000));
  std::string got;
  ASSERT_TRUE(Until([&] {
    got += Take();
    return got.ends_with("keep up\n");
  }));
  // The reader gets the first lines without gaps, then one line that says how much is missing.
  const size_t last = got.rfind('\n', got.size() - 2) + 1;
  const int arrived = static_cast<int>(std::count(got.begin(), got.begin() + static_cast<ptrdiff_t>(last), '\n'));
  EXPECT_EQ(got.substr(0, last), Lines(arrived));
  EXPECT_EQ(got.substr(last),
            fmt::format("muster: stdout: {} lines ({} bytes) were dropped here: its reader did not keep up\n",
                        100000 - arrived, Lines(100000).size() - last));
  // After that, lines are written again.
  console_->Write(Console::Stream::kOut, "more\n");
  EXPECT_EQ(Take(), "more\n");
}

TEST_F(ConsoleTest, AReaderThatIsGoneStopsNoWorker) {
  MakePipe();
  UseConsole({.out = writer_, .err = err_, .queue_bytes = 64 << 10, .stall_limit = minutes(10)});
  close(std::exchange(reader_, -1));
  ASSERT_TRUE(Start({Teed(100000)}).ok());
  ASSERT_TRUE(UntilGone());
  EXPECT_EQ(group_->records()[0].exit_code, 0);
  console_->Drain(milliseconds(0));
  EXPECT_THAT(ConsoleErr(),
              HasSubstr(fmt::format("stdout: 100000 lines ({} bytes) were dropped", Lines(100000).size())));
}

TEST_F(ConsoleTest, ClosedStreamsAreNoHarm) {
  UseConsole({.out = 1000, .err = 1001});
  ASSERT_TRUE(Start({Teed(100)}).ok());
  ASSERT_TRUE(UntilGone());
  console_->Drain(milliseconds(10));
}

TEST_F(ConsoleTest, AFullDeviceIsSaidOnTheOtherStream) {
  int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  UseConsole({.out = full, .err = err_});
  ASSERT_TRUE(Start({Teed(100)}).ok());
  ASSERT_TRUE(UntilGone());
  console_->Drain(milliseconds(10));
  EXPECT_THAT(ConsoleErr(), HasSubstr("stdout: 100 lines (790 bytes) were dropped here: No space left on device\n"));
  close(full);
}

TEST_F(ConsoleTest, ATerminalThatIsHeldStopsNothing) {
  ASSERT_EQ(openpty(&reader_, &writer_, nullptr, nullptr, nullptr), 0);
  fcntl(reader_, F_SETFL, O_NONBLOCK);
  termios mode;
  tcgetattr(writer_, &mode);
  cfmakeraw(&mode);
  tcsetattr(writer_, TCSANOW, &mode);
  UseConsole({.out = writer_, .err = err_, .queue_bytes = 64 << 10, .stall_limit = milliseconds(20)});
  console_->Write(Console::Stream::kOut, "seen\n");
  std::string got;
  ASSERT_TRUE(Until([&] {
    got += Take();
    return got == "seen\n";
  }));
  tcflow(writer_, TCOOFF);  // Ctrl-S
  ASSERT_TRUE(Start({Teed(100000)}).ok());
  ASSERT_TRUE(UntilGone());
  tcflow(writer_, TCOON);
  ASSERT_TRUE(Until([&] {
    got += Take();
    return got.ends_with("keep up\n");
  }));
  EXPECT_TRUE(Untouched());
}

TEST_F(ConsoleTest, AFooterStaysBelowWhatIsWritten) {
  ASSERT_EQ(openpty(&reader_, &writer_, nullptr, nullptr, nullptr), 0);
  fcntl(reader_, F_SETFL, O_NONBLOCK);
  termios mode;
  tcgetattr(writer_, &mode);
  cfmakeraw(&mode);
  tcsetattr(writer_, TCSANOW, &mode);
  UseConsole({.out = writer_, .err = writer_});
  std::string got;
  const auto shows = [&](const std::string& expected) {
    EXPECT_TRUE(Until([&] {
      got += Take();
      return got == expected;
    })) << testing::PrintToString(got);
    got.clear();
  };
  const std::string erase = "\r\033[K";
  console_->SetFooter("one");
  shows("one");
  console_->Write(Console::Stream::kOut, "a\n");
  console_->Write(Console::Stream::kErr, "b\n");
  shows(erase + "a\nb\none");
  console_->SetFooter("two");
  shows(erase + "two");
  console_->SetFooter("two");
  console_->Write(Console::Stream::kOut, "a bar\r");
  shows(erase + "a bar\r");
  console_->SetFooter("three");
  console_->Write(Console::Stream::kOut, "grows\n", false);
  shows("grows\nthree");
  console_->SetFooter("");
  console_->Drain(minutes(1));
  shows(erase);
}

TEST_F(ConsoleTest, DrainWaitsForTheReader) {
  MakePipe();
  fcntl(reader_, F_SETFL, 0);
  UseConsole({.out = writer_, .err = err_});
  const std::string expected = Lines(100000);
  console_->Write(Console::Stream::kOut, expected);
  std::string got;
  std::thread reader([&] {
    char buffer[4096];
    while (got.size() < expected.size()) {
      ssize_t count = read(reader_, buffer, sizeof buffer);
      if (count <= 0) break;
      got.append(buffer, count);
    }
  });
  console_->Drain(minutes(1));
  reader.join();
  EXPECT_TRUE(got == expected);
}

TEST_F(ConsoleTest, DrainGivesUpAndSaysSo) {
  MakePipe();
  UseConsole({.out = writer_, .err = err_});
  console_->Write(Console::Stream::kOut, Lines(100000));
  console_->Drain(milliseconds(10));
  EXPECT_THAT(ConsoleErr(), HasSubstr("its reader did not keep up"));
}

TEST_F(ConsoleTest, AFileOfOursKeepsItsPlace) {
  // Other processes write through the same open file description, without O_APPEND.
  writer_ = open(Path("shared").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(write(writer_, "before\n", 7), 7);
  UseConsole({.out = writer_, .err = err_});
  console_->Write(Console::Stream::kOut, "between\n");
  ASSERT_EQ(write(writer_, "after\n", 6), 6);
  EXPECT_EQ(ReadFile(Path("shared")), "before\nbetween\nafter\n");
}

}  // namespace
}  // namespace muster::launcher
