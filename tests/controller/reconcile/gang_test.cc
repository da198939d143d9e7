// SPDX-License-Identifier: Apache-2.0
// The PodGroups of TrainJobs in gangs of Kubernetes, from start to end.
#include "controller/reconcile/gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/plan/native_gang.h"
#include "tests/controller/reconcile/decided.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TrainJobPlan GangPlan(int nodes = 1) {
  TrainJobPlan plan = TwoNodes();
  plan.objects.resize(2);
  plan.objects[0].object = {{"kind", "Workload"}, {"metadata", {{"name", "a"}}}};
  plan.objects[1].object = {{"kind", "PodGroup"}, {"metadata", {{"name", "a-0"}}}};
  plan.objects[1].of_start = true;
  for (int i = 1; i < nodes; ++i) plan.jobs.push_back(Planned("other", Step::kOther, 1, false));
  for (PlannedJob& planned : plan.jobs) planned.in_gang = true;
  return plan;
}

ObservedJob InGroup(const std::string& name, const std::string& group, int attempt = 0) {
  ObservedJob job = There(name, attempt);
  job.meta.annotations[kPodGroupAnnotation] = group;
  return job;
}

// The PodGroups of the Jobs that a decision creates, and the names of the PodGroups.
std::vector<std::string> GroupsOf(const TrainJobDecision& decision) {
  std::vector<std::string> groups;
  for (const Action& action : decision.actions) {
    if (action.kind != Action::Kind::kCreateJob && action.name.find("a-0") == std::string::npos) continue;
    if (action.kind == Action::Kind::kDeleteObject || !action.object) continue;
    const Json object = action.object();
    groups.push_back(action.kind == Action::Kind::kCreateJob
                         ? TextField(PartOf(object, "spec", "template", "spec", "schedulingGroup"), "podGroupName")
                         : NameOf(object));
  }
  return groups;
}

TEST(Gang, TheObjectsComeBeforeTheJobs) {
  Observed observed;
  observed.services = {HeadlessService()};
  const TrainJobPlan plan = GangPlan(2);
  const TrainJobDecision decision = Decide(Job(), plan, observed, kNow);
  EXPECT_THAT(Actions(decision), ElementsAre("object a", "object a-0", "create a-node-0", "create a-other-0"));
  EXPECT_THAT(GroupsOf(decision), ElementsAre("a-0", "a-0", "a-0"));
}

TEST(Gang, ANewAttemptHasItsOwn) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {InGroup("a-node-0", "a-0")};
  observed.jobs[0].failed_at = kNow;
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 139), Failed(Pod(observed.jobs[0], 1), 139)};
  const TrainJobPlan plan = GangPlan();
  const TrainJobDecision decision = Decide(Job(), plan, observed, kNow);
  EXPECT_EQ(decision.status.attempt, 1);
  EXPECT_THAT(Actions(decision), ElementsAre("delete object a-0", "delete a-node-0", "delete pod a-node-0-0-x",
                                             "delete pod a-node-0-1-x", "object a", "object a-1", "create a-node-0"));
  EXPECT_EQ(decision.actions[0].object(), Json({{"apiVersion", kGangApi}, {"kind", "PodGroup"}}));
  EXPECT_EQ(TextField(PartOf(decision.actions.back().object(), "spec", "template", "spec", "schedulingGroup"),
                      "podGroupName"),
            "a-1");
}

TEST(Gang, ASuspensionDeletesItAndTheResumeMakesAnother) {
  TrainJob job = Job();
  job.suspend = true;
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {InGroup("a-node-0", "a-0"), InGroup("a-other-0", "a-0")};
  const TrainJobPlan plan = GangPlan(2);
  TrainJobDecision decision = Decide(job, plan, observed, kNow);
  EXPECT_THAT(Actions(decision), ElementsAre("delete object a-0", "suspend a-node-0", "suspend a-other-0"));
  job.status = decision.status;
  job.suspend = false;
  for (ObservedJob& one : observed.jobs) {
    one.suspended = true;
    one.active = 0;
  }
  observed.jobs[1].active = 1;
  const WallTime resumed = kNow + 5 * kSecond;
  const std::string group = PodGroupName("a", 0, resumed);
  decision = Decide(job, plan, observed, resumed);
  EXPECT_THAT(GroupsOf(decision), ElementsAre(group, group));
  EXPECT_TRUE(decision.status_first) << "else the next pass would name another PodGroup";
  // The pods of the other Job have ended later. Its new ones are in the same group.
  job.status = decision.status;
  observed.jobs = {InGroup("a-node-0", group), observed.jobs[1]};
  observed.jobs[1].active = 0;
  decision = Decide(job, plan, observed, resumed + 20 * kSecond);
  EXPECT_THAT(Actions(decision), ElementsAre("delete a-other-0", "object a", "object " + group, "create a-other-0"));
  EXPECT_THAT(GroupsOf(decision), ElementsAre(group, group));
  EXPECT_FALSE(decision.status_first);
}

// Its replacements would be placed one by one, since the scheduler counts pods that are ending.
TEST(Gang, OneThatIsPreemptedAsAWholeStartsAgainInAnother) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {InGroup("a-node-0", "a-0")};
  observed.pods = {Pod(observed.jobs[0], 0), Pod(observed.jobs[0], 1)};
  const TrainJobPlan plan = GangPlan();
  const auto preempt = [](ObservedPod* pod) {
    pod->meta.deleted = kNow + 20 * kSecond;
    pod->disrupted = true;
    pod->disruption = "PreemptionByScheduler";
    pod->disruption_message = "preempting to accommodate a higher priority pod";
  };
  preempt(&observed.pods[0]);
  EXPECT_EQ(Decide(Job(), plan, observed, kNow).status.attempt, 0) << "the other one runs on";
  preempt(&observed.pods[1]);
  observed.pods.push_back(Pod(observed.jobs[0], 0, "new"));  // the Job controller is quick
  observed.pods.back().phase = "Pending";
  observed.pods.back().node.clear();
  observed.pods.back().ran = false;
  const TrainJobDecision decision = Decide(Job(), plan, observed, kNow);
  EXPECT_EQ(decision.status.attempt, 1);
  EXPECT_EQ(decision.status.restarts, 0);
  EXPECT_THAT(Actions(decision), ElementsAre("delete object a-0", "delete a-node-0", "delete pod a-node-0-0-new",
                                             "object a", "object a-1", "create a-node-0"));
  EXPECT_THAT(decision.events.back().message, ::testing::HasSubstr("(not counted): the gang was preempted: pod"));
  TrainJobPlan alone = plan;
  alone.jobs[0].in_gang = false;
  EXPECT_EQ(Decide(Job(), alone, observed, kNow).status.attempt, 0);
}

TEST(Gang, TheEndDeletesItAndRepeatsThatForAWhile) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {InGroup("a-node-0", "a-0"), InGroup("a-other-0", "a-0")};
  for (ObservedJob& job : observed.jobs) {
    job.complete = true;
    job.active = 0;
  }
  const TrainJobPlan plan = GangPlan(2);
  TrainJobDecision decision = Decide(Job(), plan, observed, kNow);
  ASSERT_TRUE(decision.status.Finished());
  EXPECT_THAT(Actions(decision), ElementsAre("delete object a-0", "delete object a"));
  EXPECT_EQ(TextField(decision.actions[1].object(), "kind"), "Workload");
  TrainJob ended = Job();
  ended.status = decision.status;
  EXPECT_THAT(Actions(Decide(ended, plan, observed, kNow + 59 * kSecond)),
              ElementsAre("delete object a-0", "delete object a"));
  EXPECT_THAT(Actions(Decide(ended, plan, observed, kNow + 60 * kSecond)), IsEmpty());
}

TEST(Gang, AJobWithoutOneDeletesNothing) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  TrainJob job = Job();
  job.suspend = true;
  EXPECT_THAT(Actions(Decide(job, TwoNodes(), observed, kNow)), ElementsAre("suspend a-node-0"));
  observed.jobs[0].complete = true;
  EXPECT_THAT(Actions(Decide(Job(), TwoNodes(), observed, kNow)), IsEmpty());
}

// Of the pods of a group the scheduler blames those that do not fit. The others wait for them.
TEST(Gang, TheMessageIsOfAPodThatDoesNotFit) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {InGroup("a-node-0", "a-0")};
  observed.pods = {Pod(observed.jobs[0], 0), Pod(observed.jobs[0], 1)};
  for (ObservedPod& pod : observed.pods) {
    pod.phase = "Pending";
    pod.ran = false;
    pod.waiting_reason = "Unschedulable";
  }
  observed.pods[0].waiting = "Unschedulable: pod group is unschedulable, waiting for minCount pods from a gang";
  TrainJobDecision decision = Decide(Job(), GangPlan(), observed, kNow);
  EXPECT_THAT(decision.status.message, ::testing::HasSubstr("pod a-node-0-0-x: Unschedulable: pod group is"));
  observed.pods[1].waiting = "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu.";
  decision = Decide(Job(), GangPlan(), observed, kNow);
  EXPECT_THAT(decision.status.message, ::testing::HasSubstr("pod a-node-0-1-x: Unschedulable: 0/2 nodes"));
  EXPECT_EQ(decision.status.reason, "Unschedulable");
  EXPECT_EQ(decision.status.state, "Waiting");
}

}  // namespace
}  // namespace muster::controller
