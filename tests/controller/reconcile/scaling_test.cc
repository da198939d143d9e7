// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/train_job_decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "controller/plan/elastic.h"
#include "controller/reconcile/run_success.h"
#include "tests/controller/reconcile/decided.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// An elastic job whose Job has `from` pods and whose plan has `to`.
struct Scaled {
  TrainJobPlan plan;
  Observed observed;
};
Scaled ScaledJob(int from, int to) {
  Scaled scaled;
  scaled.plan.subdomain = "a";
  scaled.plan.jobs = {Planned("node", Step::kTrainer, to, true)};
  scaled.plan.jobs[0].scales = true;
  scaled.plan.objects.resize(1);
  scaled.plan.objects[0].object = {{"metadata", {{"name", "a-group"}}}};
  scaled.observed.services = {HeadlessService()};
  scaled.observed.jobs = {There("a-node-0", 0, from)};
  for (int index = 0; index < from; ++index) {
    ObservedPod pod = Pod(scaled.observed.jobs[0], index);
    pod.meta.annotations[kNodesAnnotation] = fmt::format("{}", from);
    scaled.observed.pods.push_back(pod);
  }
  return scaled;
}

TEST(Scaling, MorePodsAreCreatedAndTheOthersTold) {
  const Scaled scaled = ScaledJob(2, 4);
  const TrainJobDecision decision = Decide(Job(), scaled.plan, scaled.observed, kNow);
  EXPECT_THAT(Actions(decision),
              ElementsAre("object a-group", "scale a-node-0", "tell a-node-0-0-x", "tell a-node-0-1-x"));
  EXPECT_EQ(decision.actions[1].pods, 4);
  EXPECT_EQ(decision.actions[2].pods, 4);
  EXPECT_THAT(Reasons(decision), ::testing::Contains("Scaled"));
  EXPECT_EQ(decision.status.nodes, 4);
  EXPECT_EQ(decision.status.selector, "jobset.sigs.k8s.io/jobset-name=a,jobset.sigs.k8s.io/replicatedjob-name=node");
}

TEST(Scaling, APodThatComesWithTheOldNumberIsToldTheNewOne) {
  Scaled scaled = ScaledJob(2, 2);
  scaled.observed.pods[1].meta.annotations[kNodesAnnotation] = "4";
  EXPECT_THAT(Actions(Decide(Job(), scaled.plan, scaled.observed, kNow)), ElementsAre("tell a-node-0-1-x"));
}

TEST(Scaling, PodsBeyondTheNumberAreNoFailure) {
  Scaled scaled = ScaledJob(3, 2);
  scaled.observed.pods[2] = Failed(scaled.observed.pods[2], 3);
  const TrainJobDecision decision = Decide(Job(), scaled.plan, scaled.observed, kNow);
  EXPECT_THAT(Actions(decision),
              ElementsAre("object a-group", "scale a-node-0", "tell a-node-0-0-x", "tell a-node-0-1-x"));
  EXPECT_TRUE(decision.status.failures.empty());
  EXPECT_EQ(decision.status.restarts, 0);
}

// Node 0 has succeeded in the run of all nodes. Node 1 was cut off, and waits for it.
TEST(Scaling, APodThatOutlivesItsRunIsToldThatNoNodeIsLeft) {
  Scaled scaled = ScaledJob(2, 2);
  scaled.plan.jobs[0].agent = true;
  scaled.observed.jobs[0].meta.owners = {{"trainer.kubeflow.org/v1alpha1", "TrainJob", "a", Job().meta.uid, true}};
  scaled.observed.pods[0] = SucceededIn(Job().meta.uid, scaled.observed.pods[0]);
  scaled.observed.pods[1].meta.created = kNow - 60 * kSecond;
  const WallTime over = *scaled.observed.pods[0].ends[0].finished + kRunEndsWithin;
  TrainJobDecision decision = Decide(Job(), scaled.plan, scaled.observed, over - kSecond);
  EXPECT_THAT(Actions(decision), IsEmpty()) << "it may be about to end";
  EXPECT_EQ(decision.again, over);
  decision = Decide(Job(), scaled.plan, scaled.observed, over);
  EXPECT_THAT(Actions(decision), ElementsAre("tell a-node-0-1-x"));
  EXPECT_EQ(decision.actions[0].pods, 0);
  scaled.observed.pods[1].meta.annotations[kNodesAnnotation] = "0";
  EXPECT_THAT(Actions(Decide(Job(), scaled.plan, scaled.observed, over)), IsEmpty());
}

// The pod of node 0 was deleted before its word was read. Its Job says that the index has succeeded.
TEST(Scaling, APodOfARunWhoseSuccessNobodySawIsToldThatNoNodeIsLeft) {
  Scaled scaled = ScaledJob(2, 2);
  scaled.plan.jobs[0].agent = true;
  scaled.observed.jobs[0].meta.owners = {{"trainer.kubeflow.org/v1alpha1", "TrainJob", "a", Job().meta.uid, true}};
  scaled.observed.pods.erase(scaled.observed.pods.begin());
  EXPECT_THAT(Actions(Decide(Job(), scaled.plan, scaled.observed, kNow)), IsEmpty()) << "it may still come";
  scaled.observed.jobs[0].completed = {{0, 0}};
  const TrainJobDecision decision = Decide(Job(), scaled.plan, scaled.observed, kNow);
  EXPECT_THAT(Actions(decision), ElementsAre("tell a-node-0-1-x"));
  EXPECT_EQ(decision.actions[0].pods, 0);
}

TEST(Scaling, AStepThatIsNotElasticDoesNotScale) {
  Scaled scaled = ScaledJob(2, 4);
  scaled.plan.jobs[0].scales = false;
  const TrainJobDecision decision = Decide(Job(), scaled.plan, scaled.observed, kNow);
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.status.selector, "");
}

}  // namespace
}  // namespace muster::controller
