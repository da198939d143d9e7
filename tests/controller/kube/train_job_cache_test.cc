// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/train_job_cache.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "controller/kube/client/freshness.h"

namespace muster::controller {
namespace {

class TrainJobCacheTest : public ::testing::Test {
 protected:
  void PutJobSet(int version, bool suspended) {
    cache_.Put(kJobSets, {{"metadata",
                           {{"name", "a"},
                            {"namespace", "ns"},
                            {"uid", "uid-of-the-jobset"},
                            {"resourceVersion", fmt::format("{}", version)},
                            {"ownerReferences",
                             {{{"apiVersion", "trainer.kubeflow.org/v1alpha1"},
                               {"kind", "TrainJob"},
                               {"name", "a"},
                               {"uid", "uid-of-a"},
                               {"controller", true}}}}}},
                          {"spec", {{"suspend", suspended}}}});
  }

  const std::optional<ObservedJobSet>& JobSet() {
    TrainJob job;
    job.meta.ns = "ns";
    job.meta.name = "a";
    job.meta.uid = "uid-of-a";
    return cache_.Of(job).job_set;
  }

  boost::asio::io_context loop_;
  ApiClient client_{loop_, {.server = "http://127.0.0.1:1"}, {}};  // no request is made
  RuntimeCache runtimes_{loop_, client_, ""};
  TrainJobCache cache_{
      loop_, client_, {.changed = [](const auto&) {}, .gone = [](const auto&, const Meta&) {}}, "", runtimes_};
};

// The answer to a write comes before the watch's events of earlier states.
TEST_F(TrainJobCacheTest, AnOlderStateOfAJobSetIsDropped) {
  EXPECT_FALSE(JobSet());
  PutJobSet(10, true);
  PutJobSet(9, false);
  ASSERT_TRUE(JobSet());
  EXPECT_TRUE(JobSet()->suspended);
  PutJobSet(11, false);
  EXPECT_FALSE(JobSet()->suspended);
}

// The answer to the creation of an object whose kind is not watched would stay for ever.
TEST_F(TrainJobCacheTest, WhatIsNotWatchedIsNotKept) {
  cache_.Put(kPodGroups, {{"metadata", {{"name", "a"}, {"namespace", "ns"}, {"uid", "u"}, {"resourceVersion", "1"}}}});
  TrainJob job;
  job.meta.ns = "ns";
  job.meta.name = "a";
  EXPECT_FALSE(cache_.Of(job).pod_group);
}

}  // namespace
}  // namespace muster::controller
