// SPDX-License-Identifier: Apache-2.0
// Real commands: their streams, their ends, and the processes that they leave behind.
#include "rsh/remote_process.h"

#include <fcntl.h>

#include <optional>

#include "base/text.h"
#include "rsh_harness.h"

namespace muster::rsh {
namespace {

class RemoteProcessTest : public RshHarness {
 protected:
  // Takes all output as it comes, unless `take_` is false.
  void Start(const std::string& command) {
    RemoteProcessEvents events;
    events.output = [this](bool err, const grpc::Slice& bytes) {
      EXPECT_LE(bytes.size(), kChunk);
      EXPECT_FALSE(ended_) << "output after the end";
      (err ? err_ : out_) += net::Joined({bytes});
      if (take_) process_->Continue();
    };
    events.taken = [this](size_t bytes) { taken_ += bytes; };
    events.ended = [this](const launcher::ExitRecord& record) { ended_ = record; };
    events.gone = [this] { ++gone_; };
    process_ = std::make_unique<RemoteProcess>(loop_, reaper_, console_, std::move(events));
    auto pid = process_->Start(command, Environment());
    ASSERT_TRUE(pid.ok()) << pid.status();
    pid_ = static_cast<pid_t>(*pid);
  }
  void Input(const std::string& text) { process_->Input({grpc::Slice(text)}); }
  bool UntilEnded() {
    return Until([this] { return ended_.has_value(); });
  }
  bool UntilGone() {
    return Until([this] { return gone_ > 0; });
  }
  bool UntilOut(const std::string& text) {
    return Until([&] { return out_.find(text) != std::string::npos; });
  }
  int Run(const std::string& command) {
    Start(command);
    process_->EndInput();
    EXPECT_TRUE(UntilEnded());
    return ended_ ? ended_->exit_code : -1;
  }

  std::unique_ptr<RemoteProcess> process_;
  pid_t pid_ = 0;
  bool take_ = true;
  std::string out_, err_;
  size_t taken_ = 0;
  std::optional<launcher::ExitRecord> ended_;
  int gone_ = 0;
};

TEST_F(RemoteProcessTest, HasItsStreamsAndItsCode) {
  EXPECT_EQ(Run("echo out; echo err >&2; exit 7"), 7);
  EXPECT_EQ(out_, "out\n");
  EXPECT_EQ(err_, "err\n");
  EXPECT_TRUE(UntilGone());
  EXPECT_EQ(gone_, 1);
  EXPECT_FALSE(Exists(pid_));
}

TEST_F(RemoteProcessTest, EachCodeAndSignalIsTold) {
  for (int code : {0, 1, 126, 128, 255}) {
    ended_.reset();
    EXPECT_EQ(Run(fmt::format("exit {}", code)), code);
  }
  for (int signal : {SIGHUP, SIGKILL, SIGSEGV, SIGTERM}) {
    ended_.reset();
    EXPECT_EQ(Run(fmt::format("kill -{} $$", signal)), 128 + signal);
  }
}

TEST_F(RemoteProcessTest, AnEnvironmentAndASessionOfItsOwn) {
  EXPECT_EQ(Run("env; read x </dev/tty || echo no terminal"), 0);
  EXPECT_THAT(out_, testing::HasSubstr("PATH=/usr/bin:/bin\n"));
  EXPECT_THAT(out_, testing::Not(testing::HasSubstr("HOME=")));
  EXPECT_THAT(out_, testing::HasSubstr("no terminal\n"));
}

TEST_F(RemoteProcessTest, TenMegabytesBothWays) {
  const std::string data = Noise(10'000'000);
  Start("tee /dev/stderr");
  for (size_t at = 0; at < data.size(); at += kChunk) Input(data.substr(at, kChunk));
  process_->EndInput();
  ASSERT_TRUE(UntilEnded());
  EXPECT_EQ(ended_->exit_code, 0);
  EXPECT_TRUE(out_ == data);
  EXPECT_TRUE(err_ == data);
  EXPECT_EQ(taken_, data.size());
}

TEST_F(RemoteProcessTest, NothingIsReadWithoutRoom) {
  take_ = false;
  Start("head -c 5000000 /dev/zero; echo end >&2");
  ASSERT_TRUE(Until([this] { return !out_.empty(); }));
  const size_t had = out_.size();
  for (int turn = 0; turn < 5; ++turn) loop_.poll();
  EXPECT_EQ(out_.size(), had);
  EXPECT_TRUE(Exists(pid_));
  take_ = true;
  process_->Continue();
  ASSERT_TRUE(UntilEnded());
  EXPECT_EQ(out_.size(), 5'000'000u);
  EXPECT_EQ(err_, "end\n");
}

TEST_F(RemoteProcessTest, StdinClosedEarly) {
  Start("exec <&-; echo closed; exec sleep 1000");
  ASSERT_TRUE(UntilOut("closed"));
  Input(Noise(1'000'000));
  Input(Noise(1'000'000));
  ASSERT_TRUE(Until([this] { return taken_ == 2'000'000; }));
  EXPECT_FALSE(ended_);
}

TEST_F(RemoteProcessTest, InputThatNobodyReadsIsNotTaken) {
  Start("sleep 1000");
  Input(Noise(3'000'000));
  process_->EndInput();
  ASSERT_TRUE(Until([this] { return taken_ > 0; })) << "what the pipe holds";
  loop_.poll();
  EXPECT_LT(taken_, 3'000'000u) << "only what is left when its reader has died is let go";
  process_->Signal(SIGTERM);
  ASSERT_TRUE(UntilEnded());
  EXPECT_EQ(ended_->exit_code, 128 + SIGTERM);
}

TEST_F(RemoteProcessTest, WhatStaysInTheBackgroundIsNotWaitedFor) {
  Start("sleep 1000 & echo $!; exit 4");
  ASSERT_TRUE(UntilEnded());
  EXPECT_EQ(ended_->exit_code, 4);
  const pid_t daemon = std::stoi(out_);
  EXPECT_TRUE(Exists(daemon));
  EXPECT_EQ(gone_, 0);
  process_->Stop(SIGTERM, std::chrono::seconds(30));
  ASSERT_TRUE(UntilGone());
  EXPECT_TRUE(Until([&] { return !Exists(daemon); }));
}

TEST_F(RemoteProcessTest, WhatABackgroundChildWritesLaterIsNotWaitedFor) {
  Start("(while :; do echo more; done) & echo $!; exit 5");
  ASSERT_TRUE(UntilEnded());
  EXPECT_EQ(ended_->exit_code, 5);
  process_->Stop(SIGKILL, Duration::zero());
  ASSERT_TRUE(UntilGone());
}

TEST_F(RemoteProcessTest, SignalsGoToTheWholeGroup) {
  Start(
      "trap 'echo parent; wait; exit 9' USR1; "
      "sh -c 'trap \"echo child; exit\" USR1; sleep 1000 & echo ready; wait' & wait; wait");
  ASSERT_TRUE(UntilOut("ready"));
  process_->Signal(SIGUSR1);
  ASSERT_TRUE(UntilEnded());
  EXPECT_EQ(ended_->exit_code, 9);
  EXPECT_THAT(out_, testing::HasSubstr("child"));
  EXPECT_THAT(out_, testing::HasSubstr("parent"));
}

TEST_F(RemoteProcessTest, StopKillsAfterTheGrace) {
  Start("trap '' TERM; setsid sh -c 'echo $$; while :; do sleep 1000; done' & read x; wait");
  ASSERT_TRUE(UntilOut("\n"));
  const pid_t away = std::stoi(out_);
  process_->Stop(SIGTERM, std::chrono::milliseconds(50));
  ASSERT_TRUE(UntilGone());
  ASSERT_TRUE(ended_);
  EXPECT_EQ(ended_->exit_code, 128 + SIGKILL);
  EXPECT_TRUE(Until([&] { return !Exists(away); }));
}

TEST_F(RemoteProcessTest, DetachedItOnlySaysThatItIsGone) {
  Start("trap 'echo more; exit 6' TERM; sleep 1000 & echo ready; wait");
  ASSERT_TRUE(UntilOut("ready"));
  process_->Detach();
  process_->Stop(SIGTERM, std::chrono::seconds(30));
  ASSERT_TRUE(UntilGone());
  EXPECT_FALSE(ended_);
  EXPECT_EQ(out_, "ready\n");
}

TEST_F(RemoteProcessTest, DestroyedItLeavesNothing) {
  Start("trap '' TERM; echo ready; while :; do sleep 1000; done");
  ASSERT_TRUE(UntilOut("ready"));
  process_.reset();
  EXPECT_TRUE(Until([this] { return !Exists(pid_); }));
  EXPECT_FALSE(ended_);
}

TEST_F(RemoteProcessTest, EveryDescriptorIsGivenBack) {
  auto open = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  Run("true");
  ASSERT_TRUE(UntilGone());
  process_.reset();
  const auto before = open();
  for (int i = 0; i < 20; ++i) {
    ended_.reset();
    gone_ = 0;
    Run("cat; echo x; sleep 0 &");
    ASSERT_TRUE(UntilGone());
    process_.reset();
  }
  EXPECT_EQ(open(), before);
}

}  // namespace
}  // namespace muster::rsh
