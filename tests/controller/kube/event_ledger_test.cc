// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/event_ledger.h"

#include <gmock/gmock.h>

#include "base/utf8.h"

namespace muster::controller {
namespace {

using std::chrono::seconds;
using testing::MatchesRegex;

const TimePoint kStart = TimePoint(seconds(1000));
const WallTime kWall = WallTime(seconds(1'000'000'000));

class EventLedgerTest : public testing::Test {
 protected:
  std::optional<EventLedger::Key> Note(const std::string& object, const std::string& message, int after = 0) {
    Meta about;
    about.ns = "ns";
    about.name = object;
    about.uid = "u-" + object;
    about.resource_version = "7";
    return ledger_.Note("batch/v1", "Job", about, {true, "Failed", message}, kStart + seconds(after),
                        kWall + seconds(after));
  }
  EventLedger ledger_{"muster-controller", {.burst = 3, .each = seconds(100), .objects = 2}};
};

TEST_F(EventLedgerTest, AnEventSaysWhatAndWhen) {
  const auto key = Note("a", "it failed");
  ASSERT_TRUE(key);
  const auto body = ledger_.BodyOf(*key);
  ASSERT_TRUE(body);
  EXPECT_TRUE(body->create);
  EXPECT_EQ(body->ns, "ns");
  EXPECT_THAT(body->name, MatchesRegex("a\\.[0-9a-f]+"));
  Json json = body->json;
  EXPECT_EQ(json["metadata"], (Json{{"name", body->name}, {"namespace", "ns"}}));
  json.erase("metadata");
  EXPECT_EQ(json, Json::parse(R"({
    "apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "Failed", "message": "it failed", "count": 1,
    "firstTimestamp": "2001-09-09T01:46:40Z", "lastTimestamp": "2001-09-09T01:46:40Z",
    "involvedObject": {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "namespace": "ns", "uid": "u-a", "resourceVersion": "7"},
    "source": {"component": "muster-controller"}, "reportingComponent": "muster-controller", "reportingInstance": ""})"));
}

TEST_F(EventLedgerTest, OfAnObjectThatIsGoneNothingIsKept) {
  const auto key = Note("a", "it failed");
  const auto other = Note("b", "it failed");
  Meta gone;
  gone.ns = "ns";
  gone.name = "a";
  gone.uid = "u-a";
  ledger_.Forget("batch/v1", "CronJob", gone);
  EXPECT_TRUE(ledger_.BodyOf(*key)) << "another kind";
  ledger_.Forget("batch/v1", "Job", gone);
  ledger_.Forget("batch/v1", "Job", gone);
  EXPECT_FALSE(ledger_.BodyOf(*key));
  EXPECT_TRUE(ledger_.BodyOf(*other));
  ledger_.Written(*key, 1);  // the answer to a write comes late
  EXPECT_TRUE(Note("a", "it failed"));
}

TEST_F(EventLedgerTest, ARepetitionRaisesTheCount) {
  const auto key = Note("a", "again");
  const std::string name = ledger_.BodyOf(*key)->name;
  EXPECT_TRUE(ledger_.IsBehind(*key));
  ledger_.Written(*key, 1);
  EXPECT_FALSE(ledger_.IsBehind(*key));
  EXPECT_EQ(Note("a", "again", 5), key);
  EXPECT_TRUE(ledger_.IsBehind(*key));
  auto body = ledger_.BodyOf(*key);
  EXPECT_FALSE(body->create);
  EXPECT_EQ(body->name, name);
  EXPECT_EQ(body->json, Json::parse(R"({"count": 2, "lastTimestamp": "2001-09-09T01:46:45Z"})"));
  ledger_.Vanished(*key);
  body = ledger_.BodyOf(*key);
  EXPECT_TRUE(body->create);
  EXPECT_EQ(body->json["count"], 2);
  EXPECT_EQ(body->json["firstTimestamp"], "2001-09-09T01:46:40Z");
}

TEST_F(EventLedgerTest, EachObjectHasItsShareOfWrites) {
  const struct {
    int after;  // s
    std::string object, message;
    bool writes;
  } rows[] = {
      {0, "a", "1", true}, {0, "a", "2", true},   {0, "a", "1", true},   {0, "a", "1", false},   {0, "a", "3", false},
      {0, "b", "3", true}, {99, "a", "1", false}, {101, "a", "1", true}, {101, "a", "3", false}, {202, "a", "3", true},
  };
  for (const auto& row : rows) EXPECT_EQ(Note(row.object, row.message, row.after).has_value(), row.writes) << row.after;
  // The repetitions that were not written are counted.
  const auto key = Note("a", "1", 400);
  EXPECT_EQ(ledger_.BodyOf(*key)->json["count"], 6);
}

TEST_F(EventLedgerTest, RemembersSoManyObjects) {
  const auto a = Note("a", "1"), b = Note("b", "1");
  Note("a", "1");
  Note("c", "1");
  EXPECT_TRUE(ledger_.BodyOf(*a));
  EXPECT_FALSE(ledger_.BodyOf(*b));
  EXPECT_FALSE(ledger_.IsBehind(*b));
  ledger_.Written(*b, 1);
  ledger_.Vanished(*b);
}

TEST_F(EventLedgerTest, ObjectsOfTheClusterHaveTheirsInDefault) {
  Meta about;
  about.name = "torch";
  const auto key = ledger_.Note("x/v1", "ClusterTrainingRuntime", about, {false, "Used", "m"}, kStart, kWall);
  EXPECT_EQ(ledger_.BodyOf(*key)->ns, "default");
  EXPECT_EQ(ledger_.BodyOf(*key)->json["type"], "Normal");
}

TEST_F(EventLedgerTest, LongTextsAreCut) {
  std::string long_message;
  while (long_message.size() < 3000) long_message += "\u00e9\u20ac";
  const auto key = Note(std::string(253, 'n'), long_message);
  const auto body = ledger_.BodyOf(*key);
  EXPECT_LE(body->name.size(), 253U);
  const std::string message = body->json["message"];
  EXPECT_LE(message.size(), 1024U);
  EXPECT_TRUE(message.ends_with("...") && IsUtf8(message));
}

}  // namespace
}  // namespace muster::controller
