// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/pod_object.h"

#include <gtest/gtest.h>

#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

TEST(PodOfJob, IsWhatTheJobControllerWouldMake) {
  const Json job = Json::parse(R"({
    "apiVersion": "batch/v1", "kind": "Job",
    "metadata": {"name": "a-node-0", "namespace": "team", "uid": "u1", "labels": {"of": "the Job"}},
    "spec": {"template": {
      "metadata": {"labels": {"batch.kubernetes.io/controller-uid": "u1"}, "annotations": {"x": "y"},
                   "finalizers": ["example.com/log"]},
      "spec": {"restartPolicy": "Never", "subdomain": "a",
               "initContainers": [{"name": "muster-agent"}],
               "containers": [{"name": "node", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "mine"}]},
                              {"name": "side"}]}}}})");
  const auto pod = PodOfJob(job, 1, "a-node-0-1-abcde");
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(*pod, Json::parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {
      "name": "a-node-0-1-abcde", "namespace": "team",
      "labels": {"batch.kubernetes.io/controller-uid": "u1", "batch.kubernetes.io/job-completion-index": "1"},
      "annotations": {"x": "y", "batch.kubernetes.io/job-completion-index": "1"},
      "finalizers": ["example.com/log", "batch.kubernetes.io/job-tracking"],
      "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "a-node-0", "uid": "u1",
                           "controller": true, "blockOwnerDeletion": true}]},
    "spec": {
      "restartPolicy": "Never", "subdomain": "a", "hostname": "a-node-0-1",
      "initContainers": [{"name": "muster-agent", "env": [{"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef":
        {"fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"}}}]}],
      "containers": [{"name": "node", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "mine"}]},
                     {"name": "side", "env": [{"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef":
        {"fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"}}}]}]}})"));
}

TEST(PodOfJob, WantsATemplate) {
  for (const char* spec : {"null", "{}", R"({"template": 3})", R"({"template": {"spec": []}})"}) {
    const Json job = {{"metadata", {{"name", "a"}, {"namespace", "n"}, {"uid", "u"}}}, {"spec", Json::parse(spec)}};
    EXPECT_TRUE(absl::IsInvalidArgument(PodOfJob(job, 0, "p").status())) << spec;
  }
}

TEST(ReplacementPodName, FitsWhereTheJobsNameIsLong) {
  EXPECT_EQ(ReplacementPodName("a-node-0", 12, "u").substr(0, 12), "a-node-0-12-");
  EXPECT_EQ(ReplacementPodName(std::string(55, 'a'), 1234567, "u").size(), 63U);
  EXPECT_NE(ReplacementPodName("a", 0, "u"), ReplacementPodName("a", 0, "v"));
}

}  // namespace
}  // namespace muster::controller
