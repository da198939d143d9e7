// SPDX-License-Identifier: Apache-2.0
// A worker's failure as JSON: `cause` of the termination message, and `overcome` of the agent's /status. Pure.
// docs/termination-message.md has the keys. Defined in termination_message.cc.
//
// Include this header in .cc files only: nlohmann's header is heavy.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/json_fields.h"
#include "base/status.h"
#include "base/worker_failure.h"

namespace muster {

nlohmann::ordered_json FailureJson(const WorkerFailure& failure);

// Safe for untrusted input. InvalidArgument: no object, a wrong type, or a number out of range. The message begins with
// `where` and names the key.
StatusOr<WorkerFailure> ReadFailureJson(const Json& object, const std::string& where);

}  // namespace muster
