// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/webhook/metrics_access.h"

#include <algorithm>

#include "base/text.h"
#include "controller/api/lenient.h"

namespace muster::controller {

MetricsAnswer Unauthorized() { return {401, "Unauthorized"}; }

Json TokenReviewFor(const std::string& token) {
  return {{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenReview"}, {"spec", {{"token", token}}}};
}

std::optional<Json> UserOf(const Json& token_review) {
  const Json& status = PartOf(token_review, "status");
  const Json& told = PartOf(status, "user");
  const std::string name = TextField(told, "username");
  if (!FlagField(status, "authenticated", false) || name.empty()) return std::nullopt;
  Json user = {{"username", name}};
  PutText(user, "uid", TextField(told, "uid"));
  if (const Json& groups = ListField(told, "groups"); !groups.empty()) user["groups"] = groups;
  if (const Json& extra = MapField(told, "extra"); !extra.empty()) user["extra"] = extra;
  return user;
}

Json AccessReviewFor(const Json& user) {
  Json spec = user;
  spec["user"] = TextField(user, "username");
  spec.erase("username");
  spec["nonResourceAttributes"] = {{"path", "/metrics"}, {"verb", "get"}};
  return {{"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SubjectAccessReview"}, {"spec", std::move(spec)}};
}

MetricsAnswer JudgeAccess(const Json& user, const Json& access_review) {
  const Json& status = PartOf(access_review, "status");
  if (FlagField(status, "allowed", false) && !FlagField(status, "denied", false)) return {};
  return {403, fmt::format("Authorization denied for user {}", TextField(user, "username"))};
}

JudgedTokens::Next JudgedTokens::Look(const std::string& digest, TimePoint now) {
  const auto allowed = allowed_.find(digest);
  const bool known = allowed != allowed_.end();
  if (known && now < allowed->second.since + rules_.allowed) return {Step::kAnswer, allowed->second.answer};
  const auto refused = refused_.find(digest);
  if (refused != refused_.end() && now < refused->second.since + rules_.refused) {
    return {Step::kAnswer, refused->second.answer};
  }
  if (const auto asked = asked_.find(digest); asked != asked_.end()) {
    if (asked->second.waiting >= rules_.most_waiting) return {Step::kBusy, {}};
    ++asked->second.waiting;
    return {Step::kWait, {}};
  }
  const auto same =
      std::count_if(asked_.begin(), asked_.end(), [&](const auto& one) { return one.second.known == known; });
  if (static_cast<size_t>(same) >= rules_.most_asked) return {Step::kBusy, {}};
  asked_.emplace(digest, Asked{known});
  return {Step::kAsk, {}};
}

void JudgedTokens::End(const std::string& digest, const MetricsAnswer& answer, TimePoint now) {
  asked_.erase(digest);
  const bool refused = answer.code == 401 || answer.code == 403;
  if (answer.code != 200 && !refused) return;
  allowed_.erase(digest);
  refused_.erase(digest);
  if (refused) {
    Keep(&refused_, rules_.most_refused, digest, {answer, now});
  } else {
    Keep(&allowed_, rules_.most_allowed, digest, {answer, now});
  }
}

void JudgedTokens::Keep(Answers* answers, size_t most, const std::string& digest, Kept kept) {
  if (answers->size() >= most) {
    answers->erase(std::min_element(answers->begin(), answers->end(), [](const auto& one, const auto& other) {
      return one.second.since < other.second.since;
    }));
  }
  answers->emplace(digest, std::move(kept));
}

}  // namespace muster::controller
