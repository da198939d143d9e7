// SPDX-License-Identifier: Apache-2.0
// Tests with real shells. credentials_test.py tests runs whose credential_process fails.
#include "base/asked_command.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/descriptors.h"
#include "base/text.h"
#include "http/conversation.h"

namespace muster {
namespace {

namespace asio = boost::asio;
using ::testing::StartsWith;

constexpr Duration kLong = std::chrono::hours(1);
constexpr size_t kMost = 100'000;

asio::awaitable<void> Keep(std::string script, Duration time, StatusOr<CommandAnswer>* kept) {
  std::vector<std::string> words = {"sh", "-c", std::move(script)};
  *kept = co_await AskedCommand(std::move(words), Environment::OfProcess(), kMost, time);
}

StatusOr<CommandAnswer> Ask(const std::string& script, Duration time = kLong) {
  asio::io_context loop;
  StatusOr<CommandAnswer> kept = absl::UnknownError("it never came back");
  const auto handle = http::Converse(loop, Keep(script, time, &kept));
  loop.run();
  return kept;
}

std::string Shown(const StatusOr<CommandAnswer>& answer) {
  if (!answer.ok()) return std::string(Message(answer.status()));
  return fmt::format("{} '{}' {}", answer->code, answer->out, answer->complaints);
}

TEST(AskedCommand, ReturnsCodeOutputAndComplaints) {
  const struct {
    std::string_view script, answer;
  } rows[] = {
      {"echo yes", "0 'yes\n' "},
      {"exit 3", "3 '' "},
      {"kill -9 $$", "137 '' "},
      {"cat; echo end", "0 'end\n' "},  // no input
      {"echo one >&2; echo two; echo three >&2; exit 1", "1 'two\n' 'one / three'"},
  };
  for (const auto& row : rows) EXPECT_EQ(Shown(Ask(std::string(row.script))), row.answer) << row.script;
}

TEST(AskedCommand, BoundsTheOutput) {
  const auto answer = Ask("head -c 100000 /dev/zero; head -c 1000000 /dev/zero | tr '\\0' '\\n' >&2; echo last >&2");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->out.size(), kMost);
  EXPECT_EQ(answer->complaints, "'last'");
  EXPECT_EQ(Shown(Ask("echo why >&2; while :; do echo secret; done")),
            "it wrote more than 100000 bytes to stdout: 'why'");
}

// A child that the command leaves behind holds its pipes open.
TEST(AskedCommand, DoesNotWaitForAChildLeftBehind) {
  const auto answer = Ask("sleep 1000000 & echo $!");
  ASSERT_TRUE(answer.ok()) << answer.status();
  const auto left = ParseInt(Strip(answer->out));
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(kill(static_cast<pid_t>(*left), SIGKILL), 0);
}

TEST(AskedCommand, NamesACommandThatCannotBeStarted) {
  asio::io_context loop;
  StatusOr<CommandAnswer> kept = absl::UnknownError("it never came back");
  auto ask = [](StatusOr<CommandAnswer>* answer) -> asio::awaitable<void> {
    std::vector<std::string> words = {"/no/such/command"};
    *answer = co_await AskedCommand(std::move(words), Environment::OfProcess(), kMost, kLong);
  };
  const auto handle = http::Converse(loop, ask(&kept));
  loop.run();
  EXPECT_TRUE(absl::IsNotFound(kept.status()));
  EXPECT_THAT(Shown(kept), StartsWith("/no/such/command: "));
}

class HangingCommand : public testing::Test {
 protected:
  HangingCommand() {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    EXPECT_EQ(mkfifo(fifo().c_str(), 0600), 0);
  }
  ~HangingCommand() override {
    unlink(fifo().c_str());
    rmdir(folder_.c_str());
  }
  std::string fifo() const { return folder_ + "/fifo"; }
  // The command and its child hold the other end of the FIFO until they end.
  std::string script() const { return fmt::format("exec 3>{}; echo waiting >&2; sleep 1000000 & wait", fifo()); }

  std::string folder_ = "/tmp/muster-asked-XXXXXX";
};

TEST_F(HangingCommand, IsKilledWithItsGroupAtTheDeadline) {
  const Descriptor reading(open(fifo().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const auto answer = Ask(script(), std::chrono::milliseconds(500));
  EXPECT_TRUE(absl::IsDeadlineExceeded(answer.status()));
  EXPECT_THAT(Shown(answer), StartsWith("it did not end within 0.5 s, and was killed"));
  fcntl(reading.get(), F_SETFL, 0);
  char byte;
  EXPECT_EQ(read(reading.get(), &byte, 1), 0) << "nobody holds the other end";
}

TEST_F(HangingCommand, IsKilledWhenItsConversationIsCancelled) {
  asio::io_context loop;
  StatusOr<CommandAnswer> kept = absl::UnknownError("it never came back");
  auto handle = http::Converse(loop, Keep(script(), kLong, &kept));
  loop.poll();
  const Descriptor reading(open(fifo().c_str(), O_RDONLY | O_CLOEXEC));  // blocks until the command opens the other end
  handle.reset();
  loop.run();
  EXPECT_EQ(Shown(kept), "it never came back");
  char byte;
  EXPECT_EQ(read(reading.get(), &byte, 1), 0);
}

}  // namespace
}  // namespace muster
