// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/webhook/large_reviews.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr TimePoint kNow = TimePoint(std::chrono::hours(1));

class LargeReviewsTest : public testing::Test {
 protected:
  bool Push(const std::string& ns, size_t bytes, TimePoint since = kNow) {
    return reviews_.Push(
        ns, {.body = std::string(bytes, 'x'),
             .judge = [this, ns](const std::string& body) { judged_.push_back(fmt::format("{} {}", ns, body.size())); },
             .since = since});
  }
  std::vector<std::string> JudgeAll(TimePoint now = kNow) {
    for (auto next = reviews_.Pop(now); next.judge; next = reviews_.Pop(now)) next.judge(std::move(next.body));
    return std::exchange(judged_, {});
  }
  LargeReviews reviews_;
  std::vector<std::string> judged_;
};

TEST_F(LargeReviewsTest, NamespacesTakeTurns) {
  for (size_t size : {1, 2, 3}) EXPECT_TRUE(Push("flood", size));
  EXPECT_TRUE(Push("other", 4));
  EXPECT_TRUE(Push("", 5));
  EXPECT_THAT(JudgeAll(), ElementsAre("flood 1", "other 4", " 5", "flood 2", "flood 3"));
  EXPECT_THAT(JudgeAll(), IsEmpty());
}

TEST_F(LargeReviewsTest, BytesOfOneNamespaceAndOfAllAreBounded) {
  EXPECT_TRUE(Push("a", LargeReviews::kMostOfOne));
  EXPECT_FALSE(Push("a", 1));
  size_t namespaces = 1;
  while (Push(fmt::format("b{}", namespaces), LargeReviews::kMostOfOne)) ++namespaces;
  EXPECT_EQ(namespaces, LargeReviews::kMost / LargeReviews::kMostOfOne);
  EXPECT_FALSE(Push("c", 1));
  EXPECT_EQ(JudgeAll().size(), namespaces);
  EXPECT_TRUE(Push("a", LargeReviews::kMostOfOne));
  EXPECT_TRUE(Push("c", 1));
}

TEST_F(LargeReviewsTest, OnesThatNobodyAwaitsAreDropped) {
  Push("a", 1, kNow - LargeReviews::kUseful);
  Push("a", 2);
  EXPECT_THAT(JudgeAll(), ElementsAre("a 2"));
  Push("a", 3);
  EXPECT_THAT(JudgeAll(kNow + LargeReviews::kUseful), IsEmpty());
}

TEST(HeadOfReview, IsWhatComesBeforeTheObjects) {
  const std::string head = R"({"kind":"AdmissionReview","request":{"uid":"u","namespace":"team","object":{"a":")";
  EXPECT_EQ(HeadOfReview(head + std::string(1'000'000, 'x')).uid, "u");
  EXPECT_EQ(HeadOfReview(head + std::string(1'000'000, 'x')).ns, "team");
  for (const char* other : {"", "x", "{}", R"({"request":[]})", R"({"request":{"uid":1}})"}) {
    EXPECT_EQ(HeadOfReview(other).uid, "") << other;
  }
}

}  // namespace
}  // namespace muster::controller
