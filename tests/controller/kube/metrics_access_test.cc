// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/webhook/metrics_access.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::controller {
namespace {

using std::chrono::seconds;
using Step = JudgedTokens::Step;

const MetricsAnswer kAllowed, kRefused{403, "Authorization denied for user u"};

TEST(TokenReviewFor, HasTheTokenAlone) {
  EXPECT_EQ(TokenReviewFor("abc"),
            YamlOf("{apiVersion: authentication.k8s.io/v1, kind: TokenReview, spec: {token: abc}}"));
}

TEST(UserOf, IsTheUserOfAValidToken) {
  const struct {
    const char* review;
    const char* user;  // "": the token is not valid
  } rows[] = {
      {"{status: {authenticated: true, user: {username: u}}}", "{username: u}"},
      {"{status: {authenticated: true, user: {username: u, uid: '1', groups: [a, b], extra: {k: [v]}, more: 1}}}",
       "{username: u, uid: '1', groups: [a, b], extra: {k: [v]}}"},
      {"{status: {authenticated: true, user: {username: u, uid: 1, groups: a, extra: [v]}}}", "{username: u}"},
      {"{status: {authenticated: false, user: {username: u}}}", ""},
      {"{status: {user: {username: u}}}", ""},
      {"{status: {authenticated: 'true', user: {username: u}}}", ""},
      {"{status: {authenticated: true, user: {username: ''}}}", ""},
      {"{status: {authenticated: true, user: {groups: [a]}}}", ""},
      {"{status: {authenticated: true}}", ""},
      {"{status: {error: token expired}}", ""},
      {"{status: null}", ""},
      {"{}", ""},
  };
  for (const auto& row : rows) {
    const auto user = UserOf(YamlOf(row.review));
    EXPECT_EQ(user ? WriteJson(*user) : "", *row.user == 0 ? "" : WriteJson(YamlOf(row.user))) << row.review;
  }
}

TEST(AccessReviewFor, AsksWhetherTheUserMayGetTheMetrics) {
  EXPECT_EQ(AccessReviewFor(YamlOf("{username: u, uid: '1', groups: [a, b], extra: {k: [v]}}")),
            YamlOf("{apiVersion: authorization.k8s.io/v1, kind: SubjectAccessReview, spec: {user: u, uid: '1', groups: "
                   "[a, b], extra: {k: [v]}, nonResourceAttributes: {path: /metrics, verb: get}}}"));
}

TEST(JudgeAccess, AllowsOnlyWhatIsAllowed) {
  const struct {
    const char* review;
    const MetricsAnswer& answer;
  } rows[] = {
      {"{status: {allowed: true}}", kAllowed},
      {"{status: {allowed: true, denied: false, evaluationError: some}}", kAllowed},
      {"{status: {allowed: true, denied: true}}", kRefused},
      {"{status: {allowed: false, reason: no}}", kRefused},
      {"{status: {allowed: 'true'}}", kRefused},
      {"{status: {allowed: 1}}", kRefused},
      {"{status: {}}", kRefused},
      {"{status: null}", kRefused},
      {"{allowed: true}", kRefused},
      {"{}", kRefused},
  };
  for (const auto& row : rows)
    EXPECT_EQ(JudgeAccess({{"username", "u"}}, YamlOf(row.review)), row.answer) << row.review;
}

class JudgedTokensTest : public testing::Test {
 protected:
  Step Look(const std::string& digest) { return tokens_.Look(digest, now_).step; }
  // Asks and answers.
  void Judge(const std::string& digest, const MetricsAnswer& answer) {
    EXPECT_EQ(Look(digest), Step::kAsk) << digest;
    tokens_.End(digest, answer, now_);
  }

  TimePoint now_;
  JudgedTokens tokens_{{.allowed = seconds(60),
                        .refused = seconds(10),
                        .most_allowed = 2,
                        .most_refused = 3,
                        .most_asked = 2,
                        .most_waiting = 2}};
};

TEST_F(JudgedTokensTest, AnAnswerHoldsForItsTime) {
  const struct {
    MetricsAnswer answer;
    int holds;  // seconds; 0: it is not kept
  } rows[] = {{kAllowed, 60}, {kRefused, 10}, {Unauthorized(), 10}, {{500, "no"}, 0}};
  for (const auto& row : rows) {
    const std::string digest = fmt::format("{} {}", row.answer.code, row.holds);
    Judge(digest, row.answer);
    if (row.holds > 0) {
      now_ += seconds(row.holds) - std::chrono::nanoseconds(1);
      const auto next = tokens_.Look(digest, now_);
      EXPECT_EQ(next.step, Step::kAnswer) << digest;
      EXPECT_EQ(next.answer, row.answer);
      now_ += std::chrono::nanoseconds(1);
    }
    Judge(digest, row.answer);
  }
}

TEST_F(JudgedTokensTest, OneTokenIsAskedForOnceAtATime) {
  EXPECT_EQ(Look("a"), Step::kAsk);
  EXPECT_EQ(Look("a"), Step::kWait);
  EXPECT_EQ(Look("a"), Step::kWait);
  EXPECT_EQ(Look("a"), Step::kBusy);
  tokens_.End("a", {500, "no"}, now_);
  EXPECT_EQ(Look("a"), Step::kAsk);
}

TEST_F(JudgedTokensTest, TheLastAnswerCounts) {
  Judge("a", kAllowed);
  now_ += seconds(60);
  Judge("a", kRefused);
  EXPECT_EQ(tokens_.Look("a", now_).answer, kRefused);
  now_ += seconds(10);
  Judge("a", kAllowed);
  EXPECT_EQ(tokens_.Look("a", now_).answer, kAllowed);
}

TEST_F(JudgedTokensTest, TheOldestAnswerGoesOfItsKindOnly) {
  Judge("allowed", kAllowed);
  for (const char* digest : {"a", "b", "c", "d"}) {
    now_ += seconds(1);
    Judge(digest, kRefused);
  }
  EXPECT_EQ(Look("allowed"), Step::kAnswer);
  for (const char* digest : {"b", "c", "d"}) EXPECT_EQ(Look(digest), Step::kAnswer) << digest;
  EXPECT_EQ(Look("a"), Step::kAsk);
  for (const char* digest : {"second", "third"}) {
    now_ += seconds(1);
    Judge(digest, kAllowed);
  }
  EXPECT_EQ(Look("allowed"), Step::kAsk);
  EXPECT_EQ(Look("second"), Step::kAnswer);
}

TEST_F(JudgedTokensTest, StrangersLeaveRoomForTokensThatWereAllowed) {
  Judge("first", kAllowed);
  Judge("second", kAllowed);
  now_ += seconds(3600);
  EXPECT_EQ(Look("a"), Step::kAsk);
  EXPECT_EQ(Look("b"), Step::kAsk);
  EXPECT_EQ(Look("c"), Step::kBusy);
  EXPECT_EQ(Look("first"), Step::kAsk);
  EXPECT_EQ(Look("second"), Step::kAsk);
  tokens_.End("a", Unauthorized(), now_);
  EXPECT_EQ(Look("c"), Step::kAsk);
  EXPECT_EQ(Look("d"), Step::kBusy);
}

TEST_F(JudgedTokensTest, ATokenStaysKnownWhileTheApiServerCannotBeAsked) {
  Judge("known", kAllowed);
  now_ += seconds(60);
  Judge("known", {500, "no"});
  EXPECT_EQ(Look("a"), Step::kAsk);
  EXPECT_EQ(Look("b"), Step::kAsk);
  EXPECT_EQ(Look("known"), Step::kAsk);
}

}  // namespace
}  // namespace muster::controller
