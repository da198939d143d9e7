// SPDX-License-Identifier: Apache-2.0
#include "agent/flags/rsh_place.h"

#include "agent/flags/flag_values.h"
#include "base/text.h"

namespace muster::agent {

StatusOr<RshPlace> ReadRshPlace(const Environment& environment) {
  RshPlace place;
  MUSTER_ASSIGN_OR_RETURN(auto port, FirstNumberOf(environment, "MUSTER_RSH_PORT", 1, 65535));
  place.port = port.value_or(kRshPort);
  if (auto text = FirstOf(environment, "MUSTER_RSH_TIMEOUT")) {
    auto timeout = ParseDuration(text->text);
    if (!timeout.ok()) return Annotate(timeout.status(), fmt::format("MUSTER_RSH_TIMEOUT={}", text->text));
    place.timeout = *timeout;
  }
  struct {
    std::string_view variable;
    std::string& path;
  } const files[] = {{"MUSTER_TOKEN_FILE", place.credentials.token},
                     {"MUSTER_TLS_CERT", place.credentials.tls_cert},
                     {"MUSTER_TLS_KEY", place.credentials.tls_key},
                     {"MUSTER_TLS_CA", place.credentials.tls_ca}};
  for (const auto& file : files) {
    if (auto path = FirstOf(environment, file.variable)) file.path = path->text;
  }
  return place;
}

}  // namespace muster::agent
