// SPDX-License-Identifier: Apache-2.0
#include "initializers/aws/credentials.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>

#include "base/asked_command.h"
#include "base/environment.h"
#include "base/json_fields.h"
#include "base/settings_file.h"
#include "base/text.h"
#include "http/cloud_clock.h"
#include "http/endpoint_url.h"
#include "http/percent.h"
#include "initializers/aws/answers.h"
#include "initializers/aws/s3_answers.h"
#include "initializers/stores/xml_error.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

constexpr char kForm[] = "application/x-www-form-urlencoded";
constexpr size_t kLongestAnswer = 256 << 10;
constexpr size_t kLongestPrinted = 64 << 10;                    // printed by a process
constexpr Duration kLongestProcess = std::chrono::seconds(60);  // as in the AWS SDKs
constexpr int64_t kRenewBefore = 600;                           // seconds before the expiry
constexpr auto kRenewAgain = std::chrono::seconds(60);
constexpr int64_t kTooLate = 60;  // seconds; keys with less time left are not used

using Fetched = StatusOr<TemporaryKeys>;
using FetchKeys = std::function<asio::awaitable<Fetched>()>;

// Checks the body of a good answer; PermissionDenied: the answer is valid, and refuses.
using CheckBody = std::function<Status(std::string_view)>;

std::optional<http::Refusal> JudgePlainly(const http::Answer& answer, std::string_view where, const CheckBody& check) {
  const int status = answer.head.status;
  if (status == 200) {
    const Status read = check(answer.body);
    if (read.ok() || absl::IsPermissionDenied(read)) return std::nullopt;
    // From a proxy: an HTML page, or a cut answer.
    const std::string what = fmt::format("{}: {}", where, Message(read));
    return http::Refusal{http::Refusal::Kind::kTransient, absl::UnavailableError(what), {}};
  }
  const XmlError error = ParseXmlError(answer.body);  // STS sends such errors
  const std::string what = error.code.empty() ? fmt::format("{}: {}", where, status)
                                              : fmt::format("{}: {} {}: {}", where, status, error.code, error.message);
  const bool again = status == 408 || status == 429 || status >= 500 || error.code == "IDPCommunicationError";
  if (!again) return http::Refusal{http::Refusal::Kind::kFatal, absl::PermissionDeniedError(what), {}};
  return http::Refusal{http::Refusal::Kind::kTransient, absl::UnavailableError(what),
                       http::AskedBy(answer.head, UnixSeconds())};
}

Fetched KeysOfSts(const StatusOr<std::string>& answer) {
  if (!answer.ok()) return answer.status();
  MUSTER_ASSIGN_OR_RETURN(StsCredentials said, ParseStsAnswer(*answer));
  return TemporaryKeys{{said.access_key, said.secret_key, said.session_token}, said.expires_unix};
}

Status CheckSts(std::string_view text) { return ParseStsAnswer(text).status(); }
Status CheckKeys(std::string_view text) { return ParseMachineKeys(text).status(); }
Status CheckSso(std::string_view text) { return ParseSsoKeys(text).status(); }
Status CheckWord(std::string_view text) { return ParseWord(text).status(); }

class KeptKeys final : public AwsKeySource {
 public:
  explicit KeptKeys(std::optional<AwsKeys> keys) : keys_(std::move(keys)) {}
  asio::awaitable<StatusOr<std::optional<AwsKeys>>> Get() override { co_return keys_; }
  int number() const override { return 0; }
  bool Expired(int) override { return false; }
  std::optional<std::optional<AwsKeys>> AtHand() override { return keys_; }

 private:
  const std::optional<AwsKeys> keys_;
};

// What to do if a source gives again the keys that the store called expired. A service renews its keys by itself: ask
// again. A program of the user would print its stored keys for ever: fatal.
enum class OldKeys { kAskAgain, kFatal };

// Renews the keys before they expire. One renewal at a time: other callers wait for it.
class RenewedKeys final : public AwsKeySource {
 public:
  RenewedKeys(std::string origin, std::shared_ptr<const http::CloudClock> clock, OldKeys old, FetchKeys fetch)
      : origin_(std::move(origin)), clock_(std::move(clock)), old_(old), fetch_(std::move(fetch)) {}

  asio::awaitable<StatusOr<std::optional<AwsKeys>>> Get() override {
    const auto turn = co_await http::Turn::Take(turn_);
    if (!IsDue()) co_return keys_.keys;
    Fetched fetched = co_await fetch_();
    tried_ = MonotonicClock::now();
    if (fetched.ok() && !have_ && old_ == OldKeys::kFatal && fetched->keys == keys_.keys) {  // at first keys_ is empty
      co_return absl::FailedPreconditionError(fmt::format(
          "{}: it gave the same keys again, which the store has refused as expired; have it give new ones", origin_));
    }
    if (fetched.ok()) {
      keys_ = *std::move(fetched);
      have_ = true;
      ++number_;
    } else if (Left() <= kTooLate) {
      co_return Annotate(fetched.status(), origin_);
    }
    co_return keys_.keys;
  }
  int number() const override { return number_; }
  bool Expired(int number) override {
    if (number == number_) have_ = false;
    return true;
  }
  std::optional<std::optional<AwsKeys>> AtHand() override {
    if (IsDue()) return std::nullopt;
    return keys_.keys;
  }

 private:
  // The metadata service returns the same keys until five minutes before their expiry: do not ask for each request.
  bool IsDue() const {
    const int64_t left = Left();
    return left <= kTooLate || (left <= kRenewBefore && MonotonicClock::now() - tried_ >= kRenewAgain);
  }
  int64_t Left() const {
    if (!have_) return 0;
    return keys_.expires_unix == 0 ? INT64_MAX : keys_.expires_unix - clock_->Now();
  }

  const std::string origin_;
  const std::shared_ptr<const http::CloudClock> clock_;
  const OldKeys old_;
  const FetchKeys fetch_;
  TemporaryKeys keys_;
  bool have_ = false;  // false again when the store calls them expired
  int number_ = 0;     // number of renewals
  TimePoint tried_{};
  const std::shared_ptr<http::Turn> turn_ = std::make_shared<http::Turn>();
};

// What every fetch needs; each coroutine has its own copy.
class Fetcher {
 public:
  Fetcher(http::Persistence persistence, StsPlace sts) : persistence_(std::move(persistence)), sts_(std::move(sts)) {}

  asio::awaitable<Fetched> Fetch(CredentialProcess identity) const;
  asio::awaitable<Fetched> Fetch(WebIdentity identity) const;
  asio::awaitable<Fetched> Fetch(ContainerEndpoint identity) const;
  asio::awaitable<Fetched> Fetch(InstanceMetadata identity) const;
  asio::awaitable<Fetched> Fetch(SsoCache identity) const;
  asio::awaitable<Fetched> FetchRole(AssumeRole identity, std::shared_ptr<AwsKeySource> source) const;

 private:
  asio::awaitable<StatusOr<std::string>> Say(http::Request request, http::Persistence how, CheckBody check,
                                             bool* answered = nullptr) const;
  asio::awaitable<StatusOr<std::string>> SaySigned(http::Request request, SigningRequest signing, AwsKeys keys) const;

  http::Persistence persistence_;
  StsPlace sts_;
};

asio::awaitable<StatusOr<std::string>> Fetcher::Say(http::Request request, http::Persistence how, CheckBody check,
                                                    bool* answered) const {
  auto prepare = [&request]() -> asio::awaitable<StatusOr<http::Request>> { co_return request; };
  auto judge = [&](const http::Answer& answer) {
    if (answered != nullptr) *answered = true;
    http::HearClock(how, answer.head, http::WithoutQuery(request.url));  // the clock by which the keys expire
    return JudgePlainly(answer, http::WithoutQuery(request.url), check);
  };
  auto answer = co_await http::AskedUntilAnswered(how, kLongestAnswer, prepare, judge);
  if (!answer.ok()) co_return answer.status();
  co_return std::move(answer->body);
}

asio::awaitable<StatusOr<std::string>> Fetcher::SaySigned(http::Request request, SigningRequest signing,
                                                          AwsKeys keys) const {
  auto prepare = [&]() -> asio::awaitable<StatusOr<http::Request>> {
    http::Request signed_now = request;
    for (auto& header : Sign(signing, {sts_.region, "sts"}, keys, persistence_.clock->Now())) {
      signed_now.headers.push_back(std::move(header));
    }
    co_return signed_now;
  };
  auto judge = [&](const http::Answer& answer) {
    std::optional<http::Refusal> refusal = JudgePlainly(answer, request.url, CheckSts);
    if (http::HearClock(persistence_, answer.head, request.url) && refusal) {
      refusal->kind = http::Refusal::Kind::kTransient;
      refusal->asked = Duration::zero();
    }
    return refusal;
  };
  auto answer = co_await http::AskedUntilAnswered(persistence_, kLongestAnswer, prepare, judge);
  if (!answer.ok()) co_return answer.status();
  co_return std::move(answer->body);
}

asio::awaitable<Fetched> Fetcher::Fetch(CredentialProcess identity) const {
  const Duration time = std::min(kLongestProcess, persistence_.retry.patience);
  auto answer = co_await AskedCommand(std::move(identity.words), Environment::OfProcess(), kLongestPrinted, time);
  if (absl::IsNotFound(answer.status()) || absl::IsPermissionDenied(answer.status())) {
    co_return WithRemedy(answer.status(),
                         "give the program's absolute path; no shell runs it, so ~ and $ are not expanded");
  }
  if (!answer.ok()) co_return answer.status();
  if (answer->code != 0) {
    co_return absl::FailedPreconditionError(fmt::format("it ended with exit code {}{}{}", answer->code,
                                                        answer->complaints.empty() ? "" : ": ", answer->complaints));
  }
  auto keys = ParseProcessKeys(answer->out);
  if (!keys.ok()) co_return absl::FailedPreconditionError(keys.status().message());
  co_return *std::move(keys);
}

asio::awaitable<Fetched> Fetcher::Fetch(WebIdentity identity) const {
  auto token = ReadSettingsFile(identity.token_file);  // read each time: the file is replaced with new tokens
  if (!token.ok()) co_return token.status();
  http::Request request;
  request.method = "POST";
  request.url = sts_.endpoint.ends_with('/') ? sts_.endpoint : sts_.endpoint + "/";
  request.headers = {{"Content-Type", kForm}};
  request.body = http::CanonicalQuery({{"Action", "AssumeRoleWithWebIdentity"},
                                       {"Version", "2011-06-15"},
                                       {"RoleArn", identity.role_arn},
                                       {"RoleSessionName", identity.session_name},
                                       {"WebIdentityToken", std::string(Strip(*token))}});
  auto answer = co_await Say(std::move(request), persistence_, CheckSts);
  co_return KeysOfSts(answer);
}

asio::awaitable<Fetched> Fetcher::FetchRole(AssumeRole identity, std::shared_ptr<AwsKeySource> source) const {
  auto keys = co_await source->Get();
  if (!keys.ok()) co_return keys.status();
  if (!*keys) co_return absl::InvalidArgumentError("the role has no credentials to be assumed with");
  http::Request request;
  const auto endpoint = http::ParseEndpointUrl(sts_.endpoint);
  if (!endpoint.ok()) co_return endpoint.status();
  http::QueryParameters form = {{"Action", "AssumeRole"},
                                {"Version", "2011-06-15"},
                                {"RoleArn", identity.role_arn},
                                {"RoleSessionName", identity.session_name},
                                {"DurationSeconds", std::to_string(identity.duration_seconds)}};
  if (!identity.external_id.empty()) form.emplace_back("ExternalId", identity.external_id);
  // A POST, as in the SDKs: MinIO treats a GET as a request to the store.
  SigningRequest signing;
  signing.method = request.method = "POST";
  signing.host = http::HostHeader(*endpoint);
  signing.path = endpoint->path + "/";
  signing.body = request.body = http::CanonicalQuery(form);
  request.url = http::UrlText(*endpoint) + "/";
  request.headers = {{"Content-Type", kForm}};
  auto answer = co_await SaySigned(std::move(request), std::move(signing), **keys);
  co_return KeysOfSts(answer);
}

asio::awaitable<Fetched> Fetcher::Fetch(ContainerEndpoint identity) const {
  http::Request request;
  request.url = identity.url;
  request.direct = identity.url.starts_with("http:");
  std::string token = identity.token;
  if (!identity.token_file.empty()) {
    auto read = ReadSettingsFile(identity.token_file);  // read each time
    if (!read.ok()) co_return read.status();
    token = Strip(*read);
  }
  if (token.find_first_of("\r\n") != std::string::npos) {
    co_return absl::InvalidArgumentError("the authorization token has a line break");
  }
  if (!token.empty()) request.headers.emplace_back("Authorization", token);
  http::Persistence how = persistence_;
  how.limits.silence = how.limits.connect = std::chrono::seconds(2);
  how.unanswered = std::chrono::seconds(20);
  auto answer = co_await Say(std::move(request), how, CheckKeys);
  if (!answer.ok()) co_return answer.status();
  co_return ParseMachineKeys(*answer);
}

asio::awaitable<Fetched> Fetcher::Fetch(InstanceMetadata identity) const {
  http::Persistence how = persistence_;
  how.limits.silence = how.limits.connect = std::chrono::seconds(identity.timeout_seconds);
  how.limits.total = std::chrono::seconds(identity.timeout_seconds + 1);  // a hop limit of 1: no answer in a pod
  how.unanswered = std::chrono::seconds(identity.timeout_seconds * identity.attempts);
  http::Request request;
  request.method = "PUT";
  request.url = identity.endpoint + "/latest/api/token";
  request.direct = true;
  request.headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}};
  bool there = false;  // something answers, even if only that it is busy
  auto token = co_await Say(request, how, CheckWord, &there);
  if (absl::IsUnavailable(token.status()) && there) co_return token.status();
  if (!token.ok()) {
    co_return absl::FailedPreconditionError(fmt::format(
        "no credentials were found: none in the environment or in shared files, and the instance's metadata "
        "service does not answer ({}); set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, give the pod a role, "
        "or use --anonymous",
        Message(token.status())));
  }
  how.unanswered.reset();
  const std::string roles = identity.endpoint + "/latest/meta-data/iam/security-credentials/";
  request.method = "GET";
  request.headers = {{"X-aws-ec2-metadata-token", ParseWord(*token).value_or("")}};
  request.url = roles;
  auto role = co_await Say(request, how, CheckWord);
  if (!role.ok()) co_return Annotate(role.status(), "the instance has no role");
  request.url = roles + http::PercentEncode(ParseWord(*role).value_or(""));
  auto answer = co_await Say(request, how, CheckKeys);
  if (!answer.ok()) co_return answer.status();
  co_return ParseMachineKeys(*answer);
}

asio::awaitable<Fetched> Fetcher::Fetch(SsoCache identity) const {
  auto text = ReadSettingsFile(identity.token_file);
  if (!text.ok()) co_return Annotate(text.status(), "run `aws sso login`");
  const std::string token = TextField(ReadJsonTop(*text, kFieldLevels), "accessToken");
  if (token.empty())
    co_return absl::InvalidArgumentError(fmt::format("{}: it has no accessToken", identity.token_file));
  http::Request request;
  request.url =
      fmt::format("https://portal.sso.{}.{}/federation/credentials?{}", identity.region, AwsDomain(identity.region),
                  http::CanonicalQuery({{"role_name", identity.role_name}, {"account_id", identity.account_id}}));
  request.headers = {{"x-amz-sso_bearer_token", token}};
  auto answer = co_await Say(std::move(request), persistence_, CheckSso);
  if (!answer.ok()) co_return Annotate(answer.status(), "run `aws sso login` again");
  co_return ParseSsoKeys(*answer);
}

using Made = StatusOr<std::unique_ptr<AwsKeySource>>;

struct Maker {
  const http::Persistence& persistence;
  const StsPlace& sts;
  std::shared_ptr<Fetcher> fetcher;

  Made operator()(const Anonymous&) const { return std::make_unique<KeptKeys>(std::nullopt); }
  Made operator()(const StaticKeys& known) const { return std::make_unique<KeptKeys>(known.keys); }
  Made operator()(const AssumeRole& role) const {
    MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<AwsKeySource> source, MakeAwsKeySource(persistence, *role.source, sts));
    return std::make_unique<RenewedKeys>(
        role.origin, persistence.clock, OldKeys::kAskAgain,
        [fetcher = fetcher, role, source] { return fetcher->FetchRole(role, source); });
  }
  template <typename Identity>
  Made Renewed(const std::string& origin, const Identity& identity, OldKeys old = OldKeys::kAskAgain) const {
    return std::make_unique<RenewedKeys>(origin, persistence.clock, old,
                                         [fetcher = fetcher, identity] { return fetcher->Fetch(identity); });
  }
  Made operator()(const CredentialProcess& identity) const {
    return Renewed(identity.origin, identity, OldKeys::kFatal);
  }
  Made operator()(const WebIdentity& identity) const { return Renewed(identity.origin, identity); }
  Made operator()(const ContainerEndpoint& identity) const { return Renewed(identity.origin, identity); }
  Made operator()(const SsoCache& identity) const { return Renewed(identity.origin, identity); }
  Made operator()(const InstanceMetadata& identity) const { return Renewed("instance metadata", identity); }
};

}  // namespace

StatusOr<std::unique_ptr<AwsKeySource>> MakeAwsKeySource(const http::Persistence& persistence,
                                                         const AwsIdentity& identity, const StsPlace& sts) {
  return std::visit(Maker{persistence, sts, std::make_shared<Fetcher>(persistence, sts)}, identity.who);
}

}  // namespace muster::initializers
