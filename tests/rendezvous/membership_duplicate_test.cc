// SPDX-License-Identifier: Apache-2.0
// Membership, rule by rule: two nodes that claim one name, or one node rank.
#include "rendezvous/membership.h"
#include "tests/rendezvous/stage.h"

namespace muster::rendezvous {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Duplicate, SameIncarnationReplacesItsOldStream) {
  Stage s(Job(2, 2));
  PeerId old = s.Join("a");
  s.Join("b");
  s.Return("a", NodeState::kRunning, s.state.round.seats.empty() ? Assignment{} : AssignmentFor(s.state.round, 0));
  EXPECT_TRUE(s.hung_up.contains(old));
  EXPECT_EQ(s.state.phase, Phase::kRunning);
  s.Do(PeerClosed{old});
  EXPECT_EQ(s.state.phase, Phase::kRunning);
  EXPECT_FALSE(s.Stopped("a"));
  EXPECT_FALSE(s.Stopped("b"));
}

TEST(Duplicate, AnOlderStreamHeardOfLateIsDropped) {
  Stage s(Job(2, 2));
  PeerId late = s.next_peer++;
  PeerId peer = s.Join("a");
  s.Do(PeerOpened{late, s.Greeting("a")});
  EXPECT_TRUE(s.hung_up.contains(late));
  EXPECT_FALSE(s.hung_up.contains(peer));
}

TEST(Duplicate, LiveHolderKeepsItsName) {
  Stage s(Job(2, 2));
  s.Join("a");
  PeerId holder = s.peers["a"];
  Hello other = s.Greeting("a");
  other.node.incarnation = "a-2";
  other.node.host = "elsewhere";
  PeerId contender = s.Join(other);
  EXPECT_EQ(s.Refusal(contender), "");
  s.Do(PeerSaid{holder, Beat{}});
  EXPECT_THAT(s.Refusal(contender), AllOf(HasSubstr("the name a"), HasSubstr("host-a"), HasSubstr("which is alive")));
  EXPECT_TRUE(s.hung_up.contains(contender));
}

TEST(Duplicate, NewIncarnationReplacesADeadHolder) {
  for (bool closes : {true, false}) {
    Stage s(Job(2, 2));
    PeerId holder = s.Join("a");
    Hello other = s.Greeting("a");
    other.node.incarnation = "a-2";
    PeerId contender = s.Join(other);
    if (closes) {
      s.Do(PeerClosed{holder});
    } else {
      s.Wait(seconds(15));
    }
    EXPECT_EQ(s.ToldPeer<Welcome>(contender).size(), 1u) << closes;
    EXPECT_EQ(s.state.members.at("a").node.incarnation, "a-2");
    s.Join("b");
    EXPECT_TRUE(s.Started("a", 0));
  }
}

TEST(Duplicate, SameIndexIsTreatedLikeTheSameName) {
  JobOptions options = Job(2, 2);
  options.indexed = true;
  Stage s(options);
  Hello a = s.Greeting("a");
  a.node.index = 1;
  s.Join(a);
  Hello b = s.Greeting("b");
  b.node.index = 1;
  PeerId contender = s.Join(b);
  s.Beats("a");
  EXPECT_THAT(s.Refusal(contender), AllOf(HasSubstr("node rank 1"), HasSubstr("node a")));
  PeerId again = s.Join(b);
  s.Closes("a");
  EXPECT_EQ(s.ToldPeer<Welcome>(again).size(), 1u);
}

}  // namespace
}  // namespace muster::rendezvous
