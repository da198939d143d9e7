// SPDX-License-Identifier: Apache-2.0
// Evidence of real children: a stopped one, a fake py-spy, a reader of the flight recorder's pipe, helpers that hang.
#include "agent/hang_evidence.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/text.h"
#include "launcher/process.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

class HangEvidenceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    reaper_ = std::make_unique<launcher::Reaper>(loop_);
    options_.environment = {"PATH=" + folder_ + "/bin:/usr/bin:/bin"};
    options_.stacks_command = {"echo", "threads of"};
    options_.limit = std::chrono::seconds(60);
    options_.after_signal = milliseconds(0);
  }
  void TearDown() override {
    evidence_.reset();
    if (child_ > 0) kill(-child_, SIGKILL);
    reaper_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Child(const std::vector<std::string>& argv) {
    launcher::ProcessSpec spec;
    spec.argv = argv;
    spec.environment = {"PATH=/usr/bin:/bin", "FOLDER=" + folder_};
    auto pid = launcher::StartProcess(spec);
    ASSERT_TRUE(pid.ok()) << pid.status();
    child_ = *pid;
    std::filesystem::create_directories(folder_ + "/0");
    target_ = {0, child_, folder_ + "/0", std::nullopt};
  }

  void PySpy(const std::string& script) {
    std::filesystem::create_directories(folder_ + "/bin");
    std::ofstream(folder_ + "/bin/py-spy") << "#!/bin/sh\n" << script;
    chmod((folder_ + "/bin/py-spy").c_str(), 0755);
  }

  void Gather() {
    evidence_ = std::make_unique<HangEvidence>(loop_, *reaper_, std::vector{target_}, options_,
                                               [this](const EvidenceCount& count) { count_ = count; });
    EXPECT_FALSE(count_) << "never from inside";
    EXPECT_TRUE(Until([this] { return count_.has_value(); }));
  }

  bool Until(const std::function<bool()>& done) {
    const TimePoint deadline = MonotonicClock::now() + std::chrono::minutes(2);
    while (!done()) {
      if (MonotonicClock::now() > deadline) return false;
      loop_.restart();
      loop_.run_one_for(milliseconds(20));
    }
    return true;
  }

  std::string Text(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string HangText() const { return Text("0/hang.txt"); }

  std::string folder_ = std::filesystem::temp_directory_path() / "muster-evidence-XXXXXX";
  boost::asio::io_context loop_;
  std::unique_ptr<launcher::Reaper> reaper_;
  pid_t child_ = 0;
  EvidenceTarget target_;
  EvidenceOptions options_;
  std::unique_ptr<HangEvidence> evidence_;
  std::optional<EvidenceCount> count_;
};

TEST_F(HangEvidenceTest, OfAWorkerWithoutPython) {
  Child({"sleep", "1000"});
  Gather();
  EXPECT_EQ(count_->stacks, 1);
  EXPECT_EQ(count_->python, 0);
  EXPECT_EQ(HangText(), fmt::format("threads of {}\npython stacks: py-spy is not on PATH\n", child_));
}

TEST_F(HangEvidenceTest, PySpyIsAskedAboutPythonProcessesOnly) {
  PySpy("echo \"$@\"; echo \"$PATH\" >&2\n");
  Child({"sh", "-c",
         "/usr/bin/python3 -c 'import os, signal; open(os.environ[\"FOLDER\"] + \"/up\", \"w\").close(); "
         "signal.pause()'; true"});
  ASSERT_TRUE(Until([this] { return std::filesystem::exists(folder_ + "/up"); }));
  Gather();
  EXPECT_EQ(count_->python, 1);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/0"))
    files.push_back(entry.path().filename());
  std::erase(files, "hang.txt");
  ASSERT_EQ(files.size(), 1u);
  std::string pid = files[0].substr(7, files[0].find('.') - 7);
  EXPECT_NE(pid, std::to_string(child_)) << "that one is a shell";
  EXPECT_EQ(Text("0/" + files[0]), fmt::format("dump --nonblocking --pid {}\n{}/bin:/usr/bin:/bin\n", pid, folder_));
}

TEST_F(HangEvidenceTest, HelpersThatHangOrFailAreNoted) {
  PySpy("exit 3\n");
  Child({"/usr/bin/python3", "-c", "import signal; signal.pause()"});
  options_.stacks_command = {"sh", "-c", "echo begun; exec sleep 1000", "sh"};
  options_.limit = std::chrono::seconds(3);
  Gather();
  EXPECT_EQ(count_->stacks, 0);
  EXPECT_THAT(HangText(), HasSubstr("begun\n"));
  EXPECT_THAT(HangText(), HasSubstr("reading /proc did not end in time and was given up\n"));
  EXPECT_THAT(HangText(), HasSubstr(fmt::format("py-spy for process {} ended with exit code 3", child_)));
}

TEST_F(HangEvidenceTest, AnOutputThatCannotBeOpenedIsNoted) {
  PySpy("echo stacks\n");
  Child({"/usr/bin/python3", "-c", "import signal; signal.pause()"});
  const std::string output = fmt::format("{}/0/python_{}.txt", folder_, child_);
  std::filesystem::create_directories(output);
  Gather();
  EXPECT_EQ(count_->python, 0);
  EXPECT_THAT(HangText(),
              HasSubstr(fmt::format("py-spy for process {}: cannot write {}: Is a directory", child_, output)));
}

TEST_F(HangEvidenceTest, TheSignalComesAfterProcWasRead) {
  Child({"sh", "-c",
         "trap 'echo handled > $FOLDER/handled; exit' USR1; : > $FOLDER/up; while :; do read x < $FOLDER/fifo; done"});
  ASSERT_EQ(mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  ASSERT_TRUE(Until([this] { return std::filesystem::exists(folder_ + "/up"); }));
  options_.signal = SIGUSR1;
  Gather();
  EXPECT_TRUE(Until([this] { return std::filesystem::exists(folder_ + "/handled"); }));
  EXPECT_THAT(HangText(), HasSubstr(fmt::format("SIGUSR1 was sent to process {} (--hang-signal)", child_)));
  EXPECT_LT(HangText().find("threads of"), HangText().find("SIGUSR1"));
}

// The reader takes the place of PyTorch's heartbeat thread.
TEST_F(HangEvidenceTest, TheFlightRecorderIsAskedAndWaitedFor) {
  Child({"sleep", "1000"});
  target_.recorder = FlightRecorder{folder_ + "/0.pipe", folder_ + "/dump_0"};
  ASSERT_EQ(mkfifo(target_.recorder->pipe.c_str(), 0600), 0);
  boost::asio::posix::stream_descriptor pipe(loop_, open(target_.recorder->pipe.c_str(), O_RDONLY | O_NONBLOCK));
  pipe.async_wait(boost::asio::posix::descriptor_base::wait_read, [&](boost::system::error_code) {
    char byte = 0;
    if (read(pipe.native_handle(), &byte, 1) == 1) std::ofstream(target_.recorder->dump) << "a dump";
  });
  Gather();
  EXPECT_EQ(count_->dumps, 1);
  EXPECT_EQ(count_->dumps_missing, 0);
  EXPECT_THAT(HangText(), Not(HasSubstr("flight recorder")));
}

TEST_F(HangEvidenceTest, ADumpThatDoesNotComeIsGivenUp) {
  Child({"sleep", "1000"});
  target_.recorder = FlightRecorder{folder_ + "/0.pipe", folder_ + "/dump_0"};
  ASSERT_EQ(mkfifo(target_.recorder->pipe.c_str(), 0600), 0);
  int reader = open(target_.recorder->pipe.c_str(), O_RDONLY | O_NONBLOCK);
  options_.limit = milliseconds(600);
  Gather();
  close(reader);
  EXPECT_EQ(count_->dumps_missing, 1);
  EXPECT_THAT(HangText(), HasSubstr("no dump came to " + folder_ + "/dump_0\n"));
}

TEST_F(HangEvidenceTest, AWorkerWithoutAPipeIsNotWaitedFor) {
  Child({"sleep", "1000"});
  target_.recorder = FlightRecorder{folder_ + "/0.pipe", folder_ + "/dump_0"};
  Gather();
  EXPECT_EQ(count_->dumps_missing, 0);
  EXPECT_THAT(HangText(), HasSubstr("this worker has no NCCL process group"));
}

TEST_F(HangEvidenceTest, GivenUpInTheMiddleNothingIsCalledAndNothingStays) {
  Child({"sleep", "1000"});
  options_.stacks_command = {"sh", "-c", "echo $$ > $0; exec sleep 1000", folder_ + "/helper"};
  evidence_ = std::make_unique<HangEvidence>(loop_, *reaper_, std::vector{target_}, options_,
                                             [this](const EvidenceCount& count) { count_ = count; });
  ASSERT_TRUE(Until([this] { return Text("helper").ends_with("\n"); }));
  evidence_.reset();
  pid_t helper = static_cast<pid_t>(*ParseInt(Strip(Text("helper"))));
  EXPECT_TRUE(Until([&] { return kill(helper, 0) != 0; }));
  EXPECT_FALSE(count_);
}

}  // namespace
}  // namespace muster::agent
