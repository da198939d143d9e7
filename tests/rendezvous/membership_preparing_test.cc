// SPDX-License-Identifier: Apache-2.0
// Membership: nodes whose standby workers still import. A round does not stop for a newcomer until they are ready.
#include "tests/rendezvous/stage.h"

namespace muster::rendezvous {
namespace {

Hello Preparing(Stage& s, const std::string& name) {
  Hello hello = s.Greeting(name);
  hello.preparing = true;
  return hello;
}
const Beat kPreparing{{}, false, true}, kPrepared{};

Stage Running(int min, int max, std::vector<std::string> names) {
  JobOptions options = Job(min, max, 3);
  options.last_call = {};
  Stage s(options);
  for (const std::string& name : names) s.Join(name);
  s.Wait(milliseconds(1));
  return s;
}
std::string StateOf(Stage& s, const std::string& name) {
  for (const StatusLine& line : Describe(s.state, s.now).nodes) {
    if (line.node == name) return line.state;
  }
  return "none";
}

TEST(PreparingNodes, AreTakenInWhenTheyHavePrepared) {
  Stage s = Running(1, 2, {"a"});
  s.Join(Preparing(s, "b"));
  EXPECT_FALSE(s.Stopped("a"));
  EXPECT_EQ(StateOf(s, "b"), "preparing");
  EXPECT_EQ(s.LastNotice("b"),
            "round 0 takes it in once the standby workers are ready; node b (host host-b) waits as a spare");
  s.Says("b", kPreparing);
  EXPECT_FALSE(s.Stopped("a"));
  s.Says("b", kPrepared);
  EXPECT_EQ(s.Told<Stop>("a").at(0).reason, "scaling up: node b (host host-b) joined");
  s.Ready("a");
  EXPECT_EQ(s.Roster(), "a b");
}

TEST(PreparingNodes, OneThatIsLostIsNotWaitedFor) {
  Stage s = Running(1, 3, {"a"});
  s.Join(Preparing(s, "b"));
  s.Join("c");
  EXPECT_FALSE(s.Stopped("a")) << "c waits for b, so that the round stops once";
  s.Closes("b");
  EXPECT_EQ(s.Told<Stop>("a").at(0).reason, "scaling up: node c (host host-c) joined");
}

TEST(PreparingNodes, AreWaitedForUpToALimit) {
  Stage s = Running(1, 3, {"a"});
  s.Join("c");
  ASSERT_TRUE(s.Stopped("a"));
  s.Ready("a");
  EXPECT_EQ(s.Roster(), "a c");
  s.Join(Preparing(s, "b"));
  s.Closes("c");
  s.Ready("a");
  EXPECT_EQ(s.Roster(), "a") << "the restart does not wait for b's imports";
  EXPECT_EQ(s.LastNotice("b"),
            "round 2 takes it in once the standby workers are ready; node b (host host-b) waits as a spare");
  s.Join("c");
  for (int n = 0; n < 59; ++n) {
    s.now += seconds(1);
    for (const char* name : {"a", "c"}) s.Beats(name);
    s.Says("b", kPreparing);
  }
  EXPECT_EQ(s.Told<Stop>("a").size(), 2u);
  s.Wait(seconds(1));
  EXPECT_EQ(s.Told<Stop>("a").size(), 3u);
  EXPECT_EQ(s.Told<Stop>("a").back().reason, "scaling up: node c (host host-c) joined");
  s.Ready("a");
  EXPECT_EQ(s.Roster(), "a c") << "b still imports";
}

TEST(PreparingNodes, TakePartIfTheJobNeedsThem) {
  Stage first(Job(2, 2));
  first.Join(Preparing(first, "a"));
  first.Join(Preparing(first, "b"));
  EXPECT_EQ(first.Roster(), "a b") << "no worker runs that could go on meanwhile";

  Stage s = Running(2, 2, {"a", "b"});
  s.Closes("b");
  s.Ready("a");
  s.Join(Preparing(s, "c"));
  EXPECT_EQ(s.Roster(), "a c") << "the job stands still without it";
}

TEST(PreparingNodes, TakePartIfTheNextRestartIsTheirOnlyChance) {
  JobOptions options = Job(1, 2, 3);
  options.last_call = {};
  options.scale_up = ScaleUp::kAtRestart;
  Stage s(options);
  s.Join("a");
  s.Wait(milliseconds(1));
  s.Join(Preparing(s, "b"));
  s.Fails("a", 137);
  s.Ready("a");
  EXPECT_EQ(s.Roster(), "a b");
}

TEST(PreparingNodes, ThoseThatHavePreparedComeFirst) {
  Stage s = Running(2, 2, {"a", "b"});
  s.Join(Preparing(s, "c"));
  EXPECT_EQ(s.LastNotice("c"), "round 0 has all its 2 nodes; node c (host host-c) waits as a spare");
  s.Join("d");
  s.Closes("b");
  s.Ready("a");
  EXPECT_EQ(s.Roster(), "a d");
}

TEST(PreparingNodes, JoinTogetherWhenTheWantedNumberHasPrepared) {
  Stage s = Running(1, 4, {"a"});
  s.Do(Wanted{3});
  s.Join(Preparing(s, "b"));
  s.Join(Preparing(s, "c"));
  s.Says("b", kPrepared);
  EXPECT_FALSE(s.Stopped("a"));
  s.Says("c", kPrepared);
  EXPECT_EQ(s.Told<Stop>("a").at(0).reason, "scaling up: 2 nodes joined");
}

TEST(PreparingNodes, OfTheRoundAreHurriedAndWaitedFor) {
  Stage s(Job(1, 3, 3));
  for (const char* name : {"a", "b"}) s.Join(Preparing(s, name));
  s.Join("old");
  s.Closes("old");
  for (const char* name : {"a", "b"}) s.Ready(name);
  ASSERT_EQ(s.Roster(), "a b");
  s.Says("a", kPreparing);
  s.Says("b", kPreparing);
  const auto hurried = [&](const std::string& name) {
    const auto notices = s.Told<Notice>(name);
    return std::count_if(notices.begin(), notices.end(), [](const Notice& notice) { return notice.prepare; });
  };
  EXPECT_EQ(hurried("a"), 0) << "nobody waits";
  s.Says("b", kPrepared);
  s.Join(Preparing(s, "c"));
  EXPECT_EQ(hurried("a"), 1);
  EXPECT_EQ(hurried("b"), 0) << "its standbys are ready";
  EXPECT_EQ(s.LastNotice("a"), "round 1 stops for new nodes once the standby workers are ready");
  s.Says("c", kPrepared);
  EXPECT_FALSE(s.Stopped("a") && s.Told<Stop>("a").size() > 1);
  s.Says("a", kPreparing);
  EXPECT_EQ(hurried("a"), 1) << "once is enough";
  s.Says("a", kPrepared);
  EXPECT_EQ(s.Told<Stop>("a").back().reason, "scaling up: node c (host host-c) joined");
  for (const char* name : {"a", "b"}) s.Ready(name);
  EXPECT_EQ(s.Roster(), "a b c");
}

TEST(PreparingNodes, OfTheRoundTakePartInTheNext) {
  Stage s(Job(1, 2, 3));
  for (const char* name : {"a", "b"}) s.Join(Preparing(s, name));
  s.Says("b", kPreparing);
  s.Fails("a", 137);
  s.Ready("a");
  s.Ready("b");
  EXPECT_EQ(s.Roster(), "a b") << "the restart does not wait for them, nor leave them out";
}

}  // namespace
}  // namespace muster::rendezvous
