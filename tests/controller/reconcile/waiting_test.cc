// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/waiting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/iso_time.h"
#include "tests/controller/reconcile/decided.h"

namespace muster::controller {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

const WallTime kCreated0 = kNow - 20 * kSecond;

Json ConditionOf(const char* type, const char* status, const char* reason, WallTime since) {
  return {{"type", type},
          {"status", status},
          {"reason", reason},
          {"message", "as Kubernetes says"},
          {"lastTransitionTime", IsoTime(since)}};
}

Json WaitingContainer(const char* name, const char* reason) {
  return {{"name", name}, {"state", {{"waiting", {{"reason", reason}}}}}};
}

ObservedPod ReadPending(Json spec, Json status) {
  status["phase"] = "Pending";
  const auto pod = ReadPod(Json{{"metadata", {{"name", "p"}, {"uid", "u"}, {"creationTimestamp", IsoTime(kCreated0)}}},
                                {"spec", std::move(spec)},
                                {"status", std::move(status)}});
  EXPECT_TRUE(pod.ok()) << pod.status();
  return *pod;
}

ObservedPodEvent MountFails(WallTime last) {
  ObservedPodEvent event;
  event.reason = "FailedMount";
  event.message = "secret \"x\" not found";
  event.last = last;
  return event;
}

TEST(WaitOf, EveryPodThatDoesNotRunHasItsReason) {
  const Json on_node = {{"nodeName", "n1"}};
  const Json placed = ConditionOf("PodScheduled", "True", "", kCreated0 + 2 * kSecond);
  const struct {
    const char* what;
    Json spec, status;
    const char *reason, *message;
  } rows[] = {
      {"nobody has seen it",
       {{"schedulerName", "mine"}},
       Json::object(),
       "",
       "pod p: scheduler mine has not placed it"},
      {"a PodGroup that is not complete",
       {{"schedulingGroup", {{"podGroupName", "g-0"}}}},
       Json::object(),
       "",
       "pod p: scheduler default-scheduler has not placed it; it waits for PodGroup g-0 to exist and to have as many "
       "pods as it needs"},
      {"gates",
       {{"schedulingGates", {{{"name", "example.com/wait"}}, {{"name", "example.com/more"}}}}},
       {{"conditions", {ConditionOf("PodScheduled", "False", "SchedulingGated", kCreated0)}}},
       "SchedulingGated",
       "pod p: its scheduling gates are not removed: example.com/wait, example.com/more"},
      {"a scheduler that fails",
       Json::object(),
       {{"conditions", {ConditionOf("PodScheduled", "False", "SchedulerError", kCreated0)}}},
       "SchedulerError",
       "pod p: SchedulerError: as Kubernetes says"},
      {"a kubelet that is silent", on_node, {{"conditions", {placed}}}, "", "pod p: node n1 has not begun with it"},
      {"no sandbox",
       on_node,
       {{"conditions", {placed, ConditionOf("PodReadyToStartContainers", "False", "", kCreated0 + 2 * kSecond)}},
        {"containerStatuses", {WaitingContainer("node", "ContainerCreating")}}},
       "",
       "pod p: container node has not started on node n1; volumes, network or image are missing"},
      {"an image that comes slowly",
       on_node,
       {{"conditions", {placed, ConditionOf("PodReadyToStartContainers", "True", "", kCreated0 + 3 * kSecond)}},
        {"initContainerStatuses", {WaitingContainer("muster-agent", "PodInitializing")}},
        {"containerStatuses", {WaitingContainer("node", "PodInitializing")}}},
       "",
       "pod p: container muster-agent has not started on node n1; its image may not be there yet"},
      {"an init container works",
       on_node,
       {{"initContainerStatuses", {{{"name", "prepare"}, {"state", {{"running", Json::object()}}}}}},
        {"containerStatuses", {WaitingContainer("node", "PodInitializing")}}},
       "",
       ""},
  };
  for (const auto& row : rows) {
    std::optional<WallTime> again;
    const auto wait = WaitOf(ReadPending(row.spec, row.status), kNow, &again);
    EXPECT_EQ(wait ? wait->message : "", row.message) << row.what;
    EXPECT_EQ(wait ? wait->reason : "", row.reason) << row.what;
    EXPECT_FALSE(again) << row.what;
  }
}

TEST(WaitOf, APodThatHasJustMovedOnIsOnItsWay) {
  const WallTime placed = kNow - 3 * kSecond;
  const ObservedPod pod =
      ReadPending({{"nodeName", "n1"}}, {{"conditions", {ConditionOf("PodScheduled", "True", "", placed)}}});
  std::optional<WallTime> again;
  EXPECT_FALSE(WaitOf(pod, kNow, &again));
  EXPECT_EQ(again, placed + kMovesOn);
  EXPECT_TRUE(WaitOf(pod, placed + kMovesOn, &again));
}

TEST(WaitOf, AnEventSaysMoreUnlessThePodHasMovedOnSince) {
  ObservedPod pod = ReadPending({{"nodeName", "n1"}}, Json::object());
  std::optional<WallTime> again;
  pod.event = MountFails(kCreated0 - kSecond);
  EXPECT_EQ(WaitOf(pod, kNow, &again)->reason, "");
  pod.event = MountFails(kCreated0 + kSecond);
  EXPECT_EQ(WaitOf(pod, kNow, &again)->reason, "FailedMount");
  EXPECT_EQ(WaitOf(pod, kNow, &again)->message,
            "pod p: FailedMount: secret \"x\" not found; once it can be mounted the pod starts");
  pod.meta.deleted = kNow;
  EXPECT_FALSE(WaitOf(pod, kNow, &again));
}

TEST(WaitOf, ATrainJobSaysItAndForgetsIt) {
  TrainJob job = Job();
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.pods = {Pod(observed.jobs[0], 0)};
  observed.pods[0].phase = "Pending";
  observed.pods[0].pending = "node n1 has not begun with it";
  observed.pods[0].moved = kNow - 5 * kSecond;
  TrainJobDecision decision = Decide(job, TwoNodes(), observed, kNow);
  EXPECT_EQ(decision.status.message, "");
  EXPECT_EQ(decision.again, kNow + 5 * kSecond);
  decision = Decide(job, TwoNodes(), observed, kNow + 5 * kSecond);
  EXPECT_EQ(decision.status.message, "pod a-node-0-0-x: node n1 has not begun with it");
  EXPECT_EQ(decision.status.state, "Created") << "nothing is known to be wrong";
  observed.pods[0].event = MountFails(kNow);
  decision = Decide(job, TwoNodes(), observed, kNow + 5 * kSecond);
  EXPECT_EQ(decision.status.state, "Waiting");
  EXPECT_EQ(decision.status.reason, "FailedMount");
  EXPECT_THAT(Reasons(decision), Contains("Waiting"));
  observed.pods[0].phase = "Running";
  observed.pods[0].pending = "";
  job.status = decision.status;
  EXPECT_THAT(Decide(job, TwoNodes(), observed, kNow + 5 * kSecond).status.message, IsEmpty());
}

}  // namespace
}  // namespace muster::controller
