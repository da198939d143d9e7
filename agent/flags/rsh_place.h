// SPDX-License-Identifier: Apache-2.0
// Where pods serve the remote shell, and with which credentials, from the variables that both ends read. Pure.
#pragma once

#include <string>

#include "agent/flags/pod_facts.h"
#include "base/clock.h"
#include "base/status.h"
#include "net/credentials.h"

namespace muster::agent {

inline constexpr int kRshPort = 29522;

struct RshPlace {
  int port = kRshPort;  // MUSTER_RSH_PORT
  // MUSTER_RSH_TIMEOUT: how long a pod is waited for. As long as the nodes of a fixed job wait for each other.
  Duration timeout = std::chrono::seconds(900);
  net::CredentialFiles credentials;  // MUSTER_TOKEN_FILE, MUSTER_TLS_CERT, _KEY, _CA
};

// InvalidArgument names the variable.
StatusOr<RshPlace> ReadRshPlace(const Environment& environment);

}  // namespace muster::agent
