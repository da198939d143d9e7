#include "controller/reconcile/decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "controller/plan/elastic.h"
#include "controller/reconcile/conditions.h"
#include "controller/reconcile/replacement.h"
#include "tests/controller/reconcile/planned.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const WallTime kNow = WallTime(std::chrono::seconds(1'800'000'000));
constexpr auto kSecond = std::chrono::seconds(1);

TrainJob Job() {
  TrainJob job;
  job.meta.ns = "default";
  job.meta.name = "a";
  job.meta.uid = "uid-a";
  job.meta.generation = 1;
  job.meta.created = kNow - 10 * kSecond;
  job.runtime.name = "torch";
  return job;
}

// A trainer of two pods under the agent, with a budget of three.
Plan TwoNodes(bool agent = true, int budget = 3) {
  Plan plan;
  plan.subdomain = "a";
  plan.service = {{"metadata", {{"name", "a"}}}};
  plan.max_restarts = budget;
  plan.jobs = {Planned("node", Step::kTrainer, 2, agent)};
  return plan;
}

Plan WithData() {
  Plan plan = TwoNodes();
  plan.jobs.insert(plan.jobs.begin(), Planned("dataset-initializer", Step::kDatasetInitializer, 1, false));
  plan.jobs[1].after = {{"dataset-initializer", Dependency::Until::kComplete}};
  return plan;
}

ObservedJob There(const std::string& name, int attempt = 0, int pods = 2) {
  ObservedJob job;
  job.meta.name = name;
  job.meta.uid = fmt::format("uid-{}-{}", name, attempt);
  job.meta.annotations["muster.dev/restarts-left"] = "3";
  job.attempt = attempt;
  job.pods = pods;
  job.active = pods;
  return job;
}

ObservedPod Pod(const ObservedJob& of, int index, const std::string& suffix = "x") {
  ObservedPod pod;
  pod.meta.name = fmt::format("{}-{}-{}", of.meta.name, index, suffix);
  pod.meta.uid = fmt::format("uid-{}", pod.meta.name);
  pod.meta.owners = {{"batch/v1", "Job", of.meta.name, of.meta.uid, true}};
  pod.job = of.meta.name;
  pod.index = index;
  pod.attempt = of.attempt;
  pod.node = "n1";
  pod.phase = "Running";
  pod.ran = true;
  return pod;
}

ObservedPod Failed(ObservedPod pod, int code, std::optional<TerminationMessage> message = {}) {
  pod.phase = "Failed";
  ObservedEnd end;
  end.container = "node";
  end.exit_code = code;
  end.reason = "Error";
  end.finished = kNow - kSecond;
  end.message = std::move(message);
  pod.ends = {end};
  return pod;
}

// What the agent writes of a worker that ended with `code`.
TerminationMessage Told(int code, ExitClass exit_class, int restarts, const std::string& why) {
  TerminationMessage message;
  message.exit_code = code;
  message.exit_class = exit_class;
  message.reason = why;
  message.restart_count = restarts;
  message.max_restarts = 3;
  message.cause = WorkerFailure();
  message.cause->rank = 3;
  message.cause->exit_code = code;
  message.cause->message = why;
  return message;
}

// What a node of an MPI job writes when the launcher has told it that the job has ended.
TerminationMessage ToldBy(int code, ExitClass exit_class, const std::string& why) {
  TerminationMessage message;
  message.exit_code = code;
  message.exit_class = exit_class;
  message.reason = kVerdictReason + why;
  return message;
}

std::vector<std::string> Actions(const Decision& decision) {
  static const char* const kNames[] = {"service", "object",  "create",         "create pod", "scale",
                                       "tell",    "suspend", "delete",         "delete pod", "",
                                       "",        "",        "delete trainjob"};
  std::vector<std::string> actions;
  for (const Action& action : decision.actions) {
    actions.push_back(fmt::format("{} {}", kNames[static_cast<int>(action.kind)], action.name));
  }
  return actions;
}

std::vector<std::string> Reasons(const Decision& decision) {
  std::vector<std::string> reasons;
  for (const EventText& event : decision.events) reasons.push_back(event.reason);
  return reasons;
}

TEST(Decide, TheFirstPassMakesTheServiceAndWhatWaitsForNothing) {
  const Decision decision = Decide(Job(), WithData(), {}, kNow);
  EXPECT_THAT(Actions(decision), ElementsAre("service a", "create a-dataset-initializer-0"));
  EXPECT_EQ(decision.status.state, "Initializing");
  EXPECT_EQ(decision.status.nodes, 2);
  EXPECT_EQ(decision.status.start_time, kNow);
  EXPECT_THAT(decision.status.conditions, IsEmpty());
  ASSERT_EQ(decision.status.jobs.size(), 2U);
  EXPECT_EQ(decision.status.jobs[1].name, "node");
}

TEST(Decide, TheFirstStatusWaitsForTheFirstPods) {
  Decision decision = Decide(Job(), TwoNodes(), {}, kNow);
  EXPECT_TRUE(decision.status_may_wait);
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  observed.jobs[0].active = 0;
  observed.jobs[0].meta.created = kNow;
  decision = Decide(Job(), TwoNodes(), observed, kNow);
  EXPECT_TRUE(decision.status_may_wait);
  EXPECT_EQ(decision.again, kNow + 2 * kSecond);
  EXPECT_FALSE(Decide(Job(), TwoNodes(), observed, kNow + 2 * kSecond).status_may_wait);
  TrainJob job = Job();
  job.suspend = true;
  EXPECT_FALSE(Decide(job, TwoNodes(), {}, kNow).status_may_wait);
  observed.jobs[0].active = 2;
  decision = Decide(Job(), TwoNodes(), observed, kNow);
  EXPECT_FALSE(decision.status_may_wait);
  EXPECT_EQ(decision.status.state, "Created");
}

TEST(Decide, TheTrainerFollowsTheInitializer) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-dataset-initializer-0", 0, 1)};
  EXPECT_THAT(Actions(Decide(Job(), WithData(), observed, kNow)), IsEmpty());
  observed.jobs[0].complete = true;
  const Decision decision = Decide(Job(), WithData(), observed, kNow);
  EXPECT_THAT(Actions(decision), ElementsAre("create a-node-0"));
  EXPECT_EQ(decision.actions[0].object["metadata"]["annotations"]["muster.dev/restarts-left"], "3");
  EXPECT_EQ(decision.status.state, "Created");
}

TEST(Decide, NothingIsDoneTwice) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  TrainJob job = Job();
  Decision decision = Decide(job, TwoNodes(), observed, kNow);
  EXPECT_THAT(Actions(decision), IsEmpty());
  job.status = decision.status;
  decision = Decide(job, TwoNodes(), observed, kNow + kSecond);
  EXPECT_EQ(decision.status, job.status);
  EXPECT_THAT(decision.events, IsEmpty());
}

TEST(Decide, RunningThenComplete) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  observed.jobs[0].ready = 2;
  TrainJob job = Job();
  Decision decision = Decide(job, TwoNodes(), observed, kNow);
  EXPECT_EQ(decision.status.state, "Running");
  EXPECT_EQ(decision.status.ready_nodes, 2);
  EXPECT_THAT(Reasons(decision), ElementsAre("Running"));
  job.status = decision.status;
  observed.jobs[0] = There("a-node-0");
  observed.jobs[0].complete = true;
  observed.jobs[0].succeeded = 2;
  decision = Decide(job, TwoNodes(), observed, kNow + kSecond);
  const Condition* complete = decision.status.Find("Complete");
  ASSERT_NE(complete, nullptr);
  EXPECT_EQ(complete->reason, "AllJobsCompleted");
  EXPECT_EQ(complete->message, "jobset completed successfully");
  EXPECT_EQ(decision.status.state, "Complete");
  EXPECT_EQ(decision.status.completion_time, kNow + kSecond);
  EXPECT_THAT(Actions(decision), IsEmpty());
}

// The watch of Jobs brought the end first.
TEST(Decide, WhatPodsSaidAtTheirEndIsAwaited) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  observed.pods = {Pod(observed.jobs[0], 0), Pod(observed.jobs[0], 1)};
  observed.jobs[0].complete = true;
  observed.jobs[0].complete_at = kNow - kSecond;
  Decision decision = Decide(Job(), TwoNodes(), observed, kNow);
  EXPECT_THAT(decision.status.conditions, IsEmpty());
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.again, kNow + 59 * kSecond);
  EXPECT_TRUE(Decide(Job(), TwoNodes(), observed, kNow + 59 * kSecond).status.Finished()) << "not for ever";

  for (ObservedPod& pod : observed.pods) {
    pod.phase = "Succeeded";
    ObservedEnd end;
    end.container = "node";
    end.message = Told(0, ExitClass::kSuccess, 1, "all workers succeeded");
    pod.ends = {end};
  }
  decision = Decide(Job(), TwoNodes(), observed, kNow);
  EXPECT_TRUE(decision.status.Finished());
  EXPECT_EQ(decision.status.restarts, 1);
}

TEST(Decide, TheCauseOfAFailedJobIsAwaited) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  observed.pods = {Pod(observed.jobs[0], 0), Pod(observed.jobs[0], 1)};
  observed.jobs[0].failed_at = kNow - kSecond;
  observed.jobs[0].failed_reason = "PodFailurePolicy";
  EXPECT_FALSE(Decide(Job(), TwoNodes(), observed, kNow).status.Finished());
  observed.pods[1] = Failed(observed.pods[1], 3, Told(3, ExitClass::kFatal, 0, "ValueError: no such data"));
  const Decision decision = Decide(Job(), TwoNodes(), observed, kNow);
  ASSERT_TRUE(decision.status.Finished());
  EXPECT_THAT(decision.status.Find("Failed")->message, HasSubstr("ValueError: no such data"));
}

TEST(Decide, TheLauncherSaysWhyItsNodesEnded) {
  Plan plan = TwoNodes();
  plan.jobs[0].step = Step::kOther;  // of an MPI job
  plan.jobs.push_back(Planned("launcher", Step::kTrainer, 1, true));
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0"), There("a-launcher-0", 0, 1)};
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 7, ToldBy(7, ExitClass::kFatal, "mpirun ended with 7")),
                   Pod(observed.jobs[0], 1), Pod(observed.jobs[1], 0)};
  observed.jobs[0].failed_at = kNow - kSecond;
  observed.jobs[0].failed_reason = "PodFailurePolicy";
  Decision decision = Decide(Job(), plan, observed, kNow);
  EXPECT_FALSE(decision.status.Finished());
  EXPECT_THAT(decision.status.failures, IsEmpty());
  EXPECT_EQ(decision.again, kNow + 59 * kSecond);
  EXPECT_THAT(Decide(Job(), plan, observed, kNow + 59 * kSecond).status.Find("Failed")->message,
              HasSubstr("Job a-node-0: PodFailurePolicy"));

  observed.pods[2] = Failed(observed.pods[2], 7, Told(7, ExitClass::kFatal, 0, "MPI_ABORT was invoked"));
  decision = Decide(Job(), plan, observed, kNow);
  EXPECT_THAT(decision.status.Find("Failed")->message,
              HasSubstr("(first failed job: a-launcher-0): rank 3 on pod a-launcher-0-0-x"));
  ASSERT_EQ(decision.status.failures.size(), 1U);
}

TEST(Decide, AFatalCodeEndsTheJobAtOnce) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  observed.pods = {Pod(observed.jobs[0], 0),
                   Failed(Pod(observed.jobs[0], 1), 3, Told(3, ExitClass::kFatal, 0, "ValueError: no such data"))};
  const Decision decision = Decide(Job(), TwoNodes(), observed, kNow);
  const Condition* failed = decision.status.Find("Failed");
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->reason, "FailedJobs");
  EXPECT_THAT(failed->message,
              HasSubstr("jobset failed due to one or more job failures (first failed job: a-node-0): "));
  EXPECT_THAT(failed->message,
              HasSubstr("rank 3 on pod a-node-0-1-x (node n1) ended with exit code 3: ValueError: no such data"));
  EXPECT_TRUE(decision.status_first);
  EXPECT_THAT(Actions(decision), ElementsAre("suspend a-node-0")) << "its failed pod stays";
  EXPECT_THAT(Reasons(decision), ElementsAre("PodFailed", "Failed"));
  ASSERT_EQ(decision.status.failures.size(), 1U);
  EXPECT_EQ(decision.status.failures[0].rank, 3);
  EXPECT_EQ(decision.status.failures[0].exit_code, 3);
  EXPECT_EQ(decision.status.restarts, 0);
  ASSERT_EQ(decision.status.jobs.size(), 1U);
  EXPECT_EQ(decision.status.jobs[0], (JobsStatus{"node", 0, 0, 1, 0, 0}));
}

TEST(Decide, APodThatIsAboutToFailIsWaitedFor) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  observed.pods = {Pod(observed.jobs[0], 0),
                   Failed(Pod(observed.jobs[0], 1), 3, Told(3, ExitClass::kFatal, 0, "no such data"))};
  observed.pods[1].phase = "Running";  // its container has ended
  TrainJob job = Job();
  Decision decision = Decide(job, TwoNodes(), observed, kNow);
  ASSERT_NE(decision.status.Find("Failed"), nullptr);
  EXPECT_THAT(Actions(decision), IsEmpty()) << "its logs would go";
  EXPECT_EQ(decision.again, kNow + 9 * kSecond);
  job.status = decision.status;
  EXPECT_THAT(Actions(DecideFinished(job, observed, kNow + 9 * kSecond)), ElementsAre("suspend a-node-0"));
  observed.pods[1].phase = "Failed";
  EXPECT_THAT(Actions(DecideFinished(job, observed, kNow)), ElementsAre("suspend a-node-0"));
  observed.jobs[0].failed_at = kNow;  // by its own rules
  EXPECT_THAT(Actions(DecideFinished(job, observed, kNow)), IsEmpty());
}

TEST(Decide, ARetryableCodeIsCountedOnceAndThePodMadeAnewAtOnce) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 137)};
  TrainJob job = Job();
  Decision decision = Decide(job, TwoNodes(), observed, kNow);
  ASSERT_EQ(decision.actions.size(), 1U);
  const Action action = decision.actions[0];
  EXPECT_EQ(action.kind, Action::Kind::kCreatePod);
  EXPECT_THAT(action.name, ::testing::MatchesRegex("a-node-0-0-[0-9a-f]{5}"));
  EXPECT_EQ(std::tie(action.job, action.uid, action.index), std::make_tuple("a-node-0", "uid-a-node-0-0", 0));
  EXPECT_EQ(decision.status.restarts, 1);
  EXPECT_THAT(Reasons(decision), ElementsAre("PodFailed"));
  job.status = decision.status;
  decision = Decide(job, TwoNodes(), observed, kNow);
  EXPECT_EQ(decision.actions[0].name, action.name) << "it would be made twice";
  observed.pods.push_back(Pod(observed.jobs[0], 0, "new"));
  decision = Decide(job, TwoNodes(), observed, kNow);
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.status.restarts, 1);
  EXPECT_THAT(decision.events, IsEmpty());
}

TEST(Decide, APodOnALostNodeIsMadeAnewWithoutWaitingForItsEnd) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  observed.pods = {Pod(observed.jobs[0], 0), Pod(observed.jobs[0], 1)};
  observed.pods[1].meta.deleted = kNow;
  Decision decision = Decide(Job(), TwoNodes(), observed, kNow);
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.again, kNow + kLostAfter);
  decision = Decide(Job(), TwoNodes(), observed, kNow + kLostAfter);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(std::tie(decision.actions[0].kind, decision.actions[0].index),
            std::make_tuple(Action::Kind::kCreatePod, 1));
  EXPECT_THAT(Reasons(decision), ElementsAre("PodLost"));
}

TEST(Decide, ObjectsAreMadeBeforeTheJobsThatNeedThem) {
  Plan plan = WithData();
  plan.objects.resize(2);
  plan.objects[0].object = {{"metadata", {{"name", "a-token"}}}};
  plan.objects[1].object = {{"metadata", {{"name", "a-claim"}}}};
  plan.objects[1].for_initializers = true;
  EXPECT_THAT(Actions(Decide(Job(), plan, {}, kNow)),
              ElementsAre("service a", "object a-claim", "create a-dataset-initializer-0"));
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-dataset-initializer-0", 0, 1)};
  observed.jobs[0].complete = true;
  EXPECT_THAT(Actions(Decide(Job(), plan, observed, kNow)),
              ElementsAre("object a-claim", "object a-token", "create a-node-0"));
}

// An elastic job of four pods, that had two.
struct Scaled {
  Plan plan;
  Observed observed;
};
Scaled ScaledJob(int from, int to) {
  Scaled scaled;
  scaled.plan.subdomain = "a";
  scaled.plan.jobs = {Planned("node", Step::kTrainer, to, true)};
  scaled.plan.jobs[0].scales = true;
  scaled.plan.objects.resize(1);
  scaled.plan.objects[0].object = {{"metadata", {{"name", "a-group"}}}};
  scaled.observed.service = true;
  scaled.observed.jobs = {There("a-node-0", 0, from)};
  for (int index = 0; index < from; ++index) {
    ObservedPod pod = Pod(scaled.observed.jobs[0], index);
    pod.meta.annotations[kNodesAnnotation] = fmt::format("{}", from);
    scaled.observed.pods.push_back(pod);
  }
  return scaled;
}

TEST(Scaling, MorePods) {
  const Scaled scaled = ScaledJob(2, 4);
  const Decision decision = Decide(Job(), scaled.plan, scaled.observed, kNow);
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
  const Decision decision = Decide(Job(), scaled.plan, scaled.observed, kNow);
  EXPECT_THAT(Actions(decision),
              ElementsAre("object a-group", "scale a-node-0", "tell a-node-0-0-x", "tell a-node-0-1-x"));
  EXPECT_TRUE(decision.status.failures.empty());
  EXPECT_EQ(decision.status.restarts, 0);
}

TEST(Scaling, OnlyWhatIsElastic) {
  Scaled scaled = ScaledJob(2, 4);
  scaled.plan.jobs[0].scales = false;
  const Decision decision = Decide(Job(), scaled.plan, scaled.observed, kNow);
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.status.selector, "");
}

TEST(Decide, AJobThatIsBoundToFailHasFailed) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  observed.jobs[0].backoff_limit = 1;
  observed.pods = {Failed(Pod(observed.jobs[0], 1), 1), Pod(observed.jobs[0], 0)};
  EXPECT_THAT(Actions(Decide(Job(), TwoNodes(false, 1), observed, kNow)), IsEmpty());
  observed.pods.push_back(Failed(Pod(observed.jobs[0], 1, "y"), 1));
  Decision decision = Decide(Job(), TwoNodes(false, 1), observed, kNow);
  EXPECT_EQ(decision.status.attempt, 1);
  decision = Decide(Job(), TwoNodes(false, 0), observed, kNow);
  ASSERT_NE(decision.status.Find("Failed"), nullptr);
  EXPECT_EQ(decision.status.Find("Failed")->reason, "FailedJobs");
}

TEST(Decide, PodsThatEndForOneFailureCostOne) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  TerminationMessage told = Told(139, ExitClass::kRetryable, 1, "killed by SIGSEGV");
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 139, told), Failed(Pod(observed.jobs[0], 1), 139, told)};
  EXPECT_EQ(Decide(Job(), TwoNodes(), observed, kNow).status.restarts, 2) << "one by the agents, one for both pods";
  told.cause->unix_millis = 1;
  observed.pods.push_back(Failed(Pod(observed.jobs[0], 1, "y"), 139, told));
  EXPECT_EQ(Decide(Job(), TwoNodes(), observed, kNow).status.restarts, 3);
}

TEST(Decide, ACommandWithoutWorkersCostsOneForEachPod) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  TerminationMessage told = Told(143, ExitClass::kRetryable, 0, "asked to stop");
  told.cause.reset();
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 143, told), Failed(Pod(observed.jobs[0], 0, "y"), 143, told)};
  EXPECT_EQ(Decide(Job(), TwoNodes(), observed, kNow).status.restarts, 2);
}

TEST(Decide, AStepUnderTheAgentThatIsMadeAnewCostsAtLeastOne) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  observed.jobs[0].failed_at = kNow;
  observed.jobs[0].failed_reason = "DeadlineExceeded";
  TrainJob job = Job();
  for (int attempt = 1; attempt <= 3; ++attempt) {
    const Decision decision = Decide(job, TwoNodes(), observed, kNow);
    EXPECT_EQ(decision.status.attempt, attempt);
    EXPECT_EQ(decision.status.restarts, attempt);
    job.status = decision.status;
    observed.jobs = {There("a-node-0", attempt)};
    observed.jobs[0].meta.annotations["muster.dev/restarts-left"] = fmt::format("{}", 3 - attempt);
    observed.jobs[0].failed_at = kNow;
  }
  EXPECT_NE(Decide(job, TwoNodes(), observed, kNow).status.Find("Failed"), nullptr);
}

TEST(Decide, AForgedMessageCostsNoMoreThanTheBudget) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  TerminationMessage told = Told(139, ExitClass::kRetryable, std::numeric_limits<int>::max(),
                                 "\x1b[2J\x1b[31mred\n\xc2\x9b"
                                 "31m");
  told.max_restarts = 0;
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 139, told)};
  const Decision decision = Decide(Job(), TwoNodes(), observed, kNow);
  EXPECT_EQ(decision.status.restarts, 4);
  ASSERT_EQ(decision.status.failures.size(), 1U);
  EXPECT_EQ(decision.status.failures[0].message, " [2J [31mred /  31m");
}

TEST(Decide, ARuntimeWithoutATrainerRunsToo) {
  Plan plan = TwoNodes();
  plan.jobs = {Planned("other", Step::kOther, 2, false)};
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-other-0")};
  observed.jobs[0].ready = 2;
  const Decision decision = Decide(Job(), plan, observed, kNow);
  EXPECT_EQ(std::tie(decision.status.state, decision.status.nodes), std::make_tuple("Running", 2));
}

TEST(Decide, TheBudgetEnds) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  for (int i = 0; i < 4; ++i) observed.pods.push_back(Failed(Pod(observed.jobs[0], 0, fmt::format("p{}", i)), 137));
  const Decision decision = Decide(Job(), TwoNodes(), observed, kNow);
  const Condition* failed = decision.status.Find("Failed");
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->reason, "ReachedMaxRestarts");
  EXPECT_THAT(failed->message, HasSubstr("was killed by SIGKILL"));
  EXPECT_THAT(Actions(decision), ElementsAre("suspend a-node-0")) << "its failed pod stays";
}

TEST(Decide, WhatTheAgentsHaveUsedUpIsNotGivenAgain) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 139, Told(139, ExitClass::kRetryable, 3, "killed by SIGSEGV"))};
  const Decision decision = Decide(Job(), TwoNodes(), observed, kNow);
  ASSERT_NE(decision.status.Find("Failed"), nullptr);
  EXPECT_EQ(decision.status.Find("Failed")->reason, "ReachedMaxRestarts");
  EXPECT_EQ(decision.status.restarts, 3);
}

TEST(Decide, ADisruptionCostsNothing) {
  for (const char* how : {"condition", "deleted", "Evicted", "Preempting"}) {
    Observed observed;
    observed.service = true;
    observed.jobs = {There("a-node-0")};
    ObservedPod pod = Failed(Pod(observed.jobs[0], 0), 1);
    if (std::string_view(how) == "condition") {
      pod.disrupted = true;
    } else if (std::string_view(how) == "deleted") {
      pod.meta.deleted = kNow;
    } else {
      pod.reason = how;
    }
    observed.pods = {pod};
    const Decision decision = Decide(Job(), TwoNodes(), observed, kNow);
    EXPECT_EQ(decision.status.restarts, 0) << how;
    EXPECT_EQ(decision.status.Find("Failed"), nullptr) << how;
    EXPECT_THAT(Reasons(decision), ElementsAre("PodDisrupted")) << how;
  }
}

TEST(Decide, AStepWithoutTheAgentIsMadeAnewAsAWhole) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  observed.jobs[0].failed_at = kNow;
  observed.jobs[0].failed_reason = "BackoffLimitExceeded";
  observed.pods = {Pod(observed.jobs[0], 0), Failed(Pod(observed.jobs[0], 1), 1)};
  TrainJob job = Job();
  Decision decision = Decide(job, TwoNodes(false, 1), observed, kNow);
  EXPECT_TRUE(decision.status_first);
  EXPECT_EQ(decision.status.attempt, 1);
  EXPECT_EQ(decision.status.restarts, 1);
  EXPECT_EQ(decision.status.state, "Restarting");
  EXPECT_THAT(Actions(decision),
              ElementsAre("delete a-node-0", "delete pod a-node-0-0-x", "delete pod a-node-0-1-x", "create a-node-0"));
  EXPECT_EQ(decision.actions[3].object["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"], "1");
  job.status = decision.status;
  observed.jobs = {There("a-node-0", 1)};
  observed.jobs[0].failed_at = kNow;
  observed.pods = {Failed(Pod(observed.jobs[0], 1), 1)};
  decision = Decide(job, TwoNodes(false, 1), observed, kNow);
  ASSERT_NE(decision.status.Find("Failed"), nullptr);
  EXPECT_EQ(decision.status.Find("Failed")->reason, "ReachedMaxRestarts");
}

TEST(Decide, ANumberOfTheAttemptThatSomebodyRaisedCostsNothing) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0", 7)};
  TrainJob job = Job();
  Decision decision = Decide(job, TwoNodes(false, 1), observed, kNow);
  EXPECT_THAT(Actions(decision), IsEmpty()) << "it would be created for ever";
  observed.jobs[0].failed_at = kNow;
  decision = Decide(job, TwoNodes(false, 1), observed, kNow);
  EXPECT_EQ(std::tie(decision.status.attempt, decision.status.restarts), std::make_tuple(8, 1));
  EXPECT_THAT(Actions(decision), ElementsAre("delete a-node-0", "create a-node-0"));
}

TEST(Decide, AnInitializerThatFailedEndsTheJob) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-dataset-initializer-0", 0, 1)};
  observed.jobs[0].failed_at = kNow;
  observed.jobs[0].failed_reason = "BackoffLimitExceeded";
  observed.jobs[0].failed_message = "Job has reached the specified backoff limit";
  const Decision decision = Decide(Job(), WithData(), observed, kNow);
  ASSERT_NE(decision.status.Find("Failed"), nullptr);
  EXPECT_THAT(decision.status.Find("Failed")->message, HasSubstr("(first failed job: a-dataset-initializer-0)"));
  EXPECT_THAT(decision.status.message, HasSubstr("BackoffLimitExceeded"));
}

TEST(Decide, SuspendAndResume) {
  TrainJob job = Job();
  job.suspend = true;
  Decision decision = Decide(job, TwoNodes(), {}, kNow);
  EXPECT_THAT(Actions(decision), IsEmpty());
  ASSERT_NE(decision.status.Find("Suspended"), nullptr);
  EXPECT_TRUE(decision.status.Find("Suspended")->status);
  EXPECT_EQ(decision.status.start_time, std::nullopt);
  job.status = decision.status;
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  EXPECT_THAT(Actions(Decide(job, TwoNodes(), observed, kNow)), ElementsAre("suspend a-node-0"));
  observed.jobs[0].suspended = true;
  EXPECT_THAT(Actions(Decide(job, TwoNodes(), observed, kNow)), IsEmpty());
  job.suspend = false;
  EXPECT_THAT(Actions(Decide(job, TwoNodes(), observed, kNow)), IsEmpty()) << "its pods are not gone yet";
  observed.jobs[0].active = 0;
  observed.pods = {Pod(observed.jobs[0], 0)};
  EXPECT_THAT(Actions(Decide(job, TwoNodes(), observed, kNow)), IsEmpty()) << "nor is this one";
  observed.pods[0].meta.deleted = kNow;
  decision = Decide(job, TwoNodes(), observed, kNow);
  EXPECT_THAT(Actions(decision), ElementsAre("delete a-node-0", "create a-node-0"));
  EXPECT_FALSE(decision.status.Find("Suspended")->status);
  EXPECT_EQ(decision.status.Find("Suspended")->reason, "Resumed");
}

TEST(Decide, TheDeadlineCountsFromTheResume) {
  TrainJob job = Job();
  job.active_deadline_seconds = 60;
  job.status.state = "Created";
  Decision decision = Decide(job, TwoNodes(), {}, kNow);
  EXPECT_EQ(decision.again, *job.meta.created + 60 * kSecond);
  decision = Decide(job, TwoNodes(), {}, kNow + 51 * kSecond);
  ASSERT_NE(decision.status.Find("Failed"), nullptr);
  EXPECT_EQ(decision.status.Find("Failed")->reason, "DeadlineExceeded");
  EXPECT_EQ(decision.status.Find("Failed")->message, "TrainJob exceeded its active deadline");
  job.status.conditions = {{"Suspended", false, "Resumed", "", kNow + 20 * kSecond, 1}};
  EXPECT_EQ(Decide(job, TwoNodes(), {}, kNow + 51 * kSecond).status.Find("Failed"), nullptr);
}

TEST(Decide, AWaitingPodIsSaid) {
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  observed.pods = {Pod(observed.jobs[0], 0)};
  observed.pods[0].waiting_reason = "ImagePullBackOff";
  observed.pods[0].waiting = "ImagePullBackOff: container node: not found";
  const Decision decision = Decide(Job(), TwoNodes(), observed, kNow);
  EXPECT_EQ(decision.status.state, "Waiting");
  EXPECT_EQ(decision.status.reason, "ImagePullBackOff");
  EXPECT_THAT(decision.status.message, HasSubstr("pod a-node-0-0-x: ImagePullBackOff: container node: not found"));
}

TEST(DecideFinished, StopsWhatRunsAndGoesAfterItsTime) {
  TrainJob job = Job();
  job.status.conditions = {{"Complete", true, "AllJobsCompleted", "", kNow, 1}};
  job.status.completion_time = kNow;
  Observed observed;
  observed.jobs = {There("a-monitor-0"), There("a-node-0")};
  observed.jobs[1].complete = true;
  EXPECT_THAT(Actions(DecideFinished(job, observed, kNow)), ElementsAre("delete a-monitor-0"));
  job.ttl_seconds_after_finished = 30;
  EXPECT_EQ(DecideFinished(job, {}, kNow).again, kNow + 30 * kSecond);
  EXPECT_THAT(Actions(DecideFinished(job, {}, kNow + 30 * kSecond)), ElementsAre("delete trainjob a"));
}

TEST(DecideWithoutPlan, SaysWhyOnce) {
  TrainJob job = Job();
  Decision decision = DecideWithoutPlan(job, absl::NotFoundError("spec.runtimeRef: there is no torch"), kNow);
  EXPECT_EQ(decision.status.message, "spec.runtimeRef: there is no torch");
  EXPECT_THAT(Reasons(decision), ElementsAre("TrainJobResourcesCreationFailed"));
  job.status = decision.status;
  EXPECT_THAT(DecideWithoutPlan(job, absl::NotFoundError("spec.runtimeRef: there is no torch"), kNow).events,
              IsEmpty());
}

TEST(Decide, AnyJobOfTheSuccessPolicyIsEnough) {
  Plan plan = TwoNodes(false);
  plan.jobs.push_back(Planned("driver", Step::kOther, 1, false));
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0"), There("a-driver-0", 0, 1)};
  observed.jobs[1].complete = true;
  EXPECT_FALSE(Decide(Job(), plan, observed, kNow).status.Finished()) << "all of them";
  plan.success.jobs = {"driver"};
  Decision decision = Decide(Job(), plan, observed, kNow);
  EXPECT_TRUE(decision.status.Finished());
  EXPECT_THAT(Actions(decision), ElementsAre("delete a-node-0")) << "the workers end";
  plan.success = {.all = false, .jobs = {}};
  EXPECT_TRUE(Decide(Job(), plan, observed, kNow).status.Finished());
}

TEST(Decide, WhatADependencyAsksForIsSeenAtEachStart) {
  struct Row {
    std::string what;
    Dependency::Until until;
    int ready, succeeded;
    bool complete, suspended;
    bool starts;
  };
  Plan plan = TwoNodes(false);
  plan.jobs.push_back(Planned("launcher", Step::kOther, 1, false));
  for (const Row& row : std::vector<Row>{
           {"not all are ready", Dependency::Until::kReady, 1, 0, false, false, false},
           {"all are ready", Dependency::Until::kReady, 2, 0, false, false, true},
           {"one has succeeded, the other is ready", Dependency::Until::kReady, 1, 1, false, false, true},
           {"it is complete", Dependency::Until::kReady, 0, 2, true, false, true},
           {"it was ready before it was suspended", Dependency::Until::kReady, 0, 0, false, true, false},
           {"ready is not complete", Dependency::Until::kComplete, 2, 0, false, false, false},
           {"complete", Dependency::Until::kComplete, 0, 2, true, false, true},
       }) {
    SCOPED_TRACE(row.what);
    plan.jobs[1].after = {{"node", row.until}};
    Observed observed;
    observed.service = true;
    observed.jobs = {There("a-node-0")};
    observed.jobs[0].ready = row.ready;
    observed.jobs[0].succeeded = row.succeeded;
    observed.jobs[0].complete = row.complete;
    observed.jobs[0].suspended = row.suspended;
    if (row.suspended) observed.jobs[0].active = 0;
    const auto actions = Actions(Decide(Job(), plan, observed, kNow));
    EXPECT_EQ(std::find(actions.begin(), actions.end(), "create a-launcher-0") != actions.end(), row.starts);
  }
}

TEST(Decide, NeverMeansNever) {
  for (const bool agent : {true, false}) {
    Plan plan = TwoNodes(agent);
    plan.jobs[0].restart = RestartPolicy::kNever;
    Observed observed;
    observed.service = true;
    observed.jobs = {There("a-node-0")};
    observed.pods = {Failed(Pod(observed.jobs[0], 0), 137), Pod(observed.jobs[0], 1)};
    Decision decision = Decide(Job(), plan, observed, kNow);
    ASSERT_TRUE(decision.status.Finished());
    EXPECT_EQ(decision.status.Find("Failed")->reason, "FailedJobs");

    observed.pods[0].disrupted = true;  // the Job fails all the same
    EXPECT_THAT(Actions(Decide(Job(), plan, observed, kNow)), IsEmpty()) << "no pod takes its place";
    observed.jobs[0].failed_at = kNow;
    observed.jobs[0].failed_reason = "BackoffLimitExceeded";
    EXPECT_EQ(Decide(Job(), plan, observed, kNow).status.Find("Failed")->reason, "FailedJobs");
  }
}

TEST(Decide, OnFailureCountsFatalCodesToo) {
  Plan plan = TwoNodes();
  plan.jobs[0].restart = RestartPolicy::kOnFailure;
  Observed observed;
  observed.service = true;
  observed.jobs = {There("a-node-0")};
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 3), Pod(observed.jobs[0], 1)};
  Decision decision = Decide(Job(), plan, observed, kNow);
  EXPECT_FALSE(decision.status.Finished());
  EXPECT_EQ(decision.status.restarts, 1);
  observed.pods[0] = Failed(Pod(observed.jobs[0], 0), 3, Told(3, ExitClass::kFatal, 3, "again"));
  decision = Decide(Job(), plan, observed, kNow);
  ASSERT_TRUE(decision.status.Finished());
  EXPECT_EQ(decision.status.Find("Failed")->reason, "ReachedMaxRestarts") << "the agents have used it up";
}

TEST(Decide, TheRuntimeGivesDefaultsOfTime) {
  Plan plan = TwoNodes();
  plan.active_deadline_seconds = 5;
  plan.ttl_seconds = 30;
  TrainJob job = Job();
  Decision decision = Decide(job, plan, {}, kNow);
  ASSERT_TRUE(decision.status.Finished());
  EXPECT_EQ(decision.status.Find("Failed")->reason, "DeadlineExceeded");
  EXPECT_EQ(decision.status.ttl_seconds, 30);
  job.active_deadline_seconds = 100;
  EXPECT_FALSE(Decide(job, plan, {}, kNow).status.Finished()) << "its own goes first";

  job.status = decision.status;
  EXPECT_THAT(Actions(DecideFinished(job, {}, kNow + 29 * kSecond)), IsEmpty());
  EXPECT_THAT(Actions(DecideFinished(job, {}, kNow + 30 * kSecond)), ElementsAre("delete trainjob a"));
  job.ttl_seconds_after_finished = 40;
  EXPECT_EQ(DecideFinished(job, {}, kNow + 30 * kSecond).again, kNow + 40 * kSecond);
}

TEST(Decide, JobsMayGoBeforeTheirTrainJob) {
  TrainJob job = Job();
  SetComplete(job, &job.status, kNow);
  Observed observed;
  observed.jobs = {There("a-node-0")};
  observed.jobs[0].complete = true;
  observed.jobs[0].ttl_seconds = 10;
  Decision decision = DecideFinished(job, observed, kNow);
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.again, kNow + 10 * kSecond);
  EXPECT_THAT(Actions(DecideFinished(job, observed, kNow + 10 * kSecond)), ElementsAre("delete a-node-0"));
}

}  // namespace
}  // namespace muster::controller
