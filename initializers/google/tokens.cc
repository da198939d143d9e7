// SPDX-License-Identifier: Apache-2.0
#include "initializers/google/tokens.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>

#include "base/base64.h"
#include "base/json_fields.h"
#include "base/quoted.h"
#include "base/settings_file.h"
#include "base/text.h"
#include "http/cloud_clock.h"
#include "http/endpoint_url.h"
#include "http/percent.h"
#include "initializers/google/answers.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

constexpr char kForm[] = "application/x-www-form-urlencoded";
constexpr char kImpersonationScope[] = "https://www.googleapis.com/auth/iam";
constexpr size_t kLongestAnswer = 256 << 10;
constexpr int64_t kHour = 3600;        // seconds; lifetime of an assertion
constexpr int64_t kRenewBefore = 225;  // seconds; the metadata server returns the same token until 240 before expiry
constexpr int64_t kTooLate = 10;       // seconds; a token with less time left is not used

using Fetched = StatusOr<BearerToken>;
using FetchToken = std::function<asio::awaitable<Fetched>()>;
using ReadToken = std::function<Fetched(const http::Answer&)>;

// Base64url without padding. Source: RFC 4648 section 5.
std::string ToBase64Url(std::string_view raw) {
  std::string text = ToBase64(raw);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  text.resize(text.find_last_not_of('=') + 1);
  return text;
}

Fetched TokenOfOauth(const http::Answer& answer) { return ParseOauthToken(answer.body); }

Fetched TokenOfIam(const http::Answer& answer) {
  return ParseIamToken(answer.body, http::DateOf(answer.head).value_or(UnixSeconds()));
}

Fetched TokenOfMachine(const http::Answer& answer) {
  if (answer.head.Find("metadata-flavor") != "Google") {
    return absl::InvalidArgumentError("the server is not a metadata server (no Metadata-Flavor: Google)");
  }
  return TokenOfOauth(answer);
}

class NoToken final : public BearerSource {
 public:
  asio::awaitable<StatusOr<std::optional<std::string>>> Get() override { co_return std::nullopt; }
  void Expired() override {}
  std::optional<std::optional<std::string>> AtHand() override { return std::optional<std::string>(); }
};

// Renews the token before it expires. One renewal at a time: other callers wait for it.
class RenewedToken final : public BearerSource {
 public:
  RenewedToken(std::string origin, FetchToken fetch) : origin_(std::move(origin)), fetch_(std::move(fetch)) {}

  asio::awaitable<StatusOr<std::optional<std::string>>> Get() override {
    const auto turn = co_await http::Turn::Take(turn_);
    if (IsFresh()) co_return token_->text;
    const TimePoint asked = MonotonicClock::now();
    Fetched fetched = co_await fetch_();
    if (fetched.ok()) {
      token_ = *std::move(fetched);
      asked_ = asked;
    } else if (Left() <= std::chrono::seconds(kTooLate)) {
      co_return Annotate(fetched.status(), origin_);
    }
    co_return token_->text;
  }
  void Expired() override { token_.reset(); }
  std::optional<std::optional<std::string>> AtHand() override {
    if (!IsFresh()) return std::nullopt;
    return token_->text;
  }

 private:
  Duration Left() const {
    return token_ ? asked_ + std::chrono::seconds(token_->life) - MonotonicClock::now() : Duration::zero();
  }
  // A short-lived token is used for half of its life, so that not every request renews it.
  bool IsFresh() const { return token_ && Left() > std::chrono::seconds(std::min(kRenewBefore, token_->life / 2)); }

  const std::string origin_;
  const FetchToken fetch_;
  std::optional<BearerToken> token_;
  TimePoint asked_;
  const std::shared_ptr<http::Turn> turn_ = std::make_shared<http::Turn>();
};

// Requests tokens; outlives its requests.
class Fetcher {
 public:
  explicit Fetcher(http::Persistence persistence) : persistence_(std::move(persistence)) {}

  asio::awaitable<Fetched> Fetch(std::shared_ptr<const GoogleIdentity> identity, std::string scope) const;

 private:
  asio::awaitable<Fetched> Of(NoGoogleIdentity identity, std::string scope) const;
  asio::awaitable<Fetched> Of(ServiceAccount account, std::string scope) const;
  asio::awaitable<Fetched> Of(AuthorizedUser user, std::string scope) const;
  asio::awaitable<Fetched> Of(MetadataServer server, std::string scope) const;
  asio::awaitable<Fetched> Of(ExternalAccount account, std::string scope) const;
  asio::awaitable<Fetched> Of(ImpersonatedAccount account, std::string scope) const;
  asio::awaitable<Fetched> Impersonated(Fetched source, std::string url, int seconds,
                                        std::vector<std::string> delegates, std::string scope) const;
  asio::awaitable<StatusOr<std::string>> SubjectOf(SubjectToken subject) const;
  asio::awaitable<Fetched> Post(std::string url, http::QueryParameters form) const;
  asio::awaitable<Fetched> Say(http::Request request, http::Persistence how, bool may_come, ReadToken read) const;

  http::Persistence persistence_;
};

asio::awaitable<Fetched> Fetcher::Fetch(std::shared_ptr<const GoogleIdentity> identity, std::string scope) const {
  auto of = [&](const auto& who) { return Of(who, scope); };
  co_return co_await std::visit(of, identity->who);
}

// `may_come`: a 404 may mean that the token is not there yet.
asio::awaitable<Fetched> Fetcher::Say(http::Request request, http::Persistence how, bool may_come,
                                      ReadToken read) const {
  Fetched token = absl::InternalError("");
  auto prepare = [&request]() -> asio::awaitable<StatusOr<http::Request>> { co_return request; };
  auto judge = [&](const http::Answer& answer) -> std::optional<http::Refusal> {
    const int status = answer.head.status;
    std::string what = fmt::format("{} answers ", http::WithoutQuery(request.url));
    if (status == 200) {
      token = read(answer);
      if (token.ok()) return std::nullopt;
      what += fmt::format("200, but {}", Message(token.status()));
      return http::Refusal{http::Refusal::Kind::kTransient, absl::UnavailableError(what), {}};
    }
    what += ToldByGoogle(status, answer.body);
    const bool again = status == 429 || status == 408 || status >= 500 || (status == 404 && may_come);
    http::HearClock(how, answer.head, http::WithoutQuery(request.url));
    if (!again) return http::Refusal{http::Refusal::Kind::kFatal, absl::PermissionDeniedError(what), {}};
    return http::Refusal{http::Refusal::Kind::kTransient, absl::UnavailableError(what),
                         http::AskedBy(answer.head, UnixSeconds())};
  };
  auto answer = co_await http::AskedUntilAnswered(how, kLongestAnswer, prepare, judge);
  if (!answer.ok()) co_return answer.status();
  co_return token;
}

asio::awaitable<Fetched> Fetcher::Post(std::string url, http::QueryParameters form) const {
  http::Request request;
  request.method = "POST";
  request.url = std::move(url);
  request.headers.emplace_back("Content-Type", kForm);
  request.body = http::CanonicalQuery(form);
  co_return co_await Say(std::move(request), persistence_, false, TokenOfOauth);
}

asio::awaitable<Fetched> Fetcher::Of(NoGoogleIdentity, std::string) const {
  co_return absl::InternalError("there is no identity to get a token for");
}

asio::awaitable<Fetched> Fetcher::Of(ServiceAccount account, std::string scope) const {
  Fetched token = absl::InternalError("");
  for (bool again = true; again;) {
    const int64_t offset = persistence_.clock->offset();
    auto assertion = SignAssertion(account, persistence_.clock->Now(), scope);
    if (!assertion.ok()) co_return assertion.status();
    http::QueryParameters form;
    form.emplace_back("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
    form.emplace_back("assertion", *std::move(assertion));
    token = co_await Post(account.token_uri, std::move(form));
    again = !token.ok() && persistence_.clock->offset() != offset;  // the assertion was signed by a wrong clock
  }
  co_return token.ok() ? token
                       : Annotate(token.status(), fmt::format("the service account {} gets no token (is its key still "
                                                              "there, and this machine's clock right?)",
                                                              account.client_email));
}

asio::awaitable<Fetched> Fetcher::Of(AuthorizedUser user, std::string) const {
  http::QueryParameters form;
  form.emplace_back("grant_type", "refresh_token");
  form.emplace_back("client_id", user.client_id);
  form.emplace_back("client_secret", user.client_secret);
  form.emplace_back("refresh_token", user.refresh_token);
  auto token = co_await Post(user.token_uri, std::move(form));
  co_return token.ok()
      ? token
      : Annotate(token.status(), "the user gets no token (log in again: gcloud auth application-default login)");
}

asio::awaitable<Fetched> Fetcher::Of(MetadataServer server, std::string) const {
  http::Request request;
  request.url = server.origin_url + "/computeMetadata/v1/instance/service-accounts/default/token";
  request.headers.emplace_back("Metadata-Flavor", "Google");
  request.direct = true;
  http::Persistence how = persistence_;
  how.limits.silence = how.limits.connect = std::chrono::seconds(server.timeout_seconds);
  how.limits.total = std::chrono::seconds(server.timeout_seconds + 1);
  how.retry.patience =
      std::min<Duration>(how.retry.patience, std::chrono::seconds(server.timeout_seconds * server.attempts));
  auto token = co_await Say(std::move(request), how, true, TokenOfMachine);
  if (token.ok() || !absl::IsUnavailable(token.status())) co_return token;
  co_return absl::FailedPreconditionError(fmt::format(
      "no identity was found: no credentials file is named (GOOGLE_APPLICATION_CREDENTIALS) or left by gcloud, and the "
      "metadata server gives no token ({}); name a file, give the pod's service account an identity, or use "
      "--anonymous for a public bucket",
      Message(token.status())));
}

asio::awaitable<StatusOr<std::string>> Fetcher::SubjectOf(SubjectToken subject) const {
  std::string text;
  if (!subject.file.empty()) {
    auto read = ReadSettingsFile(subject.file);  // read each time: the file is replaced with new tokens
    if (!read.ok()) co_return Annotate(read.status(), fmt::format("the subject token in {}", Quoted(subject.file)));
    text = *std::move(read);
  } else {
    http::Request request;
    request.url = subject.url;
    request.direct = subject.url.starts_with("http:");  // the URL of a metadata service
    for (const auto& [name, value] : subject.headers) request.headers.emplace_back(name, value);
    auto keep = [&text](const http::Answer& answer) -> Fetched {
      text = answer.body;
      return BearerToken();
    };
    auto answer = co_await Say(std::move(request), persistence_, false, keep);
    if (!answer.ok()) co_return Annotate(answer.status(), "the subject token");
  }
  std::string token = SubjectTokenIn(text, subject.field);
  if (!token.empty()) co_return token;
  const std::string& where = subject.file.empty() ? subject.url : subject.file;
  co_return absl::FailedPreconditionError(subject.field.empty()
                                              ? fmt::format("the subject token in {} is empty", Quoted(where))
                                              : fmt::format("{} has no {}", Quoted(where), Quoted(subject.field)));
}

asio::awaitable<Fetched> Fetcher::Of(ExternalAccount account, std::string scope) const {
  auto subject = co_await SubjectOf(account.subject);
  if (!subject.ok()) co_return subject.status();
  const bool impersonates = !account.impersonation_url.empty();
  http::QueryParameters form;
  form.emplace_back("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange");
  form.emplace_back("audience", account.audience);
  form.emplace_back("scope", impersonates ? kImpersonationScope : scope);
  form.emplace_back("requested_token_type", "urn:ietf:params:oauth:token-type:access_token");
  form.emplace_back("subject_token_type", account.subject_token_type);
  form.emplace_back("subject_token", *std::move(subject));
  auto token = co_await Post(account.token_url, std::move(form));
  if (!token.ok())
    co_return Annotate(token.status(),
                       fmt::format("the subject token is not exchanged for {}", Quoted(account.audience)));
  if (!impersonates) co_return token;
  std::vector<std::string> nobody;
  co_return co_await Impersonated(std::move(token), account.impersonation_url, account.impersonation_seconds, nobody,
                                  scope);
}

asio::awaitable<Fetched> Fetcher::Of(ImpersonatedAccount account, std::string scope) const {
  auto token = co_await Fetch(account.source, kImpersonationScope);
  co_return co_await Impersonated(std::move(token), account.impersonation_url, account.lifetime_seconds,
                                  account.delegates, scope);
}

asio::awaitable<Fetched> Fetcher::Impersonated(Fetched source, std::string url, int seconds,
                                               std::vector<std::string> delegates, std::string scope) const {
  if (!source.ok()) co_return source;
  Json body = Json::object();
  body["scope"] = Json::array();
  body["scope"].push_back(scope);
  body["lifetime"] = fmt::format("{}s", seconds);
  if (!delegates.empty()) body["delegates"] = delegates;
  http::Request request;
  request.method = "POST";
  request.url = url;
  request.headers.emplace_back("Content-Type", "application/json");
  request.headers.emplace_back("Authorization", fmt::format("Bearer {}", source->text));
  request.body = WriteJson(body);
  auto token = co_await Say(std::move(request), persistence_, false, TokenOfIam);
  co_return token.ok() ? token
                       : Annotate(token.status(),
                                  "the service account is not impersonated (the caller needs the role Service Account "
                                  "Token Creator on it, or Workload Identity User)");
}

std::string OriginOf(const GoogleIdentity& identity) {
  return std::visit(
      [](const auto& who) -> std::string {
        if constexpr (requires { who.origin; }) {
          return who.origin;
        } else {
          return "the metadata server";
        }
      },
      identity.who);
}

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

// Reads an RSA key; null: it is none.
std::unique_ptr<EVP_PKEY, FreeKey> ReadPrivateKey(const std::string& pem) {
  const std::unique_ptr<BIO, FreeBio> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  auto no_password = [](char*, int, int, void*) { return -1; };  // else OpenSSL asks for a password on the terminal
  std::unique_ptr<EVP_PKEY, FreeKey> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  if (key && EVP_PKEY_base_id(key.get()) != EVP_PKEY_RSA) key.reset();
  return key;
}

std::optional<std::string> SignSha256(EVP_PKEY* key, std::string_view text) {
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  size_t length = 0;
  if (EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &length, bytes, text.size()) != 1) {
    return std::nullopt;
  }
  std::string signature(length, '\0');
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &length, bytes, text.size()) !=
      1) {
    return std::nullopt;
  }
  signature.resize(length);
  return signature;
}

}  // namespace

StatusOr<std::string> SignAssertion(const ServiceAccount& account, int64_t unix_now, std::string_view scope) {
  auto key = ReadPrivateKey(account.private_key);
  Json header = {{"alg", "RS256"}, {"typ", "JWT"}};
  if (!account.private_key_id.empty()) header["kid"] = account.private_key_id;
  const Json claims = {{"iss", account.client_email},
                       {"scope", std::string(scope)},
                       {"aud", account.token_uri},
                       {"iat", unix_now},
                       {"exp", unix_now + kHour}};
  const std::string text = fmt::format("{}.{}", ToBase64Url(WriteJson(header)), ToBase64Url(WriteJson(claims)));
  auto signature = key ? SignSha256(key.get(), text) : std::nullopt;
  if (!signature) {
    return absl::InvalidArgumentError(
        fmt::format("the private_key of {} is not an RSA key in PEM without a password; make a new key of {}",
                    account.origin, Quoted(account.client_email)));
  }
  return fmt::format("{}.{}", text, ToBase64Url(*signature));
}

std::unique_ptr<BearerSource> MakeBearerSource(const http::Persistence& persistence, const GoogleIdentity& identity) {
  if (std::holds_alternative<NoGoogleIdentity>(identity.who)) return std::make_unique<NoToken>();
  auto fetch = [fetcher = std::make_shared<Fetcher>(persistence),
                identity = std::make_shared<const GoogleIdentity>(identity)] {
    return fetcher->Fetch(identity, std::string(kReadScope));
  };
  return std::make_unique<RenewedToken>(OriginOf(identity), std::move(fetch));
}

}  // namespace muster::initializers
