// SPDX-License-Identifier: Apache-2.0
// Makes the page of `muster report` about a local run, from the records of the agents in its pods and from run.json
// (base/state_folder.h).
#pragma once

#include <string>

#include "base/status.h"

namespace muster::local {

// Returns the path of the page. `muster`: the path of the binary that makes the page; `folder`: of the run. Blocks, at
// most 30 s. NotFound: no agent has written a record, as in a job without torchrun, or in one that fails before its
// first round. Other errors say why there is no page.
StatusOr<std::string> WriteJobReport(const std::string& muster, const std::string& folder);

}  // namespace muster::local
