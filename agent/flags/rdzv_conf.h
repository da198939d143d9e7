// SPDX-License-Identifier: Apache-2.0
// --rdzv-conf (keys: docs/torchrun-flags.md): time limits, heartbeats, who serves the endpoint, credentials. Pure.
#pragma once

#include <map>
#include <string>

#include "agent/flags/flag_reader.h"
#include "base/status.h"

namespace muster::agent {

// Applies `conf`, the keys of `source`, to options->job.shared, is_host and credentials. A credential that is not among
// the keys comes from its MUSTER_* variable. options->job.backend must be set. InvalidArgument names key and value. An
// unknown key is a warning, and so is a wrong value of a key that only the other backend reads in PyTorch.
Status ReadRdzvConf(const FlagValue& source, const std::map<std::string, std::string>& conf,
                    const Environment& environment, RunOptions* options);

}  // namespace muster::agent
