// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/master_key.h"

#include "base/base64.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/kube/client/answer.h"
#include "controller/reconcile/derived_secrets.h"

namespace muster::controller {

namespace asio = boost::asio;

namespace {

constexpr char kField[] = "key";

}  // namespace

asio::awaitable<StatusOr<Json>> MasterKey::Stored() {
  const auto get = [this](ApiClient::Done done) {
    return client_.Get(kSecrets, ns_, kMasterKeySecret, std::move(done));
  };
  auto found = co_await Answer(get);
  if (!absl::IsNotFound(found.status())) co_return found;
  const auto key = NewMasterKey();
  if (!key.ok()) co_return key.status();
  const Json made = {{"apiVersion", "v1"},
                     {"kind", "Secret"},
                     {"metadata", {{"name", kMasterKeySecret}, {"namespace", ns_}}},
                     {"immutable", true},
                     {"data", {{kField, ToBase64(*key)}}}};
  auto created =
      co_await Answer([&](ApiClient::Done done) { return client_.Create(kSecrets, ns_, made, std::move(done)); });
  if (!absl::IsAlreadyExists(created.status())) co_return created;
  co_return co_await Answer(get);  // another pass or another replica was faster
}

asio::awaitable<StatusOr<std::string>> MasterKey::Get() {
  if (!key_.empty()) co_return key_;
  const std::string what =
      fmt::format("Secret {}/{}, from which the tokens of jobs are derived", ns_, kMasterKeySecret);
  const auto stored = co_await Stored();
  if (absl::IsPermissionDenied(stored.status())) {
    co_return absl::UnavailableError(fmt::format(
        "{}: {}; apply the controller's Role of this version, in its manifests", what, Message(stored.status())));
  }
  if (!stored.ok()) co_return absl::UnavailableError(fmt::format("{}: {}", what, Message(stored.status())));
  const auto key = FromBase64(TextField(PartOf(*stored, "data"), kField));
  if (!key.ok() || key->size() != kMasterKeyBytes) {
    co_return absl::UnavailableError(
        fmt::format("{}: its field `{}` has not {} bytes; delete the Secret, and the "
                    "controller creates another one",
                    what, kField, kMasterKeyBytes));
  }
  key_ = *key;
  co_return key_;
}

}  // namespace muster::controller
