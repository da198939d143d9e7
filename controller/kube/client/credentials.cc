// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/credentials.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "base/asked_command.h"
#include "base/base64.h"
#include "base/log.h"
#include "base/quoted.h"
#include "base/settings_file.h"
#include "base/text.h"
#include "controller/kube/client/exec_credential.h"
#include "http/conversation.h"

namespace muster::controller {
namespace {

namespace asio = boost::asio;

constexpr Duration kFileAge = std::chrono::seconds(60);     // kubelets replace tokens long before they expire
constexpr Duration kPluginTime = std::chrono::seconds(60);  // a plugin may ask a cloud's API
constexpr size_t kLongestPrinted = size_t{1} << 20;
constexpr int64_t kRenewBefore = 60;  // s before its expiration

}  // namespace

Credentials::Credentials(asio::io_context& loop, const ClusterAccess& access) : loop_(loop), access_(access) {}
Credentials::~Credentials() = default;

void Credentials::Get(Given given) {
  if (!access_.token_file.empty()) return given(OfFile());
  if (!access_.exec) {
    Credential credential;
    credential.client_certificate = access_.client_certificate;
    credential.client_key = access_.client_key;
    if (!access_.token.empty()) credential.authorization = "Bearer " + access_.token;
    if (!access_.user.empty()) {
      credential.authorization = "Basic " + ToBase64(fmt::format("{}:{}", access_.user, access_.password));
    }
    return given(std::move(credential));
  }
  if (held_ && (!stale_ || MonotonicClock::now() < *stale_)) return given(*held_);
  waiting_.push_back(std::move(given));
  if (waiting_.size() == 1) running_ = http::Converse(loop_, RunPlugin());
}

bool Credentials::Refused(const Credential& used) {
  if (access_.token_file.empty() && !access_.exec) return false;
  if (held_ && *held_ != used) return true;  // it has been renewed meanwhile
  stale_ = TimePoint::min();
  return access_.exec || OfFile().value_or(used) != used;
}

// If the file cannot be read, returns the last token, which may still be valid.
StatusOr<Credential> Credentials::OfFile() {
  const TimePoint now = MonotonicClock::now();
  if (held_ && stale_ && now < *stale_) return *held_;
  auto text = ReadSettingsFile(access_.token_file);
  if (text.ok() && (Strip(*text).empty() || !IsVisible(Strip(*text)))) {
    text = absl::FailedPreconditionError(
        fmt::format("{} holds no token: it is empty, or has white space in it", access_.token_file));
  }
  stale_ = now + kFileAge;
  if (!text.ok() && !held_) {
    stale_.reset();
    return absl::FailedPreconditionError(fmt::format("the token: {}", Message(text.status())));
  }
  if (!text.ok()) {
    log::Warning(fmt::format("the token is not renewed: {}", Message(text.status())));
    return *held_;
  }
  held_ = Credential{fmt::format("Bearer {}", Strip(*text)), access_.client_certificate, access_.client_key};
  return *held_;
}

asio::awaitable<void> Credentials::RunPlugin() {
  const ClusterAccess::Exec& plugin = *access_.exec;
  std::vector<std::string> words = {plugin.command};
  words.insert(words.end(), plugin.arguments.begin(), plugin.arguments.end());
  Environment environment = Environment::OfProcess();
  for (const auto& [name, value] : plugin.environment) environment.Set(name, value);
  environment.Set(kExecInfoVariable, ExecInfo(plugin));
  auto answer = co_await AskedCommand(std::move(words), std::move(environment), kLongestPrinted, kPluginTime);
  StatusOr<Credential> credential = absl::InternalError("");
  if (!answer.ok()) {
    credential = answer.status();
  } else if (answer->code != 0) {
    credential = absl::FailedPreconditionError(
        fmt::format("it ended with {}{}", answer->code,
                    answer->complaints.empty() ? "" : fmt::format(" and said {}", answer->complaints)));
  } else {
    credential = OfPlugin(answer->out);
  }
  if (!credential.ok()) {
    std::string why = fmt::format("the credential plugin {}: {}", Quoted(plugin.command), Message(credential.status()));
    if (absl::IsNotFound(credential.status()) && !plugin.install_hint.empty()) {
      why += fmt::format("; {}", Quoted(plugin.install_hint, 1000));
    }
    credential = absl::FailedPreconditionError(why);
  }
  // Posted, because a callback may call Get again at once, or destroy this object.
  asio::post(loop_, [this, alive = std::weak_ptr<bool>(alive_), credential = std::move(credential)] {
    if (!alive.expired()) Answer(credential);
  });
}

StatusOr<Credential> Credentials::OfPlugin(std::string_view printed) {
  MUSTER_ASSIGN_OR_RETURN(const ExecCredential got, ReadExecCredential(printed, access_.exec->api_version));
  Credential credential{.client_certificate = got.client_certificate, .client_key = got.client_key};
  if (!got.token.empty()) credential.authorization = "Bearer " + got.token;
  if (got.client_key.empty()) {
    credential.client_certificate = access_.client_certificate;
    credential.client_key = access_.client_key;
  }
  held_ = credential;
  stale_.reset();
  if (got.expires) {
    // A credential of a short life is used for half of its life, so that not every request runs the plugin.
    const int64_t life = std::max<int64_t>(0, *got.expires - UnixSeconds());
    stale_ = MonotonicClock::now() + std::chrono::seconds(life - std::min(kRenewBefore, life / 2));
  }
  return credential;
}

void Credentials::Answer(const StatusOr<Credential>& credential) {
  running_.reset();
  for (Given& given : std::exchange(waiting_, {})) given(credential);
}

}  // namespace muster::controller
