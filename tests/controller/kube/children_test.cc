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

TEST(Children, AnOlderStateIsDropped) {
  Children children;
  EXPECT_TRUE(children.Put(JobAt("10", 1)));
  EXPECT_FALSE(children.Put(JobAt("9", 2)));
  EXPECT_TRUE(children.Put(JobAt("11", 3)));
  ASSERT_EQ(children.Of(TrainJobA(), "a").jobs.size(), 1U);
  EXPECT_EQ(children.Of(TrainJobA(), "a").jobs[0].active, 3);
}

TEST(Children, WhatIsKnownIsNoNews) {
  Children children;
  EXPECT_TRUE(children.Put(JobAt("10", 1)));
  EXPECT_FALSE(children.Put(JobAt("10", 1)));
}

TEST(Children, AnObjectMadeAnewReplacesTheOther) {
  Children children;
  children.Put(JobAt("10", 1));
  ObservedJob other = JobAt("9", 2);
  other.meta.uid = "another";
  EXPECT_TRUE(children.Put(other));
  EXPECT_EQ(children.Of(TrainJobA(), "a").jobs[0].active, 2);
}

TEST(Children, PodsComeAndGoInAnyOrder) {
  Children children;
  const auto names = [&children] {
    std::set<std::string> all;
    for (const ObservedPod& pod : children.Of(TrainJobA(), "a").pods) all.insert(pod.meta.name + pod.phase);
    return all;
  };
  const auto put = [&children](const std::string& name, const std::string& version, const std::string& phase) {
    ObservedPod pod;
    pod.meta = Named(name, version, "uid-of-its-job");
    pod.phase = phase;
    return children.Put(std::move(pod));
  };
  for (const char* name : {"a", "b", "c"}) EXPECT_TRUE(put(name, "1", "-new"));
  EXPECT_EQ(children.RemovePod({"default", "a", ""}), "default/a");
  EXPECT_TRUE(put("c", "2", "-runs"));
  EXPECT_FALSE(put("c", "1", "-old"));
  EXPECT_EQ(names(), (std::set<std::string>{"b-new", "c-runs"}));
  EXPECT_EQ(children.RemovePod({"default", "c", ""}), "default/a");
  EXPECT_EQ(children.RemovePod({"default", "c", ""}), "");
  EXPECT_EQ(children.RemovePod({"default", "b", ""}), "default/a");
  EXPECT_EQ(names(), (std::set<std::string>{}));
  EXPECT_TRUE(put("b", "1", "-again"));
  EXPECT_EQ(names(), (std::set<std::string>{"b-again"}));
}

TEST(Children, ARefusalIsOfItsJobAlone) {
  Children children;
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
  EXPECT_EQ(children.Put(refusal("early", "uid-a-node-0", 5)), "");  // before its Job is known
  children.Put(JobAt("10", 1));
  EXPECT_EQ(children.Of(TrainJobA(), "a").jobs[0].refusal, "early");
  EXPECT_EQ(children.Put(refusal("late", "uid-a-node-0", 7)), "default/a");
  EXPECT_EQ(children.Put(refusal("old", "uid-a-node-0", 6)), "default/a");
  children.Put(refusal("other", "uid-of-an-earlier-job", 8));
  ObservedRefusal of_a_stranger = refusal("stranger", "uid-a-node-0", 9);
  of_a_stranger.meta.ns = "elsewhere";
  EXPECT_EQ(children.Put(of_a_stranger), "");
  EXPECT_EQ(children.Of(TrainJobA(), "a").jobs[0].refusal, "late");
  EXPECT_EQ(children.Of(TrainJobA(), "a").jobs[0].refused_at, WallTime(std::chrono::seconds(7)));
  children.RemoveRefusal({"elsewhere", "stranger", ""});
  children.RemoveRefusal({"default", "early", ""});
  EXPECT_EQ(children.Of(TrainJobA(), "a").jobs[0].refusal, "late");
  children.RemoveRefusal({"default", "late", ""});
  EXPECT_EQ(children.Of(TrainJobA(), "a").jobs[0].refusal, "");
}

TEST(Children, OnlyWhatTheTrainJobControls) {
  Children children;
  children.Put(JobAt("1", 1, "uid-of-an-earlier-a"));
  EXPECT_TRUE(children.Of(TrainJobA(), "a").jobs.empty());
  EXPECT_EQ(children.Of(TrainJobA("uid-of-an-earlier-a"), "a").jobs.size(), 1U);
  children.PutService(Named("a", "1", "uid-a"));
  EXPECT_TRUE(children.Of(TrainJobA(), "a").service);
  EXPECT_FALSE(children.Of(TrainJobA("other"), "a").service);
  EXPECT_FALSE(children.Of(TrainJobA(), "sub").service);
}

TEST(Children, AnOlderStateOfAServiceIsDropped) {
  Children children;
  children.PutService(Named("a", "10", "uid-a"));
  children.PutService(Named("a", "9", "uid-of-an-earlier-a"));
  EXPECT_TRUE(children.Of(TrainJobA(), "a").service);
  children.PutService(Named("a", "11", "uid-of-a-later-a"));
  EXPECT_FALSE(children.Of(TrainJobA(), "a").service);
}

TEST(Children, WhatGoesTellsWhoseItWas) {
  Children children;
  children.Put(JobAt("1", 1));
  children.PutService(Named("a", "1", "uid-a"));
  EXPECT_EQ(children.RemoveJob({"default", "a-node-0", ""}), "default/a");
  EXPECT_EQ(children.RemoveJob({"default", "a-node-0", ""}), "");
  EXPECT_EQ(children.RemoveService({"default", "a", ""}), "default/a");
  EXPECT_EQ(children.RemovePod({"default", "x", ""}), "");
  EXPECT_TRUE(children.Of(TrainJobA(), "a").jobs.empty());
}

TEST(Children, WithoutJobSetsLabelItIsNobodys) {
  Children children;
  ObservedJob job = JobAt("1", 1);
  job.meta.labels.clear();
  EXPECT_FALSE(children.Put(job));
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

TEST(Children, AnEventIsOfItsPodAlone) {
  Children children;
  const auto event = [](const std::string& ns, const std::string& uid, const std::string& why, int second) {
    ObservedPodEvent made;
    made.meta.ns = ns;
    made.pod = "p";
    made.pod_uid = uid;
    made.reason = why;
    made.last = WallTime(std::chrono::seconds(second));
    return made;
  };
  EXPECT_EQ(children.Put(event("default", "uid-p", "FailedMount", 5)), "") << "the pod is not known";
  ObservedPod pod;
  pod.meta = Named("p", "1", "uid-of-its-job");
  children.Put(pod);
  EXPECT_EQ(children.Put(event("other", "uid-p", "Lie", 9)), "");
  EXPECT_EQ(children.Put(event("default", "uid-of-an-earlier-p", "Old", 9)), "");
  EXPECT_EQ(children.Put(event("default", "uid-p", "FailedMount", 5)), "default/a");
  EXPECT_EQ(children.Put(event("default", "uid-p", "Older", 4)), "");
  pod.meta.resource_version = "2";
  EXPECT_TRUE(children.Put(pod));
  EXPECT_EQ(children.Of(TrainJobA(), "a").pods[0].event.reason, "FailedMount") << "a newer state keeps it";
  pod.meta.uid = "uid-of-the-next-p";
  pod.meta.resource_version = "3";
  EXPECT_TRUE(children.Put(pod));
  EXPECT_EQ(children.Of(TrainJobA(), "a").pods[0].event.reason, "");
}

}  // namespace
}  // namespace muster::controller
