// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/key_queue.h"

#include <gmock/gmock.h>

#include "controller/kube/client/token_bucket.h"

namespace muster::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const TimePoint kStart = TimePoint(seconds(1000));

// Takes all keys that can be worked on now: "a b".
std::string TakeAll(KeyQueue& queue) {
  std::string taken;
  while (auto key = queue.Take()) taken += (taken.empty() ? "" : " ") + *key;
  return taken;
}

TEST(BackOff, DoublesUpToItsLimit) {
  const BackOffRules rules{milliseconds(5), milliseconds(100)};
  const struct {
    int failures, milliseconds;
  } rows[] = {{1, 5}, {2, 10}, {3, 20}, {4, 40}, {5, 80}, {6, 100}, {7, 100}, {1'000'000, 100}, {0, 5}};
  for (const auto& row : rows) EXPECT_EQ(BackOff(rules, row.failures), milliseconds(row.milliseconds)) << row.failures;
  EXPECT_EQ(BackOff({seconds(2), seconds(1)}, 1), seconds(1));
  EXPECT_EQ(Spread(seconds(2), 0), seconds(1));
  EXPECT_EQ(Spread(seconds(2), 0.5), milliseconds(1500));
}

TEST(KeyQueue, CountsHowOftenAKeyBecameReady) {
  KeyQueue queue(1, {});
  for (const char* key : {"a", "a", "b"}) queue.Add(key);
  EXPECT_EQ(queue.added(), 2U) << "a waits already";
  EXPECT_EQ(queue.Take(), "a");
  queue.Add("a");
  EXPECT_EQ(queue.added(), 2U) << "a waits for the end of its work";
  queue.Done("a", false, kStart);
  EXPECT_EQ(queue.added(), 3U);
  queue.AddAt("c", kStart);
  EXPECT_EQ(queue.added(), 3U);
  queue.Advance(kStart);
  EXPECT_EQ(queue.added(), 4U);
  EXPECT_EQ(queue.ready(), 3U);
}

TEST(KeyQueue, AKeyRestsWhoeverAddsIt) {
  KeyQueue queue(1, {});
  queue.Add("long");
  EXPECT_EQ(TakeAll(queue), "long");
  queue.Add("long");
  queue.Done("long", false, kStart, milliseconds(100));
  queue.Add("long");
  queue.AddAt("long", kStart + milliseconds(10));
  queue.Add("short");
  EXPECT_EQ(TakeAll(queue), "short");
  queue.Done("short", false, kStart);
  queue.Advance(kStart + milliseconds(99));
  EXPECT_EQ(TakeAll(queue), "");
  EXPECT_EQ(queue.next(), kStart + milliseconds(100));
  queue.Advance(kStart + milliseconds(100));
  EXPECT_EQ(TakeAll(queue), "long");
  queue.Done("long", false, kStart + milliseconds(101), milliseconds(100));
  queue.Forget("long");  // a later object of that name does not inherit the rest
  queue.Add("long");
  EXPECT_EQ(TakeAll(queue), "long");
}

TEST(TokenBucket, GivesTheBurstAndThenTheRate) {
  TokenBucket bucket(10, 2);
  EXPECT_EQ(bucket.Take(kStart), Duration::zero());
  EXPECT_EQ(bucket.Take(kStart), Duration::zero());
  EXPECT_EQ(bucket.Take(kStart), milliseconds(100));
  EXPECT_EQ(bucket.Take(kStart), milliseconds(200));
  EXPECT_EQ(bucket.Take(kStart + milliseconds(200)), milliseconds(100));
  EXPECT_EQ(bucket.Take(kStart + seconds(100)), Duration::zero());
  EXPECT_EQ(bucket.Take(kStart + seconds(100)), Duration::zero());
  EXPECT_EQ(bucket.Take(kStart + seconds(100)), milliseconds(100));

  TokenBucket slow(1.0 / 300, 1);
  EXPECT_TRUE(slow.TryTake(kStart));
  EXPECT_FALSE(slow.TryTake(kStart + seconds(200)));
  EXPECT_TRUE(slow.TryTake(kStart + seconds(301)));
}

TEST(KeyQueue, GivesKeysInTheirOrderAndOnce) {
  KeyQueue queue(10, {});
  for (const char* key : {"b", "a", "b", "c", "a"}) queue.Add(key);
  EXPECT_EQ(queue.ready(), 3U);
  EXPECT_EQ(TakeAll(queue), "b a c");
  EXPECT_EQ(queue.working(), 3U);
}

TEST(KeyQueue, UrgentKeysGoFirst) {
  KeyQueue queue(10, {milliseconds(5), seconds(1)});
  queue.Add("a");
  queue.Add("b", true);
  queue.Add("c", true);
  queue.Add("d", true);
  queue.Forget("c");
  queue.Add("a", true);  // keeps its place
  EXPECT_EQ(queue.ready(), 3U);
  EXPECT_EQ(TakeAll(queue), "b d a");
}

TEST(KeyQueue, WorksOnAKeyOnceAtATime) {
  KeyQueue queue(10, {});
  queue.Add("a");
  EXPECT_EQ(TakeAll(queue), "a");
  queue.Add("a");
  queue.Add("a");
  EXPECT_EQ(TakeAll(queue), "");
  queue.Done("a", false, kStart);
  EXPECT_EQ(TakeAll(queue), "a");
  queue.Done("a", false, kStart);
  EXPECT_EQ(TakeAll(queue), "");
  queue.Done("a", false, kStart);  // no work is under way
  EXPECT_EQ(queue.working(), 0U);
}

TEST(KeyQueue, HasSoManyWorkers) {
  KeyQueue queue(2, {});
  for (const char* key : {"n/a", "m/b", "o/c"}) queue.Add(key);
  EXPECT_EQ(TakeAll(queue), "n/a m/b");
  queue.Done("m/b", false, kStart);
  EXPECT_EQ(TakeAll(queue), "o/c");
}

TEST(KeyQueue, ServesNamespacesInTurn) {
  KeyQueue queue(100, {});
  for (const char* key : {"n/1", "n/2", "n/3", "m/1", "o/1", "m/2", "cluster"}) queue.Add(key);
  queue.Forget("n/2");
  queue.Add("o/new", true);
  EXPECT_EQ(TakeAll(queue), "o/new n/1 m/1 o/1 cluster n/3 m/2");
}

TEST(KeyQueue, OneNamespaceLeavesWorkersFree) {
  struct Row {
    int workers;
    std::vector<std::string> keys;
    std::string taken;  // at once
  };
  for (const Row& row : std::vector<Row>{
           {1, {"n/1", "n/2"}, "n/1"},
           {2, {"n/1", "n/2"}, "n/1"},
           {8, {"n/1", "n/2", "n/3", "n/4", "n/5", "n/6"}, "n/1 n/2 n/3 n/4"},
           {8, {"n/1", "n/2", "n/3", "n/4", "n/5", "m/1", "m/2", "m/3"}, "n/1 m/1 n/2 m/2 n/3 m/3"},
       }) {
    KeyQueue queue(row.workers, {});
    for (const std::string& key : row.keys) queue.Add(key);
    EXPECT_EQ(TakeAll(queue), row.taken);
  }
}

TEST(KeyQueue, AnotherTenantsJobNeverWaitsForAThousand) {
  KeyQueue queue(8, {});
  for (int job = 0; job < 1000; ++job) queue.Add("large/" + std::to_string(job), true);
  EXPECT_EQ(TakeAll(queue), "large/0 large/1 large/2 large/3");
  queue.Add("small/1");  // not even urgent
  EXPECT_EQ(TakeAll(queue), "small/1");
  queue.Done("large/0", false, kStart);
  EXPECT_EQ(TakeAll(queue), "large/4");
  queue.Done("small/1", false, kStart);
  EXPECT_EQ(TakeAll(queue), "");
}

TEST(KeyQueue, TheEarliestTimeCounts) {
  KeyQueue queue(10, {});
  queue.AddAt("a", kStart + seconds(5));
  queue.AddAt("a", kStart + seconds(9));
  queue.AddAt("b", kStart + seconds(7));
  queue.AddAt("b", kStart + seconds(3));
  EXPECT_EQ(queue.next(), kStart + seconds(3));
  queue.Advance(kStart + seconds(2));
  EXPECT_EQ(TakeAll(queue), "");
  queue.Advance(kStart + seconds(3));
  EXPECT_EQ(TakeAll(queue), "b");
  EXPECT_EQ(queue.next(), kStart + seconds(5));
  queue.Advance(kStart + seconds(100));
  EXPECT_EQ(TakeAll(queue), "a");
  EXPECT_EQ(queue.next(), std::nullopt);
}

TEST(KeyQueue, ForgetsWhatIsGone) {
  KeyQueue queue(10, {seconds(1), seconds(8)});
  queue.Add("ready");
  queue.AddAt("later", kStart);
  queue.Forget("ready");
  queue.Forget("later");
  queue.Forget("unknown");
  queue.Advance(kStart + seconds(1));
  EXPECT_EQ(TakeAll(queue), "");

  queue.Add("working");
  EXPECT_EQ(TakeAll(queue), "working");
  queue.Add("working");
  queue.Forget("working");
  queue.Done("working", true, kStart);
  EXPECT_EQ(TakeAll(queue), "");
  EXPECT_EQ(queue.next(), std::nullopt);

  queue.Add("again");
  EXPECT_EQ(TakeAll(queue), "again");
  queue.Forget("again");
  queue.Add("again");  // the object was created again
  queue.Done("again", false, kStart);
  EXPECT_EQ(TakeAll(queue), "again");
}

TEST(KeyQueue, ASuccessEndsTheBackOff) {
  KeyQueue queue(10, {seconds(1), seconds(60)});
  const struct {
    bool again;
    int pause;  // s; 0: none
  } rows[] = {{true, 1}, {true, 2}, {true, 4}, {false, 0}, {true, 1}};
  TimePoint now = kStart;
  for (const auto& row : rows) {
    queue.Add("a");
    ASSERT_EQ(TakeAll(queue), "a");
    queue.Done("a", row.again, now);
    if (row.pause == 0) {
      EXPECT_EQ(queue.next(), std::nullopt);
      continue;
    }
    ASSERT_EQ(queue.next(), now + seconds(row.pause));
    now = *queue.next();
    queue.Advance(now);
    ASSERT_EQ(queue.ready(), 1U);
  }
}

}  // namespace
}  // namespace muster::controller
