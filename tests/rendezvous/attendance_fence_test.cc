// SPDX-License-Identifier: Apache-2.0
// A node that hears no coordinator stops its workers before the others may start a round without it.
#include "tests/rendezvous/attendance_fixture.h"

namespace muster::rendezvous::attendance {
namespace {

using testing::HasSubstr;

class Fence : public Attendance {
 protected:
  Fence() {
    state.options.min_nodes = 1;
    state.options.max_nodes = 3;
    state.options.heartbeat_timeout = seconds(15);
  }
  void Join(bool leases = true) {
    Do(Begin{});
    Do(Connected{});
    Hear(Welcome{1, seconds(5), "test", true, leases});
  }
  void RunRound(bool leases = true) {
    Join(leases);
    Hear(Start{Round(0)});
    ASSERT_EQ(All<StartRound>().size(), 1u);
  }
  // Goes from deadline to deadline until the workers are stopped, at most for `limit`. The coordinator answers beats
  // if `answers`. Returns how long it took.
  std::optional<Duration> StoppedWithin(Duration limit, std::function<std::optional<Beat>(Beat)> answers) {
    const TimePoint begin = now;
    while (look_again && *look_again <= begin + limit) {
      Next();
      if (!All<StopRound>().empty()) return now - begin;
      for (const Beat& beat : Told<Beat>()) {
        if (const auto answer = answers(beat)) Hear(*answer);
        if (!All<StopRound>().empty()) return now - begin;
      }
    }
    return std::nullopt;
  }
  static std::optional<Beat> Leases(Beat beat) { return Beat{.stamp = beat.stamp, .lease = true}; }
  static std::optional<Beat> Reforms(Beat beat) { return Beat{.stamp = beat.stamp}; }
  static std::optional<Beat> Silent(Beat) { return std::nullopt; }
};

TEST_F(Fence, StopsTheWorkersWhenNoBeatIsAnswered) {
  RunRound();
  EXPECT_EQ(StoppedWithin(seconds(60), Silent), seconds(12));
  const StopRound stop = All<StopRound>().at(0);
  EXPECT_EQ(stop.round, (RoundId{1, 0}));
  EXPECT_EQ(stop.reason, "no coordinator has answered for 12 s: a round may start without this node");
  EXPECT_EQ(stop.cause, RoundCause::kMembership);
  EXPECT_EQ(stop.grace, milliseconds(1500)) << "they are gone before the coordinator gives the node up";
  EXPECT_FALSE(stop.keep_evidence);
  EXPECT_THAT(said.back(), HasSubstr("the workers are stopped"));
  EXPECT_EQ(state.doing, NodeState::kStopping);
  Hear(Beat{.stamp = now.time_since_epoch().count(), .lease = true});
  Do(NoWorkerLeft{77});
  EXPECT_EQ(Told<Ready>().at(0), (Ready{{1, 0}, 77, std::nullopt, true})) << "the coordinator begins a new round";
  Hear(Start{Round(1)});
  Do(NoWorkerLeft{78});
  EXPECT_EQ(Told<Ready>().at(0), (Ready{{1, 1}, 78})) << "in that one it was not cut off";
}

TEST_F(Fence, IsFarWhileTheCoordinatorAnswers) {
  RunRound();
  EXPECT_EQ(StoppedWithin(std::chrono::hours(1), Leases), std::nullopt);
  const auto stopped = StoppedWithin(seconds(60), Silent);
  ASSERT_TRUE(stopped);
  EXPECT_LE(*stopped, seconds(12)) << "from the beat that was answered last";
  EXPECT_GE(*stopped, seconds(7));
}

TEST_F(Fence, ACoordinatorThatOnlyCollectsReportsGivesNoLease) {
  RunRound();
  EXPECT_EQ(StoppedWithin(seconds(60), Reforms), seconds(12));
}

TEST_F(Fence, AnAnswerCountsFromWhenItsBeatWasSent) {
  RunRound();
  const int64_t stamp = now.time_since_epoch().count();
  now += seconds(11);
  Hear(Beat{.stamp = stamp, .lease = true});
  EXPECT_EQ(StoppedWithin(seconds(60), Silent), seconds(1));
}

TEST_F(Fence, AnAnswerOfTheFutureCountsForNothing) {
  RunRound();
  Hear(Beat{.stamp = (now + seconds(1000)).time_since_epoch().count(), .lease = true});
  EXPECT_EQ(StoppedWithin(seconds(60), Silent), seconds(12));
}

TEST_F(Fence, AnOlderCoordinatorGivesNone) {
  RunRound(false);
  EXPECT_EQ(StoppedWithin(seconds(60), [](Beat) { return std::optional(Beat{}); }), std::nullopt);
}

TEST_F(Fence, ACoordinatorOfThisMachineNeedsNone) {
  for (const char* endpoint : {"127.0.0.1:29400", "[::1]:29400", "localhost:29400"}) {
    state = {};
    state.endpoint = endpoint;
    state.options.max_nodes = 3;
    RunRound();
    EXPECT_EQ(StoppedWithin(seconds(14), Silent), std::nullopt) << endpoint;
  }
  state = {};
  state.options.max_nodes = 3;
  RunRound();  // in this process
  EXPECT_EQ(StoppedWithin(seconds(14), Silent), std::nullopt);
}

TEST_F(Fence, WorkersThatEndSlowlyGetNoMoreTime) {
  RunRound();
  Hear(Stop{{1, 0}, "why"});
  ASSERT_EQ(All<StopRound>().size(), 1u);
  EXPECT_EQ(All<StopRound>().at(0).grace, std::nullopt);
  EXPECT_EQ(StoppedWithin(seconds(60), Silent), seconds(12));
  EXPECT_EQ(All<StopRound>().at(0).grace, milliseconds(1500));
  EXPECT_EQ(StoppedWithin(seconds(60), Silent), std::nullopt) << "once is enough";
}

// Nobody listens at the coordinator's address, so that the others need this node: the number of nodes is fixed.
TEST_F(Fence, ARefusedConnectionOfAFixedJobIsNoReason) {
  for (const bool fixed : {true, false}) {
    state.stage = Stage::kDialling;
    state = {.run_id = "job", .endpoint = "a:1"};
    state.options.min_nodes = fixed ? 3 : 1;
    state.options.max_nodes = 3;
    state.may_stand_in = false;
    RunRound();
    Do(Disconnected{Loss::kClosed, "reset"});
    std::optional<Duration> stopped;
    const TimePoint begin = now;
    while (look_again && now < begin + seconds(60) && !stopped) {
      if (!All<Dial>().empty()) Do(Disconnected{Loss::kRefused, "refused"});
      if (!All<StopRound>().empty()) stopped = now - begin;
      if (!stopped && All<Dial>().empty()) Next();
      if (!All<StopRound>().empty()) stopped = now - begin;
    }
    EXPECT_EQ(stopped.has_value(), !fixed);
  }
}

TEST_F(Fence, AStartThatHasWaitedInTheSocketIsNotFollowed) {
  Join();
  now += seconds(13);
  Hear(Start{Round(0)});
  EXPECT_TRUE(All<StartRound>().empty()) << "the round may have gone on without this node";
  EXPECT_EQ(Dialled(), "a:1");
}

TEST_F(Fence, ANewerRoundOrAnotherHalfLeavesLittleTime) {
  RunRound();
  Hear(Stop{{1, 0}, "silent", RoundCause::kMembership, false, true});
  EXPECT_EQ(All<StopRound>().at(0).grace, milliseconds(1500));
  Do(NoWorkerLeft{77});
  Hear(Start{Round(1)});
  Hear(Stop{{2, 7}, "round 1 is over"});
  EXPECT_EQ(All<StopRound>().at(0).grace, milliseconds(1500));
}

}  // namespace
}  // namespace muster::rendezvous::attendance
