// SPDX-License-Identifier: Apache-2.0
// Candidates against a server that keeps one Lease. As on an API server, a write with an old resourceVersion conflicts.
#include "controller/kube/jobs/leader.h"

#include <gmock/gmock.h>
#include <poll.h>

#include <boost/asio/steady_timer.hpp>
#include <list>
#include <optional>

#include "base/descriptors.h"
#include "tests/controller/kube/script_server.h"

namespace muster::controller {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Reply = ScriptServer::Reply;

// The Lease does not expire during a test, and candidates read it every millisecond.
const LeaseRules kRules{
    .duration = std::chrono::hours(1), .renew_deadline = std::chrono::minutes(30), .retry = milliseconds(1)};

class LeaderTest : public testing::Test {
 protected:
  struct Candidate {
    std::vector<std::string> told, said;
    std::optional<Leader> leader;
  };

  Reply Answer(const ScriptServer::Asked& asked) {
    if (broken_) return ScriptServer::Refusal(500, "InternalError");
    if (silent_) return {.then = Reply::Then::kStay};
    if (asked.method == "GET")
      return lease_.is_object() ? ScriptServer::Of(200, lease_) : ScriptServer::Refusal(404, "NotFound");
    if (const auto at_write = at_write_) at_write();
    const Json written = asked.json();
    if (asked.method == "POST") {
      if (lease_.is_object()) return ScriptServer::Refusal(409, "AlreadyExists");
    } else {
      if (!lease_.is_object()) return ScriptServer::Refusal(404, "NotFound");
      if (written["metadata"]["resourceVersion"] != lease_["metadata"]["resourceVersion"]) {
        return ScriptServer::Refusal(409, "Conflict");
      }
    }
    Put(written);
    return ScriptServer::Of(200, lease_);
  }
  void Put(Json lease) {
    lease["metadata"]["resourceVersion"] = std::to_string(++version_);
    lease_ = std::move(lease);
  }
  void PutHolder(const std::string& holder) {
    Put({{"metadata", {{"name", "lock"}, {"namespace", "ns"}}},
         {"spec",
          {{"holderIdentity", holder}, {"renewTime", "t"}, {"leaseDurationSeconds", 3600}, {"leaseTransitions", 7}}}});
  }
  std::string holder() { return lease_.is_object() ? TextField(lease_["spec"], "holderIdentity") : "none"; }

  Candidate& Begin(const std::string& identity, const LeaseRules& rules = kRules) {
    Candidate& candidate = candidates_.emplace_back();
    candidate.leader.emplace(
        loop_, client_, "ns", "lock", identity, rules,
        Leader::Events{.began = [&candidate] { candidate.told.push_back("began"); },
                       .lost = [&candidate](const std::string& why) { candidate.told.push_back(why); },
                       .say = [&candidate](const std::string& text) { candidate.said.push_back(text); }});
    candidate.leader->Begin();
    return candidate;
  }
  bool Until(const std::function<bool()>& done) { return RunUntil(loop_, done); }

  boost::asio::io_context loop_;
  Json lease_;
  int version_ = 0;
  bool silent_ = false, broken_ = false;
  std::function<void()> at_write_;
  ScriptServer server_{loop_, [this](const ScriptServer::Asked& asked) { return Answer(asked); }};
  ApiClient client_{loop_, server_.access(), ApiClient::Options{.writes_per_second = 1e6, .burst = 1'000'000}};
  std::list<Candidate> candidates_;
};

TEST_F(LeaderTest, TakesALeaseThatIsNotThereAndRenewsIt) {
  Candidate& one = Begin("one");
  EXPECT_FALSE(one.leader->MayAct());
  EXPECT_TRUE(Until([&] { return version_ >= 4; }));
  EXPECT_TRUE(one.leader->MayAct());
  EXPECT_TRUE(one.leader->deadline().has_value());
  EXPECT_THAT(one.told, ElementsAre("began"));
  EXPECT_THAT(one.said, IsEmpty());
  EXPECT_EQ(holder(), "one");
  // A renewal takes one request.
  EXPECT_THAT(server_.lines().at(0), "GET /apis/coordination.k8s.io/v1/namespaces/ns/leases/lock");
  EXPECT_THAT(server_.lines().at(1), "POST /apis/coordination.k8s.io/v1/namespaces/ns/leases?fieldManager=muster");
  EXPECT_THAT(server_.lines().at(2), "PUT /apis/coordination.k8s.io/v1/namespaces/ns/leases/lock?fieldManager=muster");
  EXPECT_THAT(server_.lines().at(3), server_.lines().at(2));
}

TEST_F(LeaderTest, OnlyOneLeads) {
  Candidate& one = Begin("one");
  Candidate& two = Begin("two");
  EXPECT_TRUE(Until([&] { return version_ >= 5 && one.said.size() + two.said.size() > 0; }));
  EXPECT_EQ(one.told.size() + two.told.size(), 1U);
  EXPECT_NE(one.leader->MayAct(), two.leader->MayAct());
  Candidate& waits = one.told.empty() ? one : two;
  EXPECT_THAT(waits.said, ElementsAre(HasSubstr("holds the lease ns/lock")));
}

TEST_F(LeaderTest, TakesOverWhatIsGivenBack) {
  Candidate& one = Begin("one");
  ASSERT_TRUE(Until([&] { return !one.told.empty(); }));
  Candidate& two = Begin("two");
  ASSERT_TRUE(Until([&] { return !two.said.empty(); }));
  bool released = false;
  one.leader->Release([&] { released = true; });
  EXPECT_FALSE(one.leader->MayAct());
  EXPECT_TRUE(Until([&] { return released && !two.told.empty(); }));
  EXPECT_THAT(two.told, ElementsAre("began"));
  EXPECT_THAT(one.told, ElementsAre("began"));
  EXPECT_EQ(holder(), "two");
  EXPECT_EQ(lease_["spec"]["leaseTransitions"], 1);
  EXPECT_FALSE(one.leader->MayAct());
}

TEST_F(LeaderTest, ATryThatIsDueDoesNotTakeItAgain) {
  Candidate& one = Begin("one");
  ASSERT_TRUE(Until([&] { return !one.told.empty(); }));
  bool released = false;
  boost::asio::steady_timer before(loop_, MonotonicClock::now());
  before.async_wait([&](boost::system::error_code) { one.leader->Release([&] { released = true; }); });
  const TimePoint due = MonotonicClock::now() + 2 * kRules.retry;
  while (MonotonicClock::now() < due) {  // the loop finds both timers at once
  }
  EXPECT_TRUE(Until([&] { return released; }));
  EXPECT_THAT(one.told, ElementsAre("began"));
  EXPECT_EQ(holder(), "");
}

TEST_F(LeaderTest, GivesBackWhateverItHas) {
  PutHolder("them");
  Candidate& one = Begin("one");
  ASSERT_TRUE(Until([&] { return !one.said.empty(); }));
  bool released = false;
  one.leader->Release([&] { released = true; });
  EXPECT_FALSE(released);
  EXPECT_TRUE(Until([&] { return released; }));
  EXPECT_EQ(holder(), "them");
  released = false;
  one.leader->Release([&] { released = true; });
  EXPECT_TRUE(Until([&] { return released; }));
}

TEST_F(LeaderTest, EndsOnceAnotherHoldsTheLease) {
  Candidate& one = Begin("one");
  ASSERT_TRUE(Until([&] { return !one.told.empty(); }));
  PutHolder("them");
  ASSERT_TRUE(Until([&] { return one.told.size() > 1; }));
  EXPECT_THAT(one.told, ElementsAre("began", "the lease ns/lock has another holder now: 'them'"));
  EXPECT_FALSE(one.leader->MayAct());
  EXPECT_EQ(holder(), "them");
}

TEST_F(LeaderTest, KeepsALeaseThatSomebodyTouchedOrDeleted) {
  Candidate& one = Begin("one");
  ASSERT_TRUE(Until([&] { return !one.told.empty(); }));
  Json touched = lease_;
  touched["metadata"]["labels"]["by"] = "kubectl";
  Put(touched);
  int version = version_;
  EXPECT_TRUE(Until([&] { return version_ > version; }));
  EXPECT_EQ(lease_["metadata"]["labels"]["by"], "kubectl");
  lease_ = nullptr;
  version = version_;
  EXPECT_TRUE(Until([&] { return version_ > version; }));
  EXPECT_EQ(holder(), "one");
  EXPECT_THAT(one.told, ElementsAre("began"));
}

TEST_F(LeaderTest, IsLostWhereItCannotBeRenewed) {
  Candidate& one = Begin(
      "one", {.duration = std::chrono::hours(1), .renew_deadline = std::chrono::seconds(2), .retry = milliseconds(1)});
  ASSERT_TRUE(Until([&] { return !one.told.empty(); }));
  silent_ = true;
  ASSERT_TRUE(Until([&] { return one.told.size() > 1; }));
  EXPECT_THAT(one.told.back(), HasSubstr("the lease ns/lock could not be renewed in time"));
  EXPECT_FALSE(one.leader->MayAct());
  EXPECT_EQ(one.leader->deadline(), std::nullopt);
}

// A process that was stopped for too long may not act when it continues, whichever event it handles first.
TEST_F(LeaderTest, MayNotActWhereItWasStoppedMeanwhile) {
  Candidate& one = Begin(
      "one", {.duration = std::chrono::hours(1), .renew_deadline = std::chrono::seconds(2), .retry = milliseconds(1)});
  ASSERT_TRUE(Until([&] { return !one.told.empty(); }));
  const PipeEnds nothing = *MakePipe();
  at_write_ = [&] {
    // This blocks the whole process.
    ReadyBy(nothing.reading.get(), POLLIN, MonotonicClock::now() + std::chrono::seconds(2));
    EXPECT_FALSE(one.leader->MayAct());
    at_write_ = nullptr;
  };
  ASSERT_TRUE(Until([&] { return one.told.size() > 1; }));
  EXPECT_THAT(one.told, ElementsAre("began", HasSubstr("could not be renewed in time")));
}

TEST_F(LeaderTest, SaysAFailureOnce) {
  broken_ = true;
  Candidate& one = Begin("one");
  ASSERT_TRUE(Until([&] { return server_.asked().size() >= 4; }));
  EXPECT_THAT(one.said, ElementsAre(HasSubstr("500 'InternalError': 'no'; trying again")));
  EXPECT_THAT(one.told, IsEmpty());
  broken_ = false;
  ASSERT_TRUE(Until([&] { return !one.told.empty(); }));
  EXPECT_EQ(one.said.back(), "the lease ns/lock is held");
}

}  // namespace
}  // namespace muster::controller
