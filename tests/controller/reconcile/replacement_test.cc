// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/replacement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/controller/reconcile/planned.h"

namespace muster::controller {
namespace {

const WallTime kNow = WallTime(std::chrono::seconds(1'800'000'000));

struct Row {
  const char* what;
  std::vector<ObservedPod> pods;
  std::vector<int> replaced;  // indexes
};

ObservedPod Pod(int index, const char* phase, int age = 0) {
  static int number = 0;
  ObservedPod pod;
  pod.meta.name = fmt::format("p{}", ++number);
  pod.meta.uid = pod.meta.name;
  pod.meta.created = kNow - std::chrono::seconds(age);
  pod.index = index;
  pod.phase = phase;
  pod.ran = true;
  return pod;
}

ObservedPod NeverRan(ObservedPod pod) {
  pod.ran = false;
  return pod;
}

ObservedPod Lived(ObservedPod pod, int seconds) {
  pod.ends.emplace_back();
  pod.ends.back().finished = *pod.meta.created + std::chrono::seconds(seconds);
  return pod;
}

ObservedPod Ending(ObservedPod pod, int seconds) {
  pod.meta.deleted = kNow - std::chrono::seconds(seconds);
  return pod;
}

TEST(ReplacementsOf, ReplacesPodsThatFailedOrDoNotEnd) {
  const Row rows[] = {
      {"nothing has ended", {Pod(0, "Running"), Pod(1, "Pending")}, {}},
      {"one has failed", {Pod(0, "Running"), Pod(1, "Failed")}, {1}},
      {"both have failed", {Pod(0, "Failed"), Pod(1, "Failed")}, {0, 1}},
      {"it is there again", {Pod(1, "Failed", 9), Pod(1, "Pending", 3)}, {}},
      {"it has failed again, soon", {Pod(1, "Failed", 99), Lived(Pod(1, "Failed", 30), 29)}, {}},
      {"it has failed again, soon, and the Job controller pauses",
       {Pod(1, "Failed", 99), Lived(Pod(1, "Failed", 61), 1)},
       {1}},
      {"it has failed again, after a while", {Pod(1, "Failed", 999), Lived(Pod(1, "Failed", 99), 60)}, {1}},
      {"it has succeeded", {Pod(1, "Failed", 9), Pod(1, "Succeeded", 3)}, {}},
      {"index 2 has succeeded, and its pod is gone", {Pod(2, "Failed")}, {}},
      {"index 3 is none of the Job's", {Pod(3, "Failed")}, {}},
      {"the node turned it away", {NeverRan(Pod(0, "Failed", 59))}, {}},
      {"the node turned it away, and the Job controller pauses", {NeverRan(Pod(0, "Failed", 60))}, {0}},
      {"the node turned the newest away", {Pod(0, "Failed", 9), NeverRan(Pod(0, "Failed", 3))}, {}},
      {"it was deleted, and ends", {Ending(Pod(0, "Running"), 5)}, {}},
      {"it was deleted, and has ended", {Ending(Pod(0, "Failed"), 5)}, {0}},
      {"it does not end", {Ending(Pod(0, "Running"), 30)}, {0}},
      {"the Job controller waits for one that does not end",
       {Ending(Pod(0, "Running", 9), 30), Pod(0, "Running"), Pod(1, "Failed", 9), Pod(1, "Failed", 3)},
       {1}},
      {"it does not end, and the next one is there", {Ending(Pod(0, "Running", 9), 30), Pod(0, "Pending")}, {}},
      {"it never ran, and does not end", {NeverRan(Ending(Pod(0, "Pending"), 30))}, {0}},
  };
  const PlannedJob planned = Planned("node", Step::kTrainer, 3, true);
  ObservedJob job;
  job.meta.name = "a-node-0";
  job.pods = 3;
  job.completed = {{2, 2}};
  for (const Row& row : rows) {
    Placed placed{&planned, &job, {}, {}};
    for (const ObservedPod& pod : row.pods) placed.pods.push_back(&pod);
    std::vector<int> replaced;
    for (const Replacement& each : ReplacementsOf(placed, LostPods(), kNow).now) replaced.push_back(each.index);
    EXPECT_EQ(replaced, row.replaced) << row.what;
  }
}

// It was deleted while no controller ran, for example.
TEST(ReplacementsOf, AnIndexWithoutAPodGetsOneWhereTheJobControllerPauses) {
  const struct {
    const char* what;
    int failed, active;
    std::vector<int> made;
  } rows[] = {
      {"the Job has no failed pod: the Job controller creates it at once", 0, 1, {}},
      {"the Job controller knows a pod that is not known here yet", 3, 2, {}},
      {"the Job controller pauses", 3, 1, {0}},
  };
  PlannedJob planned = Planned("node", Step::kTrainer, 3, true);
  for (const auto& row : rows) {
    ObservedJob job;
    job.meta.name = "a-node-0";
    job.pods = 3;
    job.completed = {{2, 2}};
    job.succeeded = 1;
    job.failed = row.failed;
    job.active = row.active;
    const ObservedPod there = Pod(1, "Running");
    std::vector<int> made;
    const Placed placed{&planned, &job, {&there}, {}};
    for (const Replacement& each : ReplacementsOf(placed, LostPods(), kNow).now) {
      EXPECT_EQ(each.lost, nullptr);
      made.push_back(each.index);
    }
    EXPECT_EQ(made, row.made) << row.what;
  }
}

TEST(ReplacementsOf, TheNewestOfAnIndexGivesTheName) {
  const PlannedJob planned = Planned("node", Step::kTrainer, 1, true);
  ObservedJob job;
  job.meta.name = "a-node-0";
  const ObservedPod first = Pod(0, "Failed", 900), second = Lived(Pod(0, "Failed", 300), 200);
  auto name_of = [&](std::vector<const ObservedPod*> pods) {
    return ReplacementsOf(Placed{&planned, &job, std::move(pods), {}}, LostPods(), kNow).now.at(0).name;
  };
  EXPECT_EQ(name_of({&first, &second}), name_of({&second, &first}));
  EXPECT_NE(name_of({&first}), name_of({&first, &second}));
}

}  // namespace
}  // namespace muster::controller
