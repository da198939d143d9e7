// SPDX-License-Identifier: Apache-2.0
// The launcher's streams to its worker pods: which workers hear the verdict, and for which ones it waits.
#include "rsh/workers.h"

#include "session_harness.h"

namespace muster::rsh {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class WorkersTest : public SessionHarness {
 protected:
  void Attend(const std::vector<int>& ports, const net::Credentials& credentials = {},
              const std::vector<int>& here = {}) {
    Workers::Options options;
    for (int port : ports) options.addresses.push_back(Address(port));
    for (int port : here) options.of_this_machine.push_back(Address(port));
    options.credentials = credentials;
    options.launcher = "pod-0";
    Workers::Events events;
    events.lost = [this](const std::string& address, const std::string&) { lost_.push_back(address); };
    events.refused = [this](const std::string& address, const std::string& detail) {
      refused_.push_back(address + ": " + detail);
    };
    workers_ = std::make_unique<Workers>(loop_, *queue_, resolver_, std::move(options), std::move(events));
  }
  void SendVerdict(int code, Duration limit) {
    workers_->SendVerdict({code, "why"}, limit, [this](const std::vector<std::string>& deaf) {
      EXPECT_FALSE(deaf_);
      deaf_ = deaf;
    });
    EXPECT_FALSE(deaf_);
  }
  bool UntilReached(size_t count) {
    return Until([&] { return workers_->reached() >= count; });
  }
  // Waits until `count` launchers have said hello. A launcher may not have heard the answer yet.
  bool UntilMet(size_t count) {
    return Until([&] { return said_.size() >= count; });
  }
  bool UntilTold() {
    return Until([this] { return deaf_.has_value(); });
  }

  std::unique_ptr<Workers> workers_;
  std::vector<std::string> lost_, refused_;
  std::optional<std::vector<std::string>> deaf_;
};

TEST_F(WorkersTest, AllHearTheVerdict) {
  auto one = Serve(), two = Serve();
  Attend({one->port(), two->port()});
  ASSERT_TRUE(UntilMet(2));
  EXPECT_THAT(said_[0], HasSubstr("the launcher is pod-0"));
  SendVerdict(7, seconds(60));
  ASSERT_TRUE(UntilTold());
  EXPECT_THAT(*deaf_, IsEmpty());
  ASSERT_TRUE(Until([this] { return verdicts_.size() == 2; }));
  EXPECT_EQ(verdicts_[0].exit_code, 7);
  EXPECT_EQ(verdicts_[1].reason, "why");
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(WorkersTest, AVerdictWithoutWorkersIsToldAtOnce) {
  Attend({});
  SendVerdict(0, seconds(60));
  ASSERT_TRUE(UntilTold());
  EXPECT_THAT(*deaf_, IsEmpty());
}

TEST_F(WorkersTest, AVerdictBeforeAnybodyWasMet) {
  auto one = Serve();
  Attend({one->port()});
  SendVerdict(3, seconds(60));
  ASSERT_TRUE(UntilTold());
  EXPECT_THAT(*deaf_, IsEmpty());
  ASSERT_TRUE(Until([this] { return verdicts_.size() == 1; }));
}

TEST_F(WorkersTest, OneThatNeverWasIsNamed) {
  auto one = Serve();
  const int away = Serve()->port();
  Attend({one->port(), away});
  ASSERT_TRUE(UntilMet(1));
  SendVerdict(0, seconds(2));
  ASSERT_TRUE(UntilTold());
  ASSERT_EQ(deaf_->size(), 1u);
  EXPECT_THAT(deaf_->front(), HasSubstr(Address(away)));
  EXPECT_EQ(verdicts_.size(), 1u);
}

TEST_F(WorkersTest, OneOnThisMachineHearsWhereItIs) {
  auto one = Serve(), two = Serve();
  const int nobody = Serve()->port();  // no server there, as at the launcher's own name
  Attend({one->port()}, {}, {two->port(), nobody});
  ASSERT_TRUE(UntilMet(2));
  SendVerdict(7, seconds(3600));
  ASSERT_TRUE(UntilTold());
  EXPECT_THAT(*deaf_, IsEmpty()) << "where nobody serves nobody is named";
  ASSERT_TRUE(Until([this] { return verdicts_.size() == 2; }));
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(WorkersTest, OneOnThisMachineThatWentIsNamed) {
  auto one = Serve();
  const int port = one->port();
  Attend({}, {}, {port});
  ASSERT_TRUE(UntilReached(1));
  one.reset();
  ASSERT_TRUE(Until([this] { return !lost_.empty(); }));
  SendVerdict(7, seconds(2));
  ASSERT_TRUE(UntilTold());
  ASSERT_EQ(deaf_->size(), 1u);
  EXPECT_THAT(deaf_->front(), HasSubstr(Address(port)));
}

TEST_F(WorkersTest, OneThatComesBackHears) {
  Server::Options options;
  auto one = Serve();
  options.port = one->port();
  Attend({options.port});
  ASSERT_TRUE(UntilReached(1));
  one.reset();
  ASSERT_TRUE(Until([this] { return !lost_.empty(); }));
  EXPECT_THAT(lost_, ElementsAre(Address(options.port)));
  SendVerdict(5, seconds(60));
  loop_.poll();
  EXPECT_FALSE(deaf_);
  one = Serve(options);
  ASSERT_TRUE(UntilTold());
  EXPECT_THAT(*deaf_, IsEmpty());
  ASSERT_TRUE(Until([this] { return verdicts_.size() == 1; }));
  EXPECT_EQ(verdicts_[0].exit_code, 5);
}

TEST_F(WorkersTest, OneThatRefusesIsNotWaitedFor) {
  Server::Options guarded;
  guarded.credentials.token = "other";
  auto one = Serve(), two = Serve(guarded);
  Attend({one->port(), two->port()}, {.token = "ours"});
  ASSERT_TRUE(Until([this] { return !refused_.empty(); }));
  EXPECT_THAT(refused_.front(), HasSubstr(Address(two->port())));
  EXPECT_THAT(refused_.front(), HasSubstr("token"));
  SendVerdict(0, seconds(3600));
  ASSERT_TRUE(UntilTold());
  ASSERT_EQ(deaf_->size(), 1u);
  EXPECT_THAT(deaf_->front(), HasSubstr(Address(two->port())));
  EXPECT_EQ(refused_.size(), 1u);
}

TEST_F(WorkersTest, ALauncherThatGoesWithoutAVerdictMayComeAgain) {
  auto one = Serve();
  Attend({one->port()});
  ASSERT_TRUE(UntilMet(1));
  workers_.reset();
  ASSERT_TRUE(UntilMet(2));
  EXPECT_THAT(said_[1], HasSubstr("gone without a verdict"));
  EXPECT_THAT(verdicts_, IsEmpty());
  Attend({one->port()});
  ASSERT_TRUE(UntilMet(3));
  SendVerdict(0, seconds(60));
  ASSERT_TRUE(UntilTold());
  ASSERT_TRUE(Until([this] { return verdicts_.size() == 1; }));
}

}  // namespace
}  // namespace muster::rsh
