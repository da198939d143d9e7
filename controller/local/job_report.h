// The page of `muster report` about a local run, from the records that the agents in its pods have left
// (AttemptsFolder() of base/state_folder.h).
#pragma once

#include <string>

#include "base/status.h"

namespace muster::controller {

// Its path. `muster`: the path of the binary that makes it; `folder`: of the run. Blocks, at most 30 s. NotFound: no
// agent has left a record, as in a job without torchrun, or one that fails before its first round. Other errors say why
// there is no page.
StatusOr<std::string> WriteJobReport(const std::string& muster, const std::string& folder);

}  // namespace muster::controller
