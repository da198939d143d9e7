// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/observed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "controller/reconcile/deciding.h"
#include "tests/controller/api/yaml_of.h"
#include "tests/controller/kube/protobuf_writer.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

Json Pod(const Json& status) {
  return {{"metadata",
           {{"name", "a-node-0-1-x"},
            {"namespace", "default"},
            {"labels",
             {{"batch.kubernetes.io/job-name", "a-node-0"},
              {"batch.kubernetes.io/job-completion-index", "1"},
              {"jobset.sigs.k8s.io/restart-attempt", "2"}}}}},
          {"spec", {{"nodeName", "n1"}}},
          {"status", status}};
}

Json Terminated(int code, const std::string& message) {
  return {{"phase", "Failed"},
          {"containerStatuses",
           {{{"name", "node"},
             {"state",
              {{"terminated",
                {{"exitCode", code},
                 {"reason", "Error"},
                 {"finishedAt", "2026-11-22T01:02:03Z"},
                 {"message", message}}}}}}}}};
}

// What is read of `object`, which must be the same from JSON and from protobuf.
StatusOr<ObservedPod> PodOf(const Json& object) {
  const std::string message = protobuf::Message(object, *ProtobufOf("v1", "Pod"));
  auto pod = ReadPod(object);
  const auto same = ReadPod(ObjectView(message, *ProtobufOf("v1", "Pod")));
  EXPECT_EQ(pod.status(), same.status()) << object;
  EXPECT_TRUE(!pod.ok() || *pod == *same) << object;
  return pod;
}
StatusOr<ObservedJob> JobOf(const Json& object) {
  const std::string message = protobuf::Message(object, *ProtobufOf("batch/v1", "Job"));
  auto job = ReadJob(object);
  const auto same = ReadJob(ObjectView(message, *ProtobufOf("batch/v1", "Job")));
  EXPECT_EQ(job.status(), same.status()) << object;
  EXPECT_TRUE(!job.ok() || *job == *same) << object;
  return job;
}

TEST(ReadPod, ReadsThePlaceOfAPodAndItsEnd) {
  const auto pod = PodOf(Pod(Terminated(3, "no JSON")));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->job, "a-node-0");
  EXPECT_EQ(pod->index, 1);
  EXPECT_EQ(pod->attempt, 2);
  EXPECT_EQ(pod->node, "n1");
  ASSERT_EQ(pod->ends.size(), 1U);
  EXPECT_EQ(pod->ends[0].exit_code, 3);
  EXPECT_EQ(pod->ends[0].text, "no JSON");
  EXPECT_FALSE(pod->ends[0].message.has_value());
}

TEST(ReadPod, TheHostNameIsTheNodesOnTheHostNetwork) {
  struct Row {
    const char* spec;
    const char* host;
  };
  for (const Row& row : {Row{"{nodeName: n1}", ""}, Row{"{nodeName: n1, hostname: a-node-0-1}", "a-node-0-1"},
                         Row{"{nodeName: n1, hostname: a-node-0-1, hostNetwork: true}", "n1"}}) {
    Json pod = Pod(Terminated(3, ""));
    pod["spec"] = YamlOf(row.spec);
    EXPECT_EQ(PodOf(pod)->host, row.host) << row.spec;
  }
}

TEST(ReadPod, AMessageCountsWhereItTellsOfThatEnd) {
  TerminationMessage message;
  message.exit_code = 3;
  message.exit_class = ExitClass::kFatal;
  message.reason = "why";
  const std::string line = EncodeTerminationMessage(message);
  EXPECT_EQ(PodOf(Pod(Terminated(3, line)))->ends[0].message->reason, "why");
  const auto forged = PodOf(Pod(Terminated(137, line)));
  EXPECT_FALSE(forged->ends[0].message.has_value());
  EXPECT_EQ(forged->ends[0].text, line);
}

// What containerd and the kubelet report of a container whose machine has lost its power.
TEST(ReadPod, OfAnEndThatNobodySawTheAgentsWordCounts) {
  TerminationMessage message;
  message.exit_class = ExitClass::kSuccess;
  message.reason = "all workers succeeded";
  const std::string success = EncodeTerminationMessage(message);
  message.exit_code = 134;
  message.exit_class = ExitClass::kRetryable;
  const std::string failure = EncodeTerminationMessage(message);
  struct Row {
    const char* reason;
    int code;
    std::string message;
    bool unseen;
    int means;
    bool succeeded;
  };
  const Row rows[] = {
      {"Unknown", 255, "", true, 255, false},
      {"ContainerStatusUnknown", 137, "", true, 137, false},
      {"Unknown", 255, success, false, 0, true},
      {"ContainerStatusUnknown", 137, failure, false, 134, false},
      {"Unknown", 137, "", false, 137, false},
      {"Error", 255, success, false, 255, false},
      {"StartError", 128, "failed to create containerd task: failed to create shim task: context canceled", true, 128,
       false},
      {"StartError", 128,
       "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
       "exec: \"nope\": executable file not found in $PATH",
       false, 128, false}};
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("{} {} {}", row.reason, row.code, row.message));
    Json status = Terminated(row.code, row.message);
    status["containerStatuses"][0]["state"]["terminated"]["reason"] = row.reason;
    const auto pod = PodOf(Pod(status));
    ASSERT_TRUE(pod.ok()) << pod.status();
    EXPECT_EQ(pod->ends[0].unseen, row.unseen);
    EXPECT_EQ(pod->ends[0].exit_code, row.means);
    EXPECT_EQ(HasSucceeded(*pod, WallTime{}), row.succeeded);
  }
}

TEST(ReadPod, ATextIsBoundedAndNoCharacterCut) {
  std::string text(1023, 'a');
  text += "\u00e9\u00e9";
  const auto pod = PodOf(Pod(Terminated(1, text)));
  EXPECT_EQ(pod->ends[0].text, std::string(1023, 'a'));
}

TEST(ReadPod, TheLastEndOfAContainerThatRunsAgain) {
  const auto pod = PodOf(Pod({{"phase", "Running"},
                              {"containerStatuses",
                               {{{"name", "node"},
                                 {"state", {{"running", Json::object()}}},
                                 {"lastState", {{"terminated", {{"exitCode", 137}, {"reason", "OOMKilled"}}}}}}}}}));
  ASSERT_EQ(pod->ends.size(), 1U);
  EXPECT_EQ(pod->ends[0].reason, "OOMKilled");
}

TEST(ReadPod, WhatItWaitsFor) {
  const auto waiting = [](const char* reason) {
    return PodOf(
               Pod({{"phase", "Pending"},
                    {"initContainerStatuses",
                     {{{"name", "muster-agent"}, {"state", {{"waiting", {{"reason", reason}, {"message", "m"}}}}}}}}}))
        ->waiting;
  };
  EXPECT_EQ(waiting("ImagePullBackOff"), "ImagePullBackOff: container muster-agent: m");
  EXPECT_EQ(waiting("PodInitializing"), "");
  const auto pod = PodOf(Pod(
      {{"conditions",
        {{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}, {"message", "0/1 nodes"}}}}}));
  EXPECT_EQ(pod->waiting, "Unschedulable: 0/1 nodes");
}

// The kubelet counts a restart when the container starts; a failure counts when it ends.
TEST(ReadPod, AFailureCountsWhenTheContainerHasEnded) {
  const Json end = {{"terminated", {{"exitCode", 1}}}};
  const struct {
    const char* policy;
    Json state, last;
    int count, wanted;
  } rows[] = {
      {"OnFailure", end, Json::object(), 0, 1},
      {"OnFailure", {{"waiting", {{"reason", "CrashLoopBackOff"}}}}, end, 0, 1},
      {"OnFailure", {{"running", Json::object()}}, end, 1, 1},
      {"OnFailure", {{"terminated", {{"exitCode", 0}}}}, end, 1, 1},
      {"OnFailure", {{"running", Json::object()}}, Json::object(), 1, 0},
      {"Always", end, Json::object(), 2, 3},
      {"Never", end, Json::object(), 0, 0},
  };
  for (const auto& row : rows) {
    Json pod =
        Pod({{"phase", "Running"},
             {"containerStatuses",
              {{{"name", "pytorch"}, {"restartCount", row.count}, {"state", row.state}, {"lastState", row.last}}}}});
    pod["spec"]["restartPolicy"] = row.policy;
    EXPECT_EQ(PodOf(pod)->restarts, row.wanted) << row.policy << ' ' << row.state;
  }
}

TEST(ReadService, WhetherItsSelectorWasEdited) {
  const char* const labels = "jobset.sigs.k8s.io/jobset-name: a, team: b";
  const struct {
    const char* selector;
    bool wanted;
  } rows[] = {{"{jobset.sigs.k8s.io/jobset-name: a}", true},
              {"{jobset.sigs.k8s.io/jobset-name: a, team: b}", true},
              {"{jobset.sigs.k8s.io/jobset-name: other}", false},
              {"{jobset.sigs.k8s.io/jobset-name: a, more: x}", false},
              {"{}", false},
              {"null", false},
              {"{jobset.sigs.k8s.io/jobset-name: 5}", false}};
  for (const auto& row : rows) {
    const auto service = ReadService(YamlOf(fmt::format(
        "{{metadata: {{name: a, namespace: ns, labels: {{{}}}}}, spec: {{selector: {}}}}}", labels, row.selector)));
    ASSERT_TRUE(service.ok()) << service.status();
    EXPECT_EQ(service->reaches_pods, row.wanted) << row.selector;
  }
}

// computePodActions of the kubelet makes no second sandbox for a pod with restartPolicy Never.
TEST(ReadPod, ThatItIsStranded) {
  const std::string gone =
      "conditions: [{type: PodReadyToStartContainers, status: 'False', lastTransitionTime: '2026-11-22T01:02:09Z'}]";
  const std::string had = "containerStatuses: [{name: node, containerID: 'containerd://1', state: {waiting: {}}}]";
  const std::string installed =
      "initContainerStatuses: [{name: i, containerID: 'containerd://1', state: {terminated: {exitCode: 0}}}]";
  const struct {
    std::string policy, phase, status;
    bool wanted;
  } rows[] = {
      {"Never", "Pending", gone + ", " + had, true},
      {"Never", "Pending", gone + ", " + installed, true},
      {"Never", "Pending", gone + ", " + Replaced(had, "containerd://1", ""), false},  // as protobuf says it
      {"Never", "Pending", gone, false},  // its first sandbox is still to come
      {"Never", "Pending", had, false},
      {"Never", "Pending", Replaced(gone, "'False'", "'True'") + ", " + had, false},
      {"Never", "Running", gone + ", " + had, false},
      {"OnFailure", "Pending", gone + ", " + had, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.policy + " " + row.phase + " " + row.status);
    Json pod = Pod(YamlOf(fmt::format("{{phase: {}, {}}}", row.phase, row.status)));
    pod["spec"]["restartPolicy"] = row.policy;
    const auto read = PodOf(pod);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->stranded.has_value(), row.wanted);
  }
}

// In a new sandbox the kubelet runs init containers again that had succeeded. That is no failure of theirs, and it was
// the kubelet that ended the other containers.
TEST(ReadPod, ANewSandboxIsNoFailureOfTheJob) {
  const struct {
    const char *init, *end;
    int restarts;
    bool sandbox_lost;
  } rows[] = {
      {"restartCount: 1, state: {running: {startedAt: '2026-11-22T01:02:09Z'}}, lastState: {terminated: {exitCode: 0}}",
       "exitCode: 143, finishedAt: '2026-11-22T01:02:08Z'", 2, true},
      {"restartCount: 2, state: {terminated: {exitCode: 0, startedAt: '2026-11-22T01:02:08Z'}}",
       "exitCode: 137, finishedAt: '2026-11-22T01:02:08Z'", 2, true},
      {"restartCount: 1, state: {terminated: {exitCode: 0, startedAt: '2026-11-22T01:02:07Z'}}",
       "exitCode: 137, finishedAt: '2026-11-22T01:02:08Z'", 2, false},
      {"restartCount: 0, state: {terminated: {exitCode: 0, startedAt: '2026-11-22T01:02:08Z'}}",
       "exitCode: 137, finishedAt: '2026-11-22T01:02:08Z'", 2, false},
      {"restartCount: 2, state: {running: {startedAt: '2026-11-22T01:02:09Z'}}, lastState: {terminated: {exitCode: 3}}",
       "exitCode: 0, finishedAt: '2026-11-22T01:02:04Z'", 3, true},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.init);
    Json pod =
        Pod(YamlOf(fmt::format("{{phase: Running, initContainerStatuses: [{{name: wait, {}}}], containerStatuses: "
                               "[{{name: pytorch, restartCount: 1, state: {{waiting: {{}}}}, lastState: "
                               "{{terminated: {{{}}}}}}}]}}",
                               row.init, row.end)));
    pod["spec"]["restartPolicy"] = "OnFailure";
    const auto read = PodOf(pod);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->restarts, row.restarts);
    EXPECT_EQ(read->ends.back().sandbox_lost, row.sandbox_lost);
  }
}

TEST(ReadPod, HowOftenTheKubeletHasBegunThePodAnew) {
  const struct {
    const char* init;
    int lost;
  } rows[] = {
      {"{name: muster-agent, restartCount: 2, state: {terminated: {exitCode: 0}}}", 2},
      {"{name: muster-agent, restartCount: 0, state: {terminated: {exitCode: 0}}}", 0},
      {"{name: wait, restartCount: 5, state: {terminated: {exitCode: 0}}}", 0},  // it may have failed by itself
      {"{name: wait, restartCount: 5}, {name: muster-agent, restartCount: 1}", 1},
  };
  for (const auto& row : rows) {
    const auto read = PodOf(Pod(YamlOf(fmt::format("{{phase: Running, initContainerStatuses: [{}]}}", row.init))));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->sandboxes_lost, row.lost) << row.init;
  }
}

// The kubelet sets the phase seconds after it has reported the end of the last container.
TEST(ReadPod, ThatItWillFailBeforeItsPhaseSaysSo) {
  const struct {
    const char *spec, *status;
    bool wanted;
  } rows[] = {
      {"containers: [{name: a}]", "containerStatuses: [{name: a, state: {terminated: {exitCode: 1}}}]", true},
      {"containers: [{name: a}]", "containerStatuses: [{name: a, state: {terminated: {exitCode: 0}}}]", false},
      {"containers: [{name: a}]", "containerStatuses: [{name: a, lastState: {terminated: {exitCode: 1}}}]", false},
      {"containers: [{name: a, restartPolicy: OnFailure}]",
       "containerStatuses: [{name: a, state: {terminated: {exitCode: 1}}}]", false},
      {"containers: [{name: a}, {name: b}]",
       "containerStatuses: [{name: a, state: {terminated: {exitCode: 1}}}, {name: b, state: {running: {}}}]", false},
      {"containers: [{name: a}, {name: b}]", "containerStatuses: [{name: a, state: {terminated: {exitCode: 1}}}]",
       false},
      {"containers: [{name: a}, {name: b}]",
       "containerStatuses: [{name: a, state: {terminated: {exitCode: 1}}}, {name: b, state: {terminated: {exitCode: "
       "0}}}]",
       true},
      {"initContainers: [{name: i}], containers: [{name: a}]",
       "initContainerStatuses: [{name: i, state: {terminated: {exitCode: 5}}}], "
       "containerStatuses: [{name: a, state: {waiting: {reason: PodInitializing}}}]",
       true},
      {"initContainers: [{name: i, restartPolicy: Always}], containers: [{name: a}]",
       "initContainerStatuses: [{name: i, state: {terminated: {exitCode: 5}}}], "
       "containerStatuses: [{name: a, state: {running: {}}}]",
       false},
  };
  for (const auto& row : rows) {
    for (const char* policy : {"Never", "OnFailure"}) {
      for (const char* phase : {"Pending", "Running", "Failed"}) {
        const auto pod = PodOf(
            YamlOf(fmt::format("metadata: {{name: p}}\nspec: {{restartPolicy: {}, {}}}\nstatus: {{phase: {}, {}}}",
                               policy, row.spec, phase, row.status)));
        ASSERT_TRUE(pod.ok()) << pod.status();
        const bool wanted = row.wanted && policy == std::string_view("Never") && phase != std::string_view("Failed");
        EXPECT_EQ(pod->will_fail, wanted) << policy << ' ' << phase << ' ' << row.spec << ' ' << row.status;
      }
    }
  }
}

TEST(ReadPod, AnythingElseIsNoReasonToFail) {
  for (const Json& status : {Json(), Json::array(), Json{{"containerStatuses", 7}},
                             Json{{"containerStatuses", {1, nullptr, "x", {{"state", 3}}}}},
                             Json{{"containerStatuses", {{{"state", {{"terminated", {{"exitCode", "x"}}}}}}}}},
                             Json{{"conditions", {1, Json::object()}}}}) {
    EXPECT_TRUE(ReadPod(Pod(status)).ok()) << status;
  }
  EXPECT_FALSE(ReadPod(Json::object()).ok());
}

TEST(ReadJob, ReadsTheConditionsOfAJob) {
  const Json meta = {{"name", "a-node-0"}, {"namespace", "default"}};
  const auto job = JobOf(Json{{"metadata", meta},
                              {"spec", {{"parallelism", 2}, {"completions", 2}, {"suspend", true}}},
                              {"status",
                               {{"active", 1},
                                {"ready", 1},
                                {"conditions",
                                 {{{"type", "FailureTarget"},
                                   {"status", "True"},
                                   {"reason", "PodFailurePolicy"},
                                   {"message", "exit code 3"},
                                   {"lastTransitionTime", "2026-11-22T01:02:03Z"}}}}}}});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->suspended);
  EXPECT_EQ(job->pods, 2);
  EXPECT_EQ(job->failed_reason, "PodFailurePolicy");
  ASSERT_TRUE(job->failed_at.has_value());
  EXPECT_FALSE(job->complete);
}

TEST(ReadRefusal, IsOfAnEventOfAJob) {
  const Json event = {{"metadata", {{"name", "a-node-0.1"}, {"namespace", "default"}}},
                      {"involvedObject", {{"kind", "Job"}, {"name", "a-node-0"}, {"uid", "u"}}},
                      {"message", "(combined from similar events): Error creating: pods \"a\" is forbidden"},
                      {"lastTimestamp", "2026-11-22T01:02:03Z"}};
  const auto refusal = ReadRefusal(event);
  ASSERT_TRUE(refusal.ok()) << refusal.status();
  EXPECT_EQ(refusal->job + " " + refusal->job_uid, "a-node-0 u");
  EXPECT_EQ(refusal->why, "pods \"a\" is forbidden");
  EXPECT_GT(refusal->last, WallTime{});
}

TEST(ReadPod, KeepsNoLabelsThatNobodyReads) {
  const auto pod = PodOf(Json{{"metadata",
                               {{"name", "p"},
                                {"labels", {{"jobset.sigs.k8s.io/jobset-name", "a"}, {"team", "vision"}}},
                                {"annotations", {{"notes", std::string(100'000, 'x')}}}}}});
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->meta.Label("jobset.sigs.k8s.io/jobset-name"), "a");
  EXPECT_EQ(pod->meta.labels.size() + pod->meta.annotations.size(), 1U);
}

TEST(ReadPod, WhetherTheJobControllerTracksIt) {
  const auto tracked = [](const Json& finalizers) {
    const Json object = {{"metadata", {{"name", "p"}, {"finalizers", finalizers}}}};
    const auto pod = finalizers.is_array() && finalizers[0].is_string() ? PodOf(object) : ReadPod(object);
    return pod.ok() && pod->tracked;
  };
  EXPECT_TRUE(tracked({"example.com/other", "batch.kubernetes.io/job-tracking"}));
  EXPECT_FALSE(tracked({"example.com/other"}));
  EXPECT_FALSE(tracked({1, nullptr}));
  EXPECT_FALSE(tracked("batch.kubernetes.io/job-tracking"));
}

TEST(ReadJob, WhenItWasComplete) {
  const auto job =
      JobOf(Json{{"metadata", {{"name", "a-node-0"}, {"namespace", "default"}}},
                 {"status",
                  {{"conditions",
                    {{{"type", "Complete"}, {"status", "True"}, {"lastTransitionTime", "2026-11-22T01:02:03Z"}}}}}}});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->complete);
  EXPECT_TRUE(job->complete_at.has_value());
}

}  // namespace
}  // namespace muster::controller
