// --rdzv-conf: patience, heartbeats, who serves the endpoint, credentials (docs/torchrun-flags.md has the keys). Pure.
#pragma once

#include <map>
#include <string>

#include "agent/torch/flag_reader.h"
#include "base/status.h"

namespace muster::agent {

// Applies `conf`, the keys of `source`, to options->job, is_host and credentials; where a credential is not among them
// its MUSTER_* variable counts. options->backend must be known. InvalidArgument names key and value. A warning: a key
// that is not known, and a wrong value of a key that only the other backend reads in PyTorch.
Status ReadRdzvConf(const FlagValue& source, const std::map<std::string, std::string>& conf,
                    const Environment& environment, RunOptions* options);

}  // namespace muster::agent
