// SPDX-License-Identifier: Apache-2.0
// libFuzzer: a credentials file of Google, with any content.
#include <cstdlib>

#include "initializers/google/identity.h"
#include "tests/fuzz/input.h"

namespace muster::initializers {
namespace {

bool IsOneLine(std::string_view text) { return text.find_first_of("\r\n") == std::string_view::npos; }

struct Check {
  void operator()(const NoGoogleIdentity&) const { Must(false); }
  void operator()(const MetadataServer&) const { Must(false); }
  void operator()(const ServiceAccount& account) const {
    Must(!account.client_email.empty() && !account.private_key.empty() && IsOneLine(account.client_email));
  }
  void operator()(const AuthorizedUser& user) const {
    Must(IsOneLine(user.client_id + user.client_secret + user.refresh_token));
  }
  void operator()(const ExternalAccount& account) const {
    Must(account.subject.file.empty() != account.subject.url.empty());
    for (const auto& [name, value] : account.subject.headers)
      Must(!name.empty() && IsOneLine(name) && IsOneLine(value));
  }
  void operator()(const ImpersonatedAccount& account) const {
    Must(account.source != nullptr && !std::holds_alternative<ImpersonatedAccount>(account.source->who));
    std::visit(*this, account.source->who);
  }
};

}  // namespace
}  // namespace muster::initializers

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::initializers;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const muster::Environment environment = {{"GOOGLE_APPLICATION_CREDENTIALS", "/key.json"}};
  auto read = [&text](const std::string&) -> muster::StatusOr<std::string> { return std::string(text); };
  auto identity = FindGoogleIdentity(environment, read, "");
  if (identity.ok()) std::visit(Check(), identity->who);
  return 0;
}
