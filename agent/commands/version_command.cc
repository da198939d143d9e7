// SPDX-License-Identifier: Apache-2.0
// `muster version [--json]`
#include <nlohmann/json.hpp>

#include "agent/commands/arguments.h"
#include "agent/commands/commands.h"
#include "base/print.h"
#include "base/text.h"
#include "base/version.h"

namespace muster::agent {

int VersionCommand(const Call& call) {
  Arguments arguments("Print version, commit and protocol versions", "muster version");
  bool json = false;
  arguments.Switch("--json", &json, "one JSON object");
  if (auto end = arguments.Parse(call)) return *end;
  constexpr std::string_view kStore = "c10d TCPStore of PyTorch 1.13 to 2.15";
  if (json) {
    nlohmann::ordered_json facts;
    facts["version"] = Version();
    facts["commit"] = Commit();
    facts["rendezvous_protocol"] = kRendezvousProtocol;
    facts["rsh_protocol"] = kRshProtocol;
    facts["store_protocol"] = kStore;
    PrintTo(stdout, "{}\n", facts.dump());
  } else {
    PrintTo(stdout, "muster {} (commit {})\nrendezvous protocol {}\nrsh protocol {}\nstore protocol: {}\n", Version(),
            Commit(), kRendezvousProtocol, kRshProtocol, kStore);
  }
  return 0;
}

}  // namespace muster::agent
