// SPDX-License-Identifier: Apache-2.0
// Who may read the metrics: the questions to the API server, the judgement of its answers, and which answers still
// hold. Pure; untrusted input.
//
// The questions are those of controller-runtime (pkg/metrics/filters): a TokenReview says whose the token is, and a
// SubjectAccessReview says whether this user may `get` the path /metrics. One thing differs: a token that is not valid
// is answered with 401 here, and with 500 there.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/json_fields.h"

namespace muster::controller {

struct MetricsAnswer {
  int code = 200;    // HTTP status
  std::string text;  // for people; empty for 200
  bool operator==(const MetricsAnswer&) const = default;
};
// 401: there is no token, or it is not valid.
MetricsAnswer Unauthorized();

// The TokenReview (authentication.k8s.io/v1) for the audience of the API server.
Json TokenReviewFor(const std::string& token);
// username, groups, uid and extra of the user that the answered TokenReview names. nullopt: the token is not valid.
std::optional<Json> UserOf(const Json& token_review);
// The SubjectAccessReview (authorization.k8s.io/v1) for this user. HEAD needs the same right as GET.
Json AccessReviewFor(const Json& user);
// 200 or 403. A review without a decision is a refusal.
MetricsAnswer JudgeAccess(const Json& user, const Json& access_review);

// Remembers judged tokens, and decides whether a request waits, asks, or has its answer already. Knows a token by a
// digest, which the caller computes. Everything is bounded, and strangers take nothing from a token that was allowed
// before: its answer goes only for those of more such tokens, and it has questions of its own.
class JudgedTokens {
 public:
  struct Rules {
    Duration allowed = std::chrono::seconds(60), refused = std::chrono::seconds(10);  // how long an answer holds
    size_t most_allowed = 256, most_refused = 1024;  // answers that are kept; the oldest goes for a new one
    size_t most_asked = 16;   // questions under way for tokens that were allowed before, and as many for others
    size_t most_waiting = 8;  // requests that wait for the answer to one question
  };
  enum class Step {
    kAnswer,  // the answer is known
    kAsk,     // ask the API server, then call End()
    kWait,    // another request asks for the same token; its answer is also for this one
    kBusy,    // too many questions are under way, or too many requests wait for this one
  };
  struct Next {
    Step step;
    MetricsAnswer answer;  // of kAnswer
  };

  explicit JudgedTokens(Rules rules) : rules_(rules) {}
  Next Look(const std::string& digest, TimePoint now);
  // Ends the question. An answer other than 200, 401 and 403 is not kept, and leaves what is known.
  void End(const std::string& digest, const MetricsAnswer& answer, TimePoint now);

 private:
  struct Kept {
    MetricsAnswer answer;
    TimePoint since;
  };
  struct Asked {
    bool known;  // the token was allowed before
    size_t waiting = 0;
  };
  using Answers = std::map<std::string, Kept>;

  static void Keep(Answers* answers, size_t most, const std::string& digest, Kept kept);

  const Rules rules_;
  Answers allowed_, refused_;
  std::map<std::string, Asked> asked_;
};

}  // namespace muster::controller
