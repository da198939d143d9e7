// SPDX-License-Identifier: Apache-2.0
#include "local/cluster/job_pods.h"

#include "controller/reconcile/observed.h"
#include "tests/local/jobs.h"

namespace muster::local {

using namespace controller;

namespace {

// The result of a step without empty fields: create, annotations, remove, counted, again (s from now), and of the
// status the counts, indexes, started (s), and conditions as "Failed: BackoffLimitExceeded" or "not Suspended: ...".
Json Shown(const JobStep& step) {
  Json shown;
  if (!step.create.empty()) shown["create"] = step.create;
  for (const auto& [index, annotations] : step.annotations) {
    for (const auto& [key, value] : annotations.items()) {
      shown["annotations"][fmt::format("{}", index)].push_back(key + "=" + value.get<std::string>());
    }
  }
  if (!step.remove.empty()) shown["remove"] = step.remove;
  if (!step.counted.empty()) shown["counted"] = step.counted;
  if (step.again) shown["again"] = std::chrono::duration_cast<std::chrono::seconds>(*step.again - kNow).count();
  for (const char* name : {"active", "ready", "succeeded", "failed", "terminating"}) {
    if (const int count = CountField(step.status, name); count > 0) shown[name] = count;
  }
  for (const char* name : {"completedIndexes", "failedIndexes"}) {
    if (const Json* text = FindField(step.status, name)) shown[name] = *text;
  }
  if (const auto started = TimeField(step.status, "startTime")) {
    shown["started"] = std::chrono::duration_cast<std::chrono::seconds>(*started - kNow).count();
  }
  for (const Json& condition : ListField(step.status, "conditions")) {
    shown["conditions"].push_back(fmt::format("{}{}: {}", TextField(condition, "status") == "True" ? "" : "not ",
                                              TextField(condition, "type"), TextField(condition, "reason")));
  }
  return shown;
}

JobStep Stepped(const Json& job, const std::vector<Json>& pods) {
  std::vector<const Json*> pointers;
  for (const Json& pod : pods) pointers.push_back(&pod);
  auto step = StepJob(job, pointers, kNow);
  if (!step.ok()) ADD_FAILURE() << step.status();
  return step.value_or(JobStep());
}

struct Row {
  const char *what, *spec, *status;
  std::vector<Json> pods;
  const char* shown;
};

void Check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    EXPECT_EQ(Shown(Stepped(LocalJob(row.spec, row.status), row.pods)), YamlOf(row.shown)) << row.what;
  }
}

std::string StartedAt(int seconds, std::string_view more = "") {
  return fmt::format("{{startTime: '{}'{}}}", At(seconds), more);
}

TEST(StepJob, MakesThePodsThatAreMissing) {
  Check({
      {"a new Job", "{}", "{}", {}, "{create: [0, 1, 2], active: 3, started: 0}"},
      {"at most parallelism", "{parallelism: 2}", "{}", {}, "{create: [0, 1], active: 2, started: 0}"},
      {"no parallelism", "{parallelism: 0}", "{}", {}, "{started: 0}"},
      {"one is there",
       "{}",
       "{}",
       {LocalPod(1, "Running", "{ready: -5}")},
       "{create: [0, 2], active: 3, ready: 1, started: 0}"},
      {"all are there",
       "{}",
       "{}",
       {LocalPod(0, "Pending"), LocalPod(1, "Running"), LocalPod(2, "Unknown")},
       "{active: 3, started: 0}"},
      {"the next after a success",
       "{parallelism: 1}",
       "{}",
       {LocalPod(0, "Succeeded")},
       "{create: [1], counted: [p0], active: 1, succeeded: 1, completedIndexes: '0', started: 0}"},
      {"a success from before",
       "{parallelism: 1}",
       "{succeeded: 1, completedIndexes: '1'}",
       {LocalPod(1, "Succeeded", "{tracked: false}")},
       "{create: [0], active: 1, succeeded: 1, completedIndexes: '1', started: 0}"},
  });
}

TEST(StepJob, WritesTheWholeStatus) {
  const Json job = LocalJob("{parallelism: 2}", StartedAt(-70, ", active: 2"));
  const JobStep step = Stepped(job, {LocalPod(0, "Running", "{ready: -9}"), LocalPod(1, "Failed", "{ended: -20}")});
  EXPECT_EQ(step.status, YamlOf(fmt::format("{{active: 2, ready: 1, failed: 1, terminating: 0, startTime: '{}', "
                                            "uncountedTerminatedPods: {{}}}}",
                                            At(-70))));
  std::vector<Json> pods;
  for (int index : {0, 1, 2}) pods.push_back(LocalPod(index, "Succeeded"));
  Json want = YamlOf(
      "{ready: 0, succeeded: 3, terminating: 0, completedIndexes: 0-2, uncountedTerminatedPods: {}, conditions: [\n"
      "{type: SuccessCriteriaMet, status: 'True', reason: CompletionsReached, "
      "message: Reached expected number of succeeded pods},\n"
      "{type: Complete, status: 'True', reason: CompletionsReached, "
      "message: Reached expected number of succeeded pods}]}");
  want["startTime"] = At(-70);
  want["completionTime"] = At(0);
  for (Json& condition : want["conditions"]) condition["lastProbeTime"] = condition["lastTransitionTime"] = At(0);
  EXPECT_EQ(Stepped(job, pods).status, want);
}

TEST(StepJob, CountsEachEndOnce) {
  Check({
      {"a failure",
       "{}",
       "{}",
       {LocalPod(0, "Failed"), LocalPod(1, "Running"), LocalPod(2, "Running")},
       "{create: [0], counted: [p0], active: 3, failed: 1, started: 0}"},
      {"that is counted",
       "{}",
       "{failed: 1}",
       {LocalPod(0, "Failed", "{tracked: false}"), LocalPod(0, "Running", "{name: q}"), LocalPod(1, "Running"),
        LocalPod(2, "Running")},
       "{active: 3, failed: 1, started: 0}"},
      {"of an index that has succeeded",
       "{parallelism: 0}",
       "{completedIndexes: '0'}",
       {LocalPod(0, "Succeeded")},
       "{counted: [p0], succeeded: 1, completedIndexes: '0', started: 0}"},
      {"of no valid index",
       "{parallelism: 0}",
       "{}",
       {LocalPod(7, "Failed"), LocalPod(8, "Succeeded")},
       "{counted: [p7, p8], started: 0}"},
  });
}

TEST(StepJob, PausesAfterFailures) {
  const char* others = "{parallelism: 1, completions: 1, backoffLimit: 20}";
  const auto failed = [](int ended, const char* name, bool tracked = false) {
    return LocalPod(0, "Failed", fmt::format("{{ended: {}, name: {}, tracked: {}}}", ended, name, tracked));
  };
  std::vector<Json> many;
  for (int i = 0; i < 9; ++i) many.push_back(failed(-1, "p"));
  Check({
      {"10 s after the first",
       others,
       "{}",
       {failed(-4, "p", true)},
       "{counted: [p], failed: 1, again: 6, started: 0}"},
      {"also once it is counted", others, "{failed: 1}", {failed(-4, "p")}, "{failed: 1, again: 6, started: 0}"},
      {"it is over", others, "{failed: 1}", {failed(-10, "p")}, "{create: [0], active: 1, failed: 1, started: 0}"},
      {"20 s after the second",
       others,
       "{failed: 2}",
       {failed(-30, "p"), failed(-4, "q")},
       "{failed: 2, again: 16, started: 0}"},
      {"10 min at most", others, "{failed: 9}", many, "{failed: 9, again: 599, started: 0}"},
      {"anew after a success",
       "{parallelism: 1}",
       "{failed: 2, completedIndexes: '1'}",
       {failed(-30, "p"), failed(-4, "q"), LocalPod(1, "Succeeded", "{ended: -8, tracked: false}")},
       "{failed: 2, again: 6, succeeded: 1, completedIndexes: '1', started: 0}"},
      {"none after a success that is last",
       "{parallelism: 1}",
       "{failed: 1, completedIndexes: '1'}",
       {failed(-4, "q"), LocalPod(1, "Succeeded", "{ended: -3, tracked: false}")},
       "{create: [0], active: 1, failed: 1, succeeded: 1, completedIndexes: '1', started: 0}"},
      {"for ignored failures too",
       "{completions: 1, podFailurePolicy: {rules: [{action: Ignore, onExitCodes: {operator: In, values: [9]}}]}}",
       "{}",
       {LocalPod(0, "Failed", "{exit: 9, ended: -4}")},
       "{counted: [p0], again: 6, started: 0}"},
  });
}

TEST(StepJob, PausesFromTheLastEndOfAContainer) {
  Json pod = LocalPod(0, "Failed", "{ended: -9}");
  pod["spec"]["initContainers"] = ListOf("[{name: data}, {name: agent, restartPolicy: Always}]");
  pod["status"]["initContainerStatuses"] =
      ListOf(fmt::format("[{{name: data, state: {{terminated: {{finishedAt: '{}'}}}}}}, "
                         "{{name: agent, state: {{terminated: {{finishedAt: '{}'}}}}}}]",
                         At(-1), At(-3)));
  const Json job = LocalJob("{completions: 1}");
  EXPECT_EQ(Stepped(job, {pod}).again, kNow + std::chrono::seconds(7))
      << "a sidecar counts, an init container does not";
  pod["status"]["containerStatuses"] = pod["status"]["initContainerStatuses"] = Json::array();
  pod["status"]["conditions"] =
      ListOf(fmt::format("[{{type: Ready, status: 'False', lastTransitionTime: '{}'}}]", At(-5)));
  EXPECT_EQ(Stepped(job, {pod}).again, kNow + std::chrono::seconds(5)) << "since when it is not ready";
  pod["status"]["conditions"] = Json::array();
  pod["metadata"]["creationTimestamp"] = At(-2);
  EXPECT_EQ(Stepped(job, {pod}).again, kNow + std::chrono::seconds(8)) << "when it was created";
}

TEST(StepJob, FailsPastTheBackoffLimit) {
  const std::vector<Json> running = {LocalPod(1, "Running", "{ready: -4}"), LocalPod(2, "Pending")};
  const auto with = [&](Json pod) {
    std::vector<Json> pods = running;
    pods.insert(pods.begin(), std::move(pod));
    return pods;
  };
  const char* over =
      "{remove: [p1, p2], counted: [p0, p1, p2], failed: 3, terminating: 2, started: 0,"
      " conditions: ['FailureTarget: BackoffLimitExceeded']}";
  Check({
      {"one too many, and those that still run", "{backoffLimit: 0}", "{}", with(LocalPod(0, "Failed")), over},
      {"none too many", "{backoffLimit: 1}", "{}", with(LocalPod(0, "Failed")),
       "{create: [0], counted: [p0], active: 3, ready: 1, failed: 1, started: 0}"},
      {"of failures before", "{backoffLimit: 1}", "{failed: 1}", with(LocalPod(0, "Failed")),
       "{remove: [p1, p2], counted: [p0, p1, p2], failed: 4, terminating: 2, started: 0,"
       " conditions: ['FailureTarget: BackoffLimitExceeded']}"},
      {"at once where no pod runs",
       "{backoffLimit: 0, completions: 1}",
       "{}",
       {LocalPod(0, "Failed")},
       "{counted: [p0], failed: 1, started: 0,"
       " conditions: ['FailureTarget: BackoffLimitExceeded', 'Failed: BackoffLimitExceeded']}"},
      {"by restarts",
       "{backoffLimit: 3, completions: 1, template: {spec: {restartPolicy: OnFailure}}}",
       "{}",
       {LocalPod(0, "Running", "{restarts: 3}")},
       "{remove: [p0], counted: [p0], failed: 1, terminating: 1, started: 0,"
       " conditions: ['FailureTarget: BackoffLimitExceeded']}"},
      {"by the first restart",
       "{backoffLimit: 0, completions: 1, template: {spec: {restartPolicy: OnFailure}}}",
       "{}",
       {LocalPod(0, "Running", "{restarts: 1}")},
       "{remove: [p0], counted: [p0], failed: 1, terminating: 1, started: 0,"
       " conditions: ['FailureTarget: BackoffLimitExceeded']}"},
      {"by fewer restarts",
       "{backoffLimit: 3, completions: 1, template: {spec: {restartPolicy: OnFailure}}}",
       "{}",
       {LocalPod(0, "Running", "{restarts: 2}")},
       "{active: 1, started: 0}"},
      {"not by restarts where the kubelet makes none",
       "{backoffLimit: 3, completions: 1}",
       "{}",
       {LocalPod(0, "Running", "{restarts: 9}")},
       "{active: 1, started: 0}"},
  });
}

TEST(StepJob, SaysWhyInKubernetesWords) {
  struct Row {
    const char *spec, *status;
    std::vector<Json> pods;
    const char *reason, *message;
  };
  const std::string late = StartedAt(-60);
  const Row rows[] = {
      {"{backoffLimit: 0}",
       "{}",
       {LocalPod(0, "Failed")},
       "BackoffLimitExceeded",
       "Job has reached the specified backoff limit"},
      {"{activeDeadlineSeconds: 60}",
       late.c_str(),
       {},
       "DeadlineExceeded",
       "Job was active longer than specified deadline"},
      {"{backoffLimitPerIndex: 0, maxFailedIndexes: 0}",
       "{}",
       {LocalPod(0, "Failed")},
       "MaxFailedIndexesExceeded",
       "Job has exceeded the specified maximal number of failed indexes"},
      {"{completions: 1, backoffLimitPerIndex: 0}",
       "{}",
       {LocalPod(0, "Failed")},
       "FailedIndexes",
       "Job has failed indexes"},
      {"{podFailurePolicy: {rules: [{action: FailJob, onPodConditions: [{type: DisruptionTarget}]}]}}",
       "{}",
       {LocalPod(0, "Failed", "{condition: DisruptionTarget}")},
       "PodFailurePolicy",
       "Pod ns/p0 has condition DisruptionTarget matching FailJob rule at index 0"},
      {"{completions: 1}",
       "{}",
       {LocalPod(0, "Succeeded")},
       "CompletionsReached",
       "Reached expected number of succeeded pods"},
      {"{successPolicy: {rules: [{succeededCount: 1}]}}",
       "{}",
       {LocalPod(0, "Succeeded")},
       "SuccessPolicy",
       "Matched rules at index 0"},
      {"{suspend: true}", "{}", {}, "JobSuspended", "Job suspended"},
      {"{}", "{conditions: [{type: Suspended, status: 'True'}]}", {}, "JobResumed", "Job resumed"},
  };
  for (const Row& row : rows) {
    const Json status = Stepped(LocalJob(row.spec, row.status), row.pods).status;
    ASSERT_FALSE(ListField(status, "conditions").empty()) << row.reason;
    for (const Json& condition : status["conditions"]) {
      EXPECT_EQ(condition["reason"], row.reason);
      EXPECT_EQ(condition["message"], row.message);
      EXPECT_EQ(condition["lastTransitionTime"], At(0));
    }
  }
}

TEST(StepJob, IsReadByTheReconciling) {
  Json job = LocalJob("{backoffLimit: 0}");
  job["status"] = Stepped(job, {LocalPod(0, "Failed"), LocalPod(1, "Succeeded"), LocalPod(2, "Running")}).status;
  const auto failed = ReadJob(job);
  ASSERT_TRUE(failed.ok()) << failed.status();
  EXPECT_EQ(failed->failed_at, kNow);
  EXPECT_EQ(failed->failed_reason, "BackoffLimitExceeded");
  EXPECT_EQ(failed->failed, 2);
  EXPECT_EQ(failed->completed, (std::vector{std::pair(1, 1)}));
  EXPECT_FALSE(failed->complete);
}

TEST(StepJob, TellsTheEndOnceItsPodsAreGone) {
  const std::string bound =
      "{failed: 3, conditions: [{type: FailureTarget, status: 'True', reason: BackoffLimitExceeded, message: m}]}";
  const std::string met =
      "{completedIndexes: '0', conditions: [{type: SuccessCriteriaMet, status: 'True', reason: SuccessPolicy, "
      "message: m}]}";
  const std::string over = "{failed: 3, conditions: [{type: Failed, status: 'True', reason: r, message: m}]}";
  Check({
      {"one is left",
       "{}",
       bound.c_str(),
       {LocalPod(0, "Running", "{deleted: -3, tracked: false}"), LocalPod(1, "Failed", "{tracked: false}")},
       "{failed: 3, terminating: 1, started: 0, conditions: ['FailureTarget: BackoffLimitExceeded']}"},
      {"none is left",
       "{}",
       bound.c_str(),
       {LocalPod(1, "Failed", "{deleted: -3, tracked: false}")},
       "{failed: 3, started: 0,"
       " conditions: ['FailureTarget: BackoffLimitExceeded', 'Failed: BackoffLimitExceeded']}"},
      {"one has come late",
       "{}",
       bound.c_str(),
       {LocalPod(1, "Pending")},
       "{remove: [p1], counted: [p1], failed: 4, terminating: 1, started: 0,"
       " conditions: ['FailureTarget: BackoffLimitExceeded']}"},
      {"success",
       "{}",
       met.c_str(),
       {LocalPod(1, "Failed", "{deleted: -3, tracked: false}")},
       "{succeeded: 1, completedIndexes: '0', started: 0,"
       " conditions: ['SuccessCriteriaMet: SuccessPolicy', 'Complete: SuccessPolicy']}"},
      {"nothing comes after it",
       "{}",
       over.c_str(),
       {LocalPod(1, "Succeeded"), LocalPod(2, "Running")},
       "{failed: 3, counted: [p1, p2], conditions: ['Failed: r']}"},
  });
}

TEST(StepJob, RemovesThePodsOfASuspendedJob) {
  const std::string suspended =
      "{conditions: [{type: Suspended, status: 'True', reason: JobSuspended, message: Job suspended}]}";
  Check({
      {"from the beginning", "{suspend: true}", "{}", {}, "{conditions: ['Suspended: JobSuspended']}"},
      {"while pods run, which do not count as failed",
       "{suspend: true, completions: 2}",
       "{startTime: x, failed: 1}",
       {LocalPod(0, "Running", "{ready: -4}"), LocalPod(1, "Succeeded")},
       "{remove: [p0], counted: [p0, p1], succeeded: 1, failed: 1, completedIndexes: '1', terminating: 1,"
       " conditions: ['Suspended: JobSuspended']}"},
      {"still",
       "{suspend: true}",
       suspended.c_str(),
       {LocalPod(0, "Running", "{deleted: -1, tracked: false}")},
       "{terminating: 1, conditions: ['Suspended: JobSuspended']}"},
      {"resumed",
       "{}",
       suspended.c_str(),
       {},
       "{create: [0, 1, 2], active: 3, started: 0, conditions: ['not Suspended: JobResumed']}"},
      {"complete all the same",
       "{suspend: true, completions: 1}",
       "{}",
       {LocalPod(0, "Succeeded")},
       "{counted: [p0], succeeded: 1, completedIndexes: '0',"
       " conditions: ['SuccessCriteriaMet: CompletionsReached', 'Complete: CompletionsReached']}"},
  });
}

TEST(StepJob, ReplacesPodsThatAreBeingDeleted) {
  const char* going = "{deleted: -1}";
  Check({
      {"at once",
       "{completions: 1}",
       "{}",
       {LocalPod(0, "Running", going)},
       "{create: [0], counted: [p0], active: 1, failed: 1, terminating: 1, started: 0}"},
      {"it is counted",
       "{completions: 1}",
       "{failed: 1}",
       {LocalPod(0, "Running", "{deleted: -1, tracked: false}"), LocalPod(0, "Pending", "{name: q}")},
       "{active: 1, failed: 1, terminating: 1, started: 0}"},
      {"not before it has ended",
       "{completions: 1, podReplacementPolicy: Failed}",
       "{}",
       {LocalPod(0, "Running", going)},
       "{terminating: 1, started: 0}"},
      {"the same with a podFailurePolicy",
       "{completions: 1, podFailurePolicy: {rules: []}}",
       "{}",
       {LocalPod(0, "Running", going)},
       "{terminating: 1, started: 0}"},
      {"the other indexes are not held up",
       "{completions: 2, podReplacementPolicy: Failed}",
       "{}",
       {LocalPod(0, "Running", going)},
       "{create: [1], active: 1, terminating: 1, started: 0}"},
      {"it counts for parallelism until then",
       "{parallelism: 2, podReplacementPolicy: Failed}",
       "{}",
       {LocalPod(0, "Running", going), LocalPod(1, "Running")},
       "{active: 1, terminating: 1, started: 0}"},
      {"it does not where it is replaced at once",
       "{parallelism: 2}",
       "{}",
       {LocalPod(0, "Running", going), LocalPod(1, "Running")},
       "{create: [0], counted: [p0], active: 2, failed: 1, terminating: 1, started: 0}"},
      {"it counts as failed where the Job fails",
       "{backoffLimit: 0, podReplacementPolicy: Failed}",
       "{}",
       {LocalPod(0, "Running", going), LocalPod(1, "Failed")},
       "{counted: [p0, p1], failed: 2, terminating: 1, started: 0, conditions: ['FailureTarget: "
       "BackoffLimitExceeded']}"},
      {"it has ended, and makes no pause",
       "{completions: 1, podReplacementPolicy: Failed}",
       "{}",
       {LocalPod(0, "Failed", "{deleted: -2, ended: -1}")},
       "{create: [0], counted: [p0], active: 1, failed: 1, started: 0}"},
      {"it has succeeded",
       "{completions: 1}",
       "{}",
       {LocalPod(0, "Succeeded", going)},
       "{counted: [p0], succeeded: 1, completedIndexes: '0', started: 0,"
       " conditions: ['SuccessCriteriaMet: CompletionsReached', 'Complete: CompletionsReached']}"},
  });
}

TEST(StepJob, FollowsThePodFailurePolicy) {
  const auto policy = [](const char* action, const char* limit = "backoffLimit: 0") {
    return fmt::format(
        "{{completions: 2, {}, podFailurePolicy: {{rules: [{{action: {}, onExitCodes: {{operator: In, "
        "values: [3]}}}}]}}}}",
        limit, action);
  };
  const std::string fail = policy("FailJob"), ignore = policy("Ignore"), count = policy("Count");
  const std::string index = policy("FailIndex", "backoffLimitPerIndex: 5");
  const std::vector<Json> pods = {LocalPod(0, "Failed", "{exit: 3}"), LocalPod(1, "Running")};
  Check({
      {"FailJob", fail.c_str(), "{}", pods,
       "{remove: [p1], counted: [p0, p1], failed: 2, terminating: 1, started: 0,"
       " conditions: ['FailureTarget: PodFailurePolicy']}"},
      {"Ignore", ignore.c_str(), "{}", pods, "{create: [0], counted: [p0], active: 2, started: 0}"},
      {"Count", count.c_str(), "{}", pods,
       "{remove: [p1], counted: [p0, p1], failed: 2, terminating: 1, started: 0,"
       " conditions: ['FailureTarget: BackoffLimitExceeded']}"},
      {"FailIndex", index.c_str(), "{}", pods, "{counted: [p0], active: 1, failed: 1, failedIndexes: '0', started: 0}"},
      {"an ignored pod of a Job that fails",
       policy("Ignore").c_str(),
       "{conditions: [{type: FailureTarget, status: 'True', reason: r, message: m}]}",
       {pods[0]},
       "{counted: [p0], started: 0, conditions: ['FailureTarget: r', 'Failed: r']}"},
  });
  EXPECT_EQ(TextField(Stepped(LocalJob(fail), pods).status["conditions"][0], "message"),
            "Container node for pod ns/p0 failed with exit code 3 matching FailJob rule at index 0");
}

TEST(StepJob, FollowsTheLimitOfEachIndex) {
  const char* one = "{completions: 2, backoffLimitPerIndex: 1}";
  const char* running = "{name: q}";
  Check({
      {"new pods have failed 0 times",
       one,
       "{}",
       {},
       "{create: [0, 1], active: 2, failedIndexes: '', started: 0,"
       " annotations: {'0': [batch.kubernetes.io/job-index-failure-count=0],"
       " '1': [batch.kubernetes.io/job-index-failure-count=0]}}"},
      {"each index has a pause of its own",
       one,
       "{}",
       {LocalPod(0, "Failed", "{ended: -3, failures: 0}"), LocalPod(1, "Running", running)},
       "{active: 1, failedIndexes: '', again: 7, started: 0}"},
      {"the failed pod stays uncounted until its index has another",
       one,
       "{}",
       {LocalPod(0, "Failed", "{ended: -10, failures: 0}"), LocalPod(1, "Running", running)},
       "{create: [0], active: 2, failedIndexes: '', started: 0,"
       " annotations: {'0': [batch.kubernetes.io/job-index-failure-count=1]}}"},
      {"then it is counted",
       one,
       "{}",
       {LocalPod(0, "Failed", "{failures: 0}"), LocalPod(0, "Pending", "{name: r, failures: 1}"),
        LocalPod(1, "Running", running)},
       "{counted: [p0], active: 2, failed: 1, failedIndexes: '', started: 0}"},
      {"the index has failed",
       one,
       "{failed: 1}",
       {LocalPod(0, "Failed", "{failures: 1}"), LocalPod(1, "Running", running)},
       "{counted: [p0], active: 1, failed: 2, failedIndexes: '0', started: 0}"},
      {"all have ended, one badly",
       one,
       "{failedIndexes: '0'}",
       {LocalPod(1, "Succeeded")},
       "{counted: [p1], succeeded: 1, completedIndexes: '1', failedIndexes: '0', started: 0,"
       " conditions: ['FailureTarget: FailedIndexes', 'Failed: FailedIndexes']}"},
      {"too many have failed",
       "{completions: 3, backoffLimitPerIndex: 0, maxFailedIndexes: 1}",
       "{failedIndexes: '0'}",
       {LocalPod(1, "Failed"), LocalPod(2, "Running")},
       "{remove: [p2], counted: [p1, p2], failed: 2, terminating: 1, failedIndexes: '0,1', started: 0,"
       " conditions: ['FailureTarget: MaxFailedIndexesExceeded']}"},
      {"ignored failures make pauses, and no end",
       "{completions: 1, backoffLimitPerIndex: 0, podFailurePolicy: {rules: [{action: Ignore, onExitCodes: "
       "{operator: In, values: [3]}}]}}",
       "{}",
       {LocalPod(0, "Failed", "{exit: 3, ended: -20, failures: 0, ignored: 1}")},
       "{create: [0], active: 1, failedIndexes: '', started: 0,"
       " annotations: {'0': [batch.kubernetes.io/job-index-failure-count=0,"
       " batch.kubernetes.io/job-index-ignored-failure-count=2]}}"},
  });
}

TEST(StepJob, FollowsTheSuccessPolicy) {
  const char* first = "{successPolicy: {rules: [{succeededIndexes: '0'}]}}";
  Check({
      {"it holds: the rest goes, and does not count as failed",
       first,
       "{}",
       {LocalPod(0, "Succeeded"), LocalPod(1, "Running"), LocalPod(2, "Failed")},
       "{remove: [p1], counted: [p0, p1, p2], succeeded: 1, failed: 1, completedIndexes: '0', terminating: 1,"
       " started: 0, conditions: ['SuccessCriteriaMet: SuccessPolicy']}"},
      {"it does not hold",
       first,
       "{}",
       {LocalPod(0, "Running"), LocalPod(1, "Succeeded"), LocalPod(2, "Running")},
       "{counted: [p1], active: 2, succeeded: 1, completedIndexes: '1', started: 0}"},
      {"a failure comes first",
       "{backoffLimit: 0, successPolicy: {rules: [{succeededIndexes: '0'}]}}",
       "{}",
       {LocalPod(0, "Succeeded"), LocalPod(1, "Failed")},
       "{counted: [p0, p1], succeeded: 1, failed: 1, completedIndexes: '0', started: 0,"
       " conditions: ['FailureTarget: BackoffLimitExceeded', 'Failed: BackoffLimitExceeded']}"},
  });
}

TEST(StepJob, HasADeadline) {
  const std::string early = StartedAt(-50), late = StartedAt(-60);
  const std::string suspended =
      StartedAt(-60, ", conditions: [{type: Suspended, status: 'True', reason: JobSuspended, message: Job suspended}]");
  const std::vector<Json> pods = {LocalPod(0, "Running")};
  const char* spec = "{completions: 1, activeDeadlineSeconds: 60}";
  Check({
      {"it is new", spec, "{}", {}, "{create: [0], active: 1, again: 60, started: 0}"},
      {"it has time", spec, early.c_str(), pods, "{active: 1, again: 10, started: -50}"},
      {"the pause ends first",
       spec,
       early.c_str(),
       {LocalPod(0, "Failed", "{ended: -4}")},
       "{counted: [p0], failed: 1, again: 6, started: -50}"},
      {"it is late", spec, late.c_str(), pods,
       "{remove: [p0], counted: [p0], failed: 1, terminating: 1, started: -60,"
       " conditions: ['FailureTarget: DeadlineExceeded']}"},
      {"not while suspended",
       "{completions: 1, activeDeadlineSeconds: 60, suspend: true}",
       suspended.c_str(),
       {},
       "{started: -60, conditions: ['Suspended: JobSuspended']}"},
  });
}

TEST(StepJob, RemovesPodsThatAreTooMany) {
  Check({
      {"fewer completions",
       "{completions: 1, parallelism: 1}",
       "{}",
       {LocalPod(0, "Running"), LocalPod(1, "Running"), LocalPod(2, "Running")},
       "{remove: [p1, p2], counted: [p1, p2], active: 1, terminating: 2, started: 0}"},
      {"and those completed before are forgotten",
       "{completions: 2, parallelism: 2}",
       "{completedIndexes: 1-2}",
       {},
       "{create: [0], active: 1, succeeded: 1, completedIndexes: '1', started: 0}"},
      {"more completions",
       "{completions: 4, parallelism: 4}",
       "{}",
       {LocalPod(0, "Running"), LocalPod(1, "Running"), LocalPod(2, "Running")},
       "{create: [3], active: 4, started: 0}"},
      {"less parallelism: what is not placed goes first",
       "{parallelism: 2}",
       "{}",
       {LocalPod(0, "Pending"), LocalPod(1, "Pending", "{node: here}"), LocalPod(2, "Running", "{node: here}")},
       "{remove: [p0], counted: [p0], active: 2, terminating: 1, started: 0}"},
      {"what does not run",
       "{parallelism: 2}",
       "{}",
       {LocalPod(0, "Running"), LocalPod(1, "Pending"), LocalPod(2, "Running")},
       "{remove: [p1], counted: [p1], active: 2, terminating: 1, started: 0}"},
      {"what is not ready",
       "{parallelism: 2}",
       "{}",
       {LocalPod(0, "Running", "{ready: -9}"), LocalPod(1, "Running"), LocalPod(2, "Running", "{ready: -3}")},
       "{remove: [p1], counted: [p1], active: 2, ready: 2, terminating: 1, started: 0}"},
      {"what became ready last",
       "{parallelism: 2}",
       "{}",
       {LocalPod(0, "Running", "{ready: -9}"), LocalPod(1, "Running", "{ready: -2}"),
        LocalPod(2, "Running", "{ready: -3}")},
       "{remove: [p1], counted: [p1], active: 2, ready: 2, terminating: 1, started: 0}"},
      {"what has been restarted most",
       "{parallelism: 2}",
       "{}",
       {LocalPod(0, "Running"), LocalPod(1, "Running", "{restarts: 2}"), LocalPod(2, "Running", "{restarts: 1}")},
       "{remove: [p1], counted: [p1], active: 2, terminating: 1, started: 0}"},
      {"what is newest",
       "{parallelism: 2}",
       "{}",
       {LocalPod(0, "Running"), LocalPod(1, "Running", "{created: -5}"), LocalPod(2, "Running", "{created: -6}")},
       "{remove: [p1], counted: [p1], active: 2, terminating: 1, started: 0}"},
      {"else the highest index",
       "{parallelism: 1}",
       "{}",
       {LocalPod(0, "Running"), LocalPod(1, "Running"), LocalPod(2, "Running")},
       "{remove: [p2, p1], counted: [p1, p2], active: 1, terminating: 2, started: 0}"},
      {"a second pod of an index",
       "{}",
       "{}",
       {LocalPod(0, "Running"), LocalPod(0, "Pending", "{name: q}"), LocalPod(1, "Running")},
       "{remove: [q], counted: [q], active: 2, terminating: 1, started: 0}"},
  });
}

TEST(StepJob, MakesNothingForAJobThatIsBeingDeleted) {
  Json job = LocalJob("{}");
  job["metadata"]["deletionTimestamp"] = At(-1);
  EXPECT_EQ(Shown(Stepped(job, {LocalPod(0, "Running"), LocalPod(1, "Failed")})),
            YamlOf("{counted: [p0, p1], active: 1, failed: 1, started: 0}"));
  job["spec"]["completions"] = 1;
  EXPECT_EQ(Shown(Stepped(job, {LocalPod(0, "Running"), LocalPod(0, "Succeeded", "{name: q}")})),
            YamlOf("{counted: [p0, q], active: 1, succeeded: 1, completedIndexes: '0', started: 0}"));
}

TEST(StepJob, NamesWhatCannotBeRead) {
  const auto wrong = StepJob(LocalJob("{backoffLimit: few}"), {}, kNow);
  EXPECT_TRUE(absl::IsInvalidArgument(wrong.status()));
  EXPECT_EQ(Message(wrong.status()), "spec.backoffLimit: 'few' is not a whole number");
  Json pod = LocalPod(0, "Running");
  pod["metadata"].erase("name");
  EXPECT_TRUE(absl::IsInvalidArgument(StepJob(LocalJob("{}"), {&pod}, kNow).status()));
}

}  // namespace
}  // namespace muster::local
