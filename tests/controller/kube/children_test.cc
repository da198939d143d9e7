// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/children.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::controller {
namespace {

Meta Named(const std::string& name, const std::string& version, const std::string& owner_uid) {
  Meta meta;
  meta.ns = "default";
  meta.name = name;
  meta.uid = "uid-" + name;
  meta.resource_version = version;
  meta.labels["jobset.sigs.k8s.io/jobset-name"] = "a";
  meta.owners = {{"trainer.kubeflow.org/v1alpha1", "TrainJob", "a", owner_uid, true}};
  return meta;
}

Meta TrainJobA(const std::string& uid = "uid-a") {
  Meta meta;
  meta.ns = "default";
  meta.name = "a";
  meta.uid = uid;
  return meta;
}

ObservedJob JobAt(const std::string& version, int active, const std::string& owner_uid = "uid-a") {
  ObservedJob job;
  job.meta = Named("a-node-0", version, owner_uid);
  job.active = active;
  return job;
}

class ChildrenTest : public ::testing::Test {
 protected:
  // Puts the object. Returns the keys of the jobs that changed by it, as one text.
  template <class Object>
  std::string Put(Object object) {
    changed_.clear();
    children_.Put(std::move(object));
    return changed_;
  }
  std::string Remove(const Resource& resource, const std::string& name, const std::string& ns = "default") {
    changed_.clear();
    children_.Remove(resource, {ns, name, ""});
    return changed_;
  }
  const Observed& Of(const Meta& job = TrainJobA()) { return children_.Of(job); }

  std::string changed_;
  Children children_{TrainJobOf, [this](const std::string& job) { changed_ += job; }};
};

constexpr char kA[] = "default/a";

TEST_F(ChildrenTest, AnOlderStateIsDropped) {
  EXPECT_EQ(Put(JobAt("10", 1)), kA);
  EXPECT_EQ(Put(JobAt("9", 2)), "");
  EXPECT_EQ(Put(JobAt("11", 3)), kA);
  ASSERT_EQ(Of().jobs.size(), 1U);
  EXPECT_EQ(Of().jobs[0].active, 3);
}

TEST_F(ChildrenTest, WhatIsKnownIsNoNews) {
  EXPECT_EQ(Put(JobAt("10", 1)), kA);
  EXPECT_EQ(Put(JobAt("10", 1)), "");
}

TEST_F(ChildrenTest, ARecreatedObjectReplacesTheOther) {
  Put(JobAt("10", 1));
  ObservedJob other = JobAt("9", 2);
  other.meta.uid = "another";
  EXPECT_EQ(Put(other), kA);
  EXPECT_EQ(Of().jobs[0].active, 2);
}

TEST_F(ChildrenTest, PodsComeAndGoInAnyOrder) {
  const auto names = [this] {
    std::set<std::string> all;
    for (const ObservedPod& pod : Of().pods) all.insert(pod.meta.name + pod.phase);
    return all;
  };
  const auto put = [this](const std::string& name, const std::string& version, const std::string& phase) {
    ObservedPod pod;
    pod.meta = Named(name, version, "uid-of-its-job");
    pod.phase = phase;
    return Put(std::move(pod));
  };
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(put(name, "1", "-new"), kA);
  EXPECT_EQ(Remove(kPods, "a"), kA);
  EXPECT_EQ(put("c", "2", "-runs"), kA);
  EXPECT_EQ(put("c", "1", "-old"), "");
  EXPECT_EQ(names(), (std::set<std::string>{"b-new", "c-runs"}));
  EXPECT_EQ(Remove(kPods, "c"), kA);
  EXPECT_EQ(Remove(kPods, "c"), "");
  EXPECT_EQ(Remove(kPods, "b"), kA);
  EXPECT_EQ(names(), (std::set<std::string>{}));
  EXPECT_EQ(put("b", "1", "-again"), kA);
  EXPECT_EQ(names(), (std::set<std::string>{"b-again"}));
}

TEST_F(ChildrenTest, ARefusalIsOfItsJobAlone) {
  const auto refusal = [](const std::string& event, const std::string& uid, int second) {
    ObservedRefusal made;
    made.meta.ns = "default";
    made.meta.name = event;
    made.job = "a-node-0";
    made.job_uid = uid;
    made.why = event;
    made.last = WallTime(std::chrono::seconds(second));
    return made;
  };
  EXPECT_EQ(Put(refusal("early", "uid-a-node-0", 5)), "");  // before its Job is known
  Put(JobAt("10", 1));
  EXPECT_EQ(Of().jobs[0].refusal, "early");
  EXPECT_EQ(Put(refusal("late", "uid-a-node-0", 7)), kA);
  EXPECT_EQ(Put(refusal("old", "uid-a-node-0", 6)), kA);
  Put(refusal("other", "uid-of-an-earlier-job", 8));
  ObservedRefusal of_a_stranger = refusal("stranger", "uid-a-node-0", 9);
  of_a_stranger.meta.ns = "elsewhere";
  EXPECT_EQ(Put(of_a_stranger), "");
  EXPECT_EQ(Of().jobs[0].refusal, "late");
  EXPECT_EQ(Of().jobs[0].refused_at, WallTime(std::chrono::seconds(7)));
  Remove(kEvents, "stranger", "elsewhere");
  Remove(kEvents, "early", "default");
  EXPECT_EQ(Of().jobs[0].refusal, "late");
  Remove(kEvents, "late", "default");
  EXPECT_EQ(Of().jobs[0].refusal, "");
}

TEST_F(ChildrenTest, OnlyWhatTheTrainJobControls) {
  Put(JobAt("1", 1, "uid-of-an-earlier-a"));
  EXPECT_TRUE(Of().jobs.empty());
  EXPECT_EQ(Of(TrainJobA("uid-of-an-earlier-a")).jobs.size(), 1U);
  ObservedService service;
  service.meta = Named("a", "1", "uid-a");
  EXPECT_EQ(Put(service), kA);
  EXPECT_EQ(Of().services.size(), 1U) << "the decision looks who controls it";
}

TEST_F(ChildrenTest, AnOlderStateOfAServiceIsDropped) {
  const auto put = [this](const std::string& version, const std::string& owner) {
    ObservedService service;
    service.meta = Named("a", version, owner);
    Put(service);
    return Of().services.at(0).meta.owners.at(0).uid;
  };
  EXPECT_EQ(put("10", "uid-a"), "uid-a");
  EXPECT_EQ(put("9", "uid-of-an-earlier-a"), "uid-a");
  EXPECT_EQ(put("11", "uid-of-a-later-a"), "uid-of-a-later-a");
}

TEST_F(ChildrenTest, WhatGoesTellsWhoseItWas) {
  Put(JobAt("1", 1));
  ObservedService service;
  service.meta = Named("a", "1", "uid-a");
  Put(service);
  EXPECT_EQ(Remove(kJobs, "a-node-0"), kA);
  EXPECT_EQ(Remove(kJobs, "a-node-0"), "");
  EXPECT_EQ(Remove(kServices, "a"), kA);
  EXPECT_EQ(Remove(kPods, "x"), "");
  EXPECT_TRUE(Of().jobs.empty());
}

TEST_F(ChildrenTest, WithoutJobSetsLabelItIsNobodys) {
  ObservedJob job = JobAt("1", 1);
  job.meta.labels.clear();
  EXPECT_EQ(Put(job), "");
}

TEST(IsOlder, ByNumbers) {
  auto at = [](const char* version) {
    Meta meta;
    meta.resource_version = version;
    return meta;
  };
  EXPECT_TRUE(IsOlder(at("9"), at("10")));
  EXPECT_FALSE(IsOlder(at("10"), at("9")));
  EXPECT_FALSE(IsOlder(at("10"), at("10")));
  EXPECT_FALSE(IsOlder(at(""), at("10")));
  EXPECT_FALSE(IsOlder(at("x"), at("10")));
}

TEST_F(ChildrenTest, AnEventIsOfItsPodAlone) {
  const auto event = [](const std::string& ns, const std::string& uid, const std::string& why, int second) {
    ObservedPodEvent made;
    made.meta.ns = ns;
    made.pod = "p";
    made.pod_uid = uid;
    made.reason = why;
    made.last = WallTime(std::chrono::seconds(second));
    return made;
  };
  EXPECT_EQ(Put(event("default", "uid-p", "FailedMount", 5)), "") << "the pod is not known";
  ObservedPod pod;
  pod.meta = Named("p", "1", "uid-of-its-job");
  Put(pod);
  EXPECT_EQ(Put(event("other", "uid-p", "Lie", 9)), "");
  EXPECT_EQ(Put(event("default", "uid-of-an-earlier-p", "Old", 9)), "");
  EXPECT_EQ(Put(event("default", "uid-p", "FailedMount", 5)), kA);
  EXPECT_EQ(Put(event("default", "uid-p", "Older", 4)), "");
  pod.meta.resource_version = "2";
  EXPECT_EQ(Put(pod), kA);
  EXPECT_EQ(Of().pods[0].event.reason, "FailedMount") << "a newer state keeps it";
  pod.meta.uid = "uid-of-the-next-p";
  pod.meta.resource_version = "3";
  EXPECT_EQ(Put(pod), kA);
  EXPECT_EQ(Of().pods[0].event.reason, "");
}

}  // namespace
}  // namespace muster::controller
