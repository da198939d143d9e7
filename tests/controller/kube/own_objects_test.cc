// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/own_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/kube/jobs/children.h"
#include "controller/reconcile/repair.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OwnObjectsTest : public ::testing::Test {
 protected:
  Json Scaler(int version, int most, const std::string& job = "a") {
    return {{"apiVersion", "autoscaling/v2"},
            {"kind", kAutoscalerKind},
            {"metadata",
             {{"name", "a"},
              {"namespace", "ns"},
              {"uid", "u"},
              {"resourceVersion", std::to_string(version)},
              {"labels", {{"jobset.sigs.k8s.io/jobset-name", job}}}}},
            {"spec", {{"maxReplicas", most}}},
            {"status", {{"observedGeneration", version}}}};
  }
  // The jobs whose objects have changed since the last call.
  std::vector<std::string> Changed() { return std::exchange(changed_, {}); }

  std::vector<std::string> changed_;
  OwnObjects objects_{TrainJobOf, [this](const std::string& job) { changed_.push_back(job); }};
};

TEST_F(OwnObjectsTest, OnlyWhatAPlanSetsIsNews) {
  objects_.Put(Scaler(10, 4));
  EXPECT_THAT(Changed(), ElementsAre("ns/a"));
  objects_.Put(Scaler(11, 4));
  EXPECT_THAT(Changed(), IsEmpty()) << "the status alone is another";
  objects_.Put(Scaler(12, 9));
  EXPECT_THAT(Changed(), ElementsAre("ns/a"));
  objects_.Put(Scaler(11, 4));
  EXPECT_THAT(Changed(), IsEmpty()) << "an older state";
  ASSERT_EQ(objects_.Of("ns/a").size(), 1U);
  EXPECT_EQ(objects_.Of("ns/a")[0].fields.Unpack()["spec"]["maxReplicas"], 9);
}

TEST_F(OwnObjectsTest, ADeletedObjectIsForgotten) {
  objects_.Put(Scaler(10, 4));
  Changed();
  objects_.Remove(kConfigMapKind, {"ns", "a", "11"});
  objects_.Remove(kAutoscalerKind, {"ns", "a", "9"});
  EXPECT_THAT(Changed(), IsEmpty()) << "another kind, and an earlier one of that name";
  objects_.Remove(kAutoscalerKind, {"ns", "a", "11"});
  EXPECT_THAT(Changed(), ElementsAre("ns/a"));
  EXPECT_THAT(objects_.Of("ns/a"), IsEmpty());
}

TEST_F(OwnObjectsTest, ALabelNamesAnotherJob) {
  objects_.Put(Scaler(10, 4));
  Changed();
  objects_.Put(Scaler(11, 4, "b"));
  EXPECT_THAT(Changed(), ElementsAre("ns/a", "ns/b"));
  EXPECT_THAT(objects_.Of("ns/a"), IsEmpty());
  EXPECT_EQ(objects_.Of("ns/b").size(), 1U);
}

}  // namespace
}  // namespace muster::controller
