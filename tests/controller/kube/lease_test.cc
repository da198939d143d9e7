// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/lease.h"

#include <gmock/gmock.h>

namespace muster::controller {
namespace {

using std::chrono::seconds;

const TimePoint kStart = TimePoint(seconds(1000));
const WallTime kWall = WallTime(seconds(1'000'000'000));

Json Lease(const Json& spec) {
  return {{"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata", {{"name", "n"}, {"namespace", "ns"}, {"resourceVersion", "5"}}},
          {"spec", spec}};
}
Json HeldBy(const std::string& holder, const std::string& renewed = "t1", int duration = 15) {
  return Lease({{"holderIdentity", holder},
                {"renewTime", renewed},
                {"leaseDurationSeconds", duration},
                {"leaseTransitions", 3},
                {"strategy", "kept"}});
}

TEST(NextLeaseStep, TakesWhatNobodyKeeps) {
  const struct {
    std::string_view what;
    Json lease;
    int age;  // s since this state was first seen
    LeaseStep step;
  } rows[] = {
      {"none", nullptr, 0, LeaseStep::kAcquire},
      {"no spec", Json{{"metadata", Json::object()}}, 0, LeaseStep::kAcquire},
      {"a spec of no kind", Lease(7), 0, LeaseStep::kAcquire},
      {"released", Lease({{"leaseDurationSeconds", 1}}), 0, LeaseStep::kAcquire},
      {"an empty holder", HeldBy(""), 0, LeaseStep::kAcquire},
      {"ours", HeldBy("us"), 0, LeaseStep::kRenew},
      {"ours, and old", HeldBy("us"), 1000, LeaseStep::kRenew},
      {"theirs", HeldBy("them"), 0, LeaseStep::kWait},
      {"theirs, and nearly over", HeldBy("them"), 14, LeaseStep::kWait},
      {"theirs, and over", HeldBy("them"), 15, LeaseStep::kAcquire},
      {"its holder's own duration counts", HeldBy("them", "t", 60), 59, LeaseStep::kWait},
      {"and when it is over", HeldBy("them", "t", 60), 60, LeaseStep::kAcquire},
      {"a duration of nothing is ours", HeldBy("them", "t", 0), 14, LeaseStep::kWait},
      {"also one below", HeldBy("them", "t", -7), 14, LeaseStep::kWait},
  };
  for (const auto& row : rows) {
    SeenLease seen;
    See(row.lease, kStart, &seen);
    EXPECT_EQ(NextLeaseStep(seen, "us", {}, kStart + seconds(row.age)), row.step) << row.what;
  }
}

// Only the own clock counts. renewTime is compared as a text, so one in the far past or future makes no difference.
TEST(NextLeaseStep, CountsFromTheLastChange) {
  SeenLease seen;
  See(HeldBy("them", "2001-01-01T00:00:00.000000Z"), kStart, &seen);
  See(HeldBy("them", "2001-01-01T00:00:00.000000Z"), kStart + seconds(14), &seen);
  EXPECT_EQ(NextLeaseStep(seen, "us", {}, kStart + seconds(15)), LeaseStep::kAcquire);
  See(HeldBy("them", "2001-01-01T00:00:02.000000Z"), kStart + seconds(14), &seen);
  EXPECT_EQ(NextLeaseStep(seen, "us", {}, kStart + seconds(28)), LeaseStep::kWait);
  EXPECT_EQ(NextLeaseStep(seen, "us", {}, kStart + seconds(29)), LeaseStep::kAcquire);
  See(HeldBy("others", "2001-01-01T00:00:02.000000Z"), kStart + seconds(29), &seen);
  EXPECT_EQ(NextLeaseStep(seen, "us", {}, kStart + seconds(30)), LeaseStep::kWait);
  See(nullptr, kStart + seconds(30), &seen);
  EXPECT_EQ(NextLeaseStep(seen, "us", {}, kStart + seconds(30)), LeaseStep::kAcquire);
}

TEST(HeldLease, IsNewWhereThereIsNone) {
  EXPECT_EQ(HeldLease(nullptr, "ns", "n", "us", {}, kWall), Json::parse(R"({
    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "n", "namespace": "ns"},
    "spec": {"holderIdentity": "us", "leaseDurationSeconds": 15, "leaseTransitions": 0,
             "acquireTime": "2001-09-09T01:46:40.000000Z", "renewTime": "2001-09-09T01:46:40.000000Z"}})"));
}

TEST(HeldLease, ChangesItsHolder) {
  const Json held = HeldLease(HeldBy("them"), "ns", "n", "us", {}, kWall);
  EXPECT_EQ(held["metadata"]["resourceVersion"], "5");
  EXPECT_EQ(held["spec"], Json::parse(R"({
    "holderIdentity": "us", "leaseDurationSeconds": 15, "leaseTransitions": 4, "strategy": "kept",
    "acquireTime": "2001-09-09T01:46:40.000000Z", "renewTime": "2001-09-09T01:46:40.000000Z"})"));
}

TEST(HeldLease, IsRenewed) {
  const Json first = HeldLease(nullptr, "ns", "n", "us", {}, kWall);
  const Json again = HeldLease(first, "ns", "n", "us", {}, kWall + seconds(2));
  EXPECT_EQ(again["spec"]["acquireTime"], "2001-09-09T01:46:40.000000Z");
  EXPECT_EQ(again["spec"]["renewTime"], "2001-09-09T01:46:42.000000Z");
  EXPECT_EQ(again["spec"]["leaseTransitions"], 0);
}

TEST(ReleasedLease, HasNoHolderAndCanBeTaken) {
  const Json released = ReleasedLease(HeldBy("us"), kWall);
  EXPECT_EQ(released["spec"], Json::parse(R"({
    "leaseDurationSeconds": 1, "leaseTransitions": 3, "strategy": "kept",
    "acquireTime": "2001-09-09T01:46:40.000000Z", "renewTime": "2001-09-09T01:46:40.000000Z"})"));
  SeenLease seen;
  See(released, kStart, &seen);
  EXPECT_EQ(NextLeaseStep(seen, "them", {}, kStart), LeaseStep::kAcquire);
}

TEST(PauseAfterFailure, IsNoneForALeaderThatGotNoAnswer) {
  const LeaseRules rules;
  EXPECT_EQ(PauseAfterFailure(true, true, rules), Duration::zero());
  EXPECT_EQ(PauseAfterFailure(true, false, rules), rules.retry);
  EXPECT_EQ(PauseAfterFailure(false, true, rules), rules.retry);
  EXPECT_EQ(PauseAfterFailure(false, false, rules), rules.retry);
}

}  // namespace
}  // namespace muster::controller
