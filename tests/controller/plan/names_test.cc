// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/names.h"

#include <gtest/gtest.h>

#include "controller/plan/plan.h"

namespace muster::controller {
namespace {

TEST(Names, ShortOnesStay) {
  for (const std::string& name : {std::string(), std::string("a"), std::string(63, 'a')}) {
    EXPECT_EQ(ShortName(name), name);
  }
}

TEST(Names, LongOnesKeepTheirBeginning) {
  const std::string name = std::string(30, 'a') + "-" + std::string(40, 'b');
  const std::string shortened = ShortName(name);
  EXPECT_EQ(shortened.size(), 63);
  EXPECT_EQ(shortened.substr(0, 54), name.substr(0, 54));
  EXPECT_EQ(shortened, ShortName(name));
  EXPECT_NE(shortened, ShortName(name + "c"));
}

TEST(Names, NoSeparatorBeforeTheHash) {
  const std::string name = std::string(10, 'a') + "---" + std::string(60, 'b');
  const std::string shortened = ShortName(name, 22);
  EXPECT_EQ(shortened.size(), 22);
  EXPECT_EQ(shortened.substr(0, 11), std::string(10, 'a') + "-");
  EXPECT_NE(shortened[11], '-');
}

TEST(Names, ATinyLimitIsKept) {
  for (size_t most = 0; most < 12; ++most) EXPECT_EQ(ShortName(std::string(70, 'a'), most).size(), most) << most;
}

TEST(Names, JobsHaveRoomForTheIndexOfAPod) {
  EXPECT_EQ(JobName("train", "node", 0), "train-node-0");
  const std::string longest(48, 'a');  // the longest that JobSet accepts with a job `node` of ten pods
  EXPECT_EQ(JobName(longest, "node", 0), longest + "-node-0");
  const std::string longer(63, 'a');
  EXPECT_EQ(JobName(longer, "node", 0).size(), kMostJobName);
  EXPECT_NE(JobName(longer, "node", 0), JobName(longer, "node", 1));
  EXPECT_NE(JobName(longer, "node", 0), JobName(longer, "dataset-initializer", 0));
}

TEST(Names, HashesAgreeWithTheirStandards) {
  EXPECT_EQ(Sha1Hex("ns/train-node-0"), "c0dec2d614e382d8540411efcfd6338e77433f38");
  EXPECT_EQ(Sha1Hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace muster::controller
