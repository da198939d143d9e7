// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/webhook/own_certificates.h"

#include <boost/asio/post.hpp>

#include "base/log.h"
#include "base/text.h"
#include "controller/reconcile/back_off.h"

namespace muster::controller {

namespace asio = boost::asio;

namespace {

// The wall clock may be set during a wait of months, so it is read each day.
constexpr Duration kLongestWait = std::chrono::hours(24);

std::vector<std::string> NamesOf(const std::string& ns, const std::string& host) {
  const std::string service = WebhookHost(ns);
  std::vector<std::string> names = {service, service + ".cluster.local"};
  if (!host.empty()) names.push_back(host);
  return names;
}

}  // namespace

std::string WebhookHost(std::string_view ns) { return fmt::format("{}.{}.svc", kWebhookService, ns); }

OwnCertificates::OwnCertificates(asio::io_context& loop, ApiClient& client, std::string ns, const std::string& host,
                                 Given given)
    : loop_(loop),
      client_(client),
      ns_(std::move(ns)),
      names_(NamesOf(ns_, host)),
      given_(std::move(given)),
      again_(loop) {
  configurations_.emplace(kValidatingConfiguration, Configuration{kValidatingWebhooks, {}, {}, 0, {}});
  configurations_.emplace(kMutatingConfiguration, Configuration{kMutatingWebhooks, {}, {}, 0, {}});
}

void OwnCertificates::Begin() {
  informers_.push_back(Watch(
      kSecrets, ns_, kWebhookSecret,
      [this](Json secret) {
        secret_ = std::move(secret);
        Look();
      },
      [this] {
        synced_ = true;
        Look();
      }));
  for (auto& [name, configuration] : configurations_) {
    informers_.push_back(Watch(
        configuration.resource, "", name,
        [this, name = name](Json object) {
          configurations_.at(name).object = std::move(object);
          Patch(name);
        },
        [] {}));
  }
  for (const auto& informer : informers_) informer->Begin();
}

std::unique_ptr<Informer> OwnCertificates::Watch(const Resource& resource, const std::string& ns,
                                                 const std::string& name, std::function<void(Json)> seen,
                                                 std::function<void()> synced) {
  Informer::Events events;
  events.put = [seen](const ObjectView& object) { seen(*object.json()); };
  events.gone = [seen = std::move(seen)](const GoneObject&) { seen(Json()); };
  events.synced = std::move(synced);
  events.say = [](const std::string& text) { log::Warning(text); };
  return std::make_unique<Informer>(loop_, client_, resource, ns, "", std::move(events),
                                    fmt::format("metadata.name={}", name));
}

void OwnCertificates::Look() {
  if (!synced_ || storing_) return;
  const auto step = NextCertificates(secret_.is_null() ? held_ : ReadCertificateSecret(secret_), names_, WallNow());
  if (!step.ok()) {
    log::Error(Message(step.status()));
    return LookAgain(BackOff({}, ++failures_));
  }
  if (secret_.is_null() || step->changed) return Store(step->set);
  failures_ = 0;
  if (step->set != held_) {
    held_ = step->set;
    given_(held_);
    for (const auto& [name, configuration] : configurations_) Patch(name);
  }
  LookAgain(std::min(kLongestWait, Duration(step->renew - WallNow())));
}

void OwnCertificates::Store(const CertificateSet& set) {
  const auto done = [this](StatusOr<Json> answer) {
    asio::post(loop_, [handle = std::move(storing_)] {});
    storing_.reset();
    if (answer.ok()) {
      log::Info(fmt::format("the webhooks' certificates are in the Secret {}/{}", ns_, kWebhookSecret));
      secret_ = *std::move(answer);
      return Look();
    }
    // Another replica wrote first. The watch will bring what it wrote.
    const bool raced = absl::IsAlreadyExists(answer.status()) || absl::IsAborted(answer.status());
    if (!raced) {
      log::Warning(fmt::format("the webhooks' certificates cannot be stored: {}", Message(answer.status())));
    }
    LookAgain(BackOff({}, ++failures_));
  };
  storing_ = secret_.is_null()
                 ? client_.Create(kSecrets, ns_, NewCertificateSecret(ns_, kWebhookSecret, set), done)
                 : client_.Merge(kSecrets, ns_, kWebhookSecret, "", CertificateSecretPatch(secret_, set), done);
}

void OwnCertificates::LookAgain(Duration pause) {
  again_.expires_after(pause);
  again_.async_wait([this](boost::system::error_code error) {
    if (!error) Look();
  });
}

void OwnCertificates::Patch(const std::string& name) {
  Configuration& configuration = configurations_.at(name);
  if (held_.ca.empty() || configuration.object.is_null() || configuration.writing) return;
  const Json patch = BundlePatch(configuration.object, held_.ca, WallNow());
  if (patch.is_null()) return;
  configuration.writing =
      client_.Merge(configuration.resource, "", name, "", patch, [this, name](StatusOr<Json> answer) {
        Configuration& written = configurations_.at(name);
        asio::post(loop_, [handle = std::move(written.writing)] {});
        written.writing.reset();
        if (answer.ok()) {
          log::Info(fmt::format("{}: the caBundle is written", name));
          written.failures = 0;
          written.object = *std::move(answer);
          return Patch(name);
        }
        if (!absl::IsAborted(answer.status())) {  // after a conflict the watch brings the newer object
          log::Warning(fmt::format("{}: the caBundle cannot be written: {}", name, Message(answer.status())));
        }
        written.again = std::make_unique<asio::steady_timer>(loop_, BackOff({}, ++written.failures));
        written.again->async_wait([this, name](boost::system::error_code error) {
          if (!error) Patch(name);
        });
      });
}

}  // namespace muster::controller
