// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/pytorch_job_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "controller/kube/client/freshness.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PyTorchJobCacheTest : public ::testing::Test {
 protected:
  // The metadata of an object in the namespace `ns`. The uid distinguishes two objects of one name.
  static Json Metadata(const std::string& name, int version, const std::string& uid) {
    return {{"name", name},
            {"namespace", "ns"},
            {"uid", uid.empty() ? "uid-" + name : uid},
            {"generation", 1},
            {"resourceVersion", fmt::format("{}", version)}};
  }

  void PutJob(const std::string& name, int version, const std::string& uid = "", const std::string& run = "{}") {
    Json object = {{"apiVersion", kKubeflowApi}, {"kind", kPyTorchJobKind}, {"metadata", Metadata(name, version, uid)}};
    object["spec"] = YamlOf(
        "pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: x}]}}}}");
    object["spec"]["runPolicy"] = YamlOf(run);
    cache_.Put(kPyTorchJobs, object);
  }

  static Json Labels(const std::string& job) {
    Json labels = {{"training.kubeflow.org/operator-name", "pytorchjob-controller"},
                   {"training.kubeflow.org/replica-type", "worker"},
                   {"training.kubeflow.org/replica-index", "0"}};
    if (!job.empty()) labels["training.kubeflow.org/job-name"] = job;
    return labels;
  }

  void PutPod(const std::string& name, int version, const std::string& uid = "", const std::string& job = "a",
              const std::string& phase = "Running") {
    Json object = {{"metadata", Metadata(name, version, uid)}, {"status", {{"phase", phase}}}};
    object["metadata"]["labels"] = Labels(job);
    cache_.Put(kPods, object);
  }

  void PutService(const std::string& name, int version, const std::string& uid = "", const std::string& job = "a") {
    Json object = {{"metadata", Metadata(name, version, uid)}};
    object["metadata"]["labels"] = Labels(job);
    cache_.Put(kServices, object);
  }

  void Gone(const Resource& resource, const std::string& name, int version) {
    cache_.Gone(resource, {"ns", name, fmt::format("{}", version)});
  }

  const Observed& Of(const std::string& job) {
    const PyTorchJobKind::Known* known = cache_.Find("ns/" + job);
    if (known == nullptr) ADD_FAILURE() << "no job " << job;
    return cache_.Of(known == nullptr ? PyTorchJob() : known->job);
  }

  // "name uid phase"
  std::vector<std::string> Pods(const std::string& job = "a") {
    std::vector<std::string> all;
    for (const ObservedPod& pod : Of(job).pods) all.push_back(pod.meta.name + " " + pod.meta.uid + " " + pod.phase);
    return all;
  }
  std::vector<std::string> Services(const std::string& job = "a") {
    std::vector<std::string> all;
    for (const ObservedService& service : Of(job).services) all.push_back(service.meta.name + " " + service.meta.uid);
    return all;
  }
  std::vector<std::string> Heard() { return std::exchange(heard_, {}); }

  boost::asio::io_context loop_;
  ApiClient client_{loop_, {.server = "http://127.0.0.1:1"}, {}};  // no request is made
  std::vector<std::string> heard_;
  PyTorchJobCache cache_{loop_,
                         client_,
                         {.changed = [this](const std::string& key) { heard_.push_back("changed " + key); },
                          .gone = [this](const std::string& key, const Meta&) { heard_.push_back("gone " + key); }},
                         "",
                         &kVolcanoPodGroups};
};

TEST_F(PyTorchJobCacheTest, WhatBelongsToAJobWakesIt) {
  PutPod("a-worker-0", 1);  // before its job is known
  EXPECT_THAT(Heard(), IsEmpty());
  PutJob("a", 2);
  PutService("a-worker-0", 3);
  PutPod("a-worker-0", 4);
  cache_.Put(kVolcanoPodGroups, {{"metadata", Metadata("a", 5, "")}, {"status", {{"phase", "Inqueue"}}}});
  EXPECT_THAT(Heard(), ElementsAre("changed ns/a", "changed ns/a", "changed ns/a", "changed ns/a"));
  EXPECT_THAT(Pods(), ElementsAre("a-worker-0 uid-a-worker-0 Running"));
  EXPECT_THAT(Services(), ElementsAre("a-worker-0 uid-a-worker-0"));
  EXPECT_EQ(Of("a").pod_group->phase, "Inqueue");
  Gone(kPods, "a-worker-0", 6);
  Gone(kServices, "a-worker-0", 7);
  Gone(kVolcanoPodGroups, "a", 8);
  EXPECT_THAT(Heard(), ElementsAre("changed ns/a", "changed ns/a", "changed ns/a"));
  EXPECT_THAT(Pods(), IsEmpty());
  EXPECT_FALSE(Of("a").pod_group);
  Gone(kPods, "a-worker-0", 9);
  EXPECT_THAT(Heard(), IsEmpty());
  Gone(kPyTorchJobs, "a", 10);
  EXPECT_THAT(Heard(), ElementsAre("gone ns/a"));
  EXPECT_EQ(cache_.Find("ns/a"), nullptr);
}

TEST_F(PyTorchJobCacheTest, TheEndOfAnOldPodIsNotTheNewOnes) {
  PutJob("a", 1);
  PutPod("a-worker-0", 2, "old");
  PutPod("a-worker-0", 5, "new");  // the answer to its creation comes before the watch's event
  Gone(kPods, "a-worker-0", 4);
  EXPECT_THAT(Pods(), ElementsAre("a-worker-0 new Running"));
  PutPod("a-worker-0", 3, "old", "a", "Failed");
  EXPECT_THAT(Pods(), ElementsAre("a-worker-0 new Running"));
  PutService("a-worker-0", 6, "old");
  PutService("a-worker-0", 9, "new");
  Gone(kServices, "a-worker-0", 8);
  EXPECT_THAT(Services(), ElementsAre("a-worker-0 new"));
  Gone(kPods, "a-worker-0", 10);
  Gone(kServices, "a-worker-0", 11);
  EXPECT_THAT(Pods(), IsEmpty());
  EXPECT_THAT(Services(), IsEmpty());
}

TEST_F(PyTorchJobCacheTest, OlderStatesAreDropped) {
  PutJob("a", 10, "", "{backoffLimit: 2}");
  PutJob("a", 9, "", "{backoffLimit: 1}");
  EXPECT_EQ(cache_.Find("ns/a")->job.backoff_limit, 2);
  PutPod("a-worker-0", 12, "", "a", "Running");
  PutPod("a-worker-0", 11, "", "a", "Pending");
  EXPECT_THAT(Pods(), ElementsAre("a-worker-0 uid-a-worker-0 Running"));
  Heard();
  PutPod("a-worker-0", 12, "", "a", "Running");
  EXPECT_THAT(Heard(), IsEmpty()) << "what is known wakes nobody";
}

// An apply may change nothing, as others own fields of the status: its answer must wake nobody.
TEST_F(PyTorchJobCacheTest, WhatIsKnownWakesNobody) {
  PutJob("a", 2);
  PutJob("a", 2);
  EXPECT_THAT(Heard(), ElementsAre("changed ns/a"));
  PutJob("a", 3);
  EXPECT_THAT(Heard(), ElementsAre("changed ns/a"));
}

TEST_F(PyTorchJobCacheTest, ARecreatedJobBeginsWithNothing) {
  PutJob("a", 1, "old");
  cache_.Find("ns/a")->objects_generation = 1;
  cache_.Find("ns/a")->plan = std::make_shared<const PyTorchPlan>();
  EXPECT_TRUE(Of("a").has_objects);
  PutJob("a", 5, "new");
  EXPECT_EQ(cache_.Find("ns/a")->plan, nullptr);
  EXPECT_FALSE(Of("a").has_objects);
  PutJob("a", 3, "old");  // the late answer to an earlier write
  EXPECT_EQ(cache_.Find("ns/a")->job.meta.uid, "new");
  Gone(kPyTorchJobs, "a", 4);
  EXPECT_NE(cache_.Find("ns/a"), nullptr);
}

TEST_F(PyTorchJobCacheTest, EachJobHasItsOwn) {
  PutJob("a", 1);
  PutJob("b", 2);
  PutPod("a-worker-0", 3, "", "a");
  PutPod("b-worker-0", 4, "", "b");
  Heard();
  PutPod("stray", 5, "", "");
  PutPod("of-no-job", 6, "", "c");
  EXPECT_THAT(Heard(), IsEmpty());
  EXPECT_THAT(Pods("a"), ElementsAre("a-worker-0 uid-a-worker-0 Running"));
  EXPECT_THAT(Pods("b"), ElementsAre("b-worker-0 uid-b-worker-0 Running"));
}

TEST_F(PyTorchJobCacheTest, AnAnswerThatComesAfterTheDeletionBringsNothingBack) {
  PutJob("a", 1);
  PutPod("a-worker-0", 2);
  Gone(kPods, "a-worker-0", 5);
  for (const int version : {4, 5}) PutPod("a-worker-0", version);
  EXPECT_THAT(Pods(), IsEmpty());
  PutService("a-worker-0", 4);  // of another kind
  EXPECT_THAT(Services(), ElementsAre("a-worker-0 uid-a-worker-0"));
  PutPod("a-worker-0", 6, "next");
  EXPECT_THAT(Pods(), ElementsAre("a-worker-0 next Running"));
  Gone(kPyTorchJobs, "a", 8);
  PutJob("a", 7);
  EXPECT_EQ(cache_.Find("ns/a"), nullptr);
}

TEST_F(PyTorchJobCacheTest, WhatGetsAnotherJobsLabelLeavesItsOwn) {
  PutJob("a", 1);
  PutJob("b", 2);
  for (const char* name : {"x", "y"}) {
    PutPod(name, 3);
    PutService(name, 4);
  }
  Heard();
  PutPod("x", 5, "", "b");
  PutService("x", 6, "", "b");
  EXPECT_THAT(Heard(), ElementsAre("changed ns/a", "changed ns/b", "changed ns/a", "changed ns/b"));
  EXPECT_THAT(Pods("a"), ElementsAre("y uid-y Running"));
  EXPECT_THAT(Services("a"), ElementsAre("y uid-y"));
  EXPECT_THAT(Pods("b"), ElementsAre("x uid-x Running"));
  PutPod("x", 7, "", "");  // the pod loses its label
  PutService("x", 8, "", "");
  EXPECT_THAT(Pods("b"), IsEmpty());
  EXPECT_THAT(Services("b"), IsEmpty());
  PutPod("y", 2, "", "b");  // an older state
  EXPECT_THAT(Pods("a"), ElementsAre("y uid-y Running"));
  EXPECT_THAT(Pods("b"), IsEmpty());
}

TEST_F(PyTorchJobCacheTest, OnlyJobsThatAreMusters) {
  const struct {
    const char* managed_by;
    bool known;
  } rows[] = {{"", true},
              {"managedBy: kubeflow.org/training-operator", true},
              {"managedBy: kueue.x-k8s.io/multikueue", false},
              {"managedBy: \"\"", false}};
  int version = 0;
  for (const auto& row : rows) {
    PutJob("j", ++version, "", fmt::format("{{{}}}", row.managed_by));
    EXPECT_EQ(cache_.Find("ns/j") != nullptr, row.known) << row.managed_by;
    Gone(kPyTorchJobs, "j", ++version);
  }
  PutJob("a", ++version);
  Heard();
  PutJob("a", ++version, "", "{managedBy: kueue.x-k8s.io/multikueue}");
  EXPECT_THAT(Heard(), ElementsAre("gone ns/a"));
}

TEST_F(PyTorchJobCacheTest, OneThatCannotBeReadSaysWhy) {
  Json object = {{"metadata", Metadata("a", 1, "")}};
  object["spec"] = YamlOf("{pytorchReplicaSpecs: {Evaluator: {}}}");
  object["status"] = YamlOf("{restarts: 2}");
  cache_.Put(kPyTorchJobs, object);
  EXPECT_TRUE(absl::IsInvalidArgument(cache_.Find("ns/a")->unreadable));
  EXPECT_EQ(cache_.Find("ns/a")->job.status.restarts, 2);
  EXPECT_THAT(Heard(), ElementsAre("changed ns/a"));
  PutJob("a", 2);
  EXPECT_TRUE(cache_.Find("ns/a")->unreadable.ok());
}

TEST_F(PyTorchJobCacheTest, ObjectsAreAsTheirGenerationPlansThem) {
  PutJob("a", 1);
  EXPECT_FALSE(Of("a").has_objects);
  cache_.Find("ns/a")->objects_generation = 1;
  EXPECT_TRUE(Of("a").has_objects);
  cache_.Find("ns/a")->job.meta.generation = 2;
  EXPECT_FALSE(Of("a").has_objects);
}

}  // namespace
}  // namespace muster::controller
