// SPDX-License-Identifier: Apache-2.0
// The facts of a run (run_facts.h) as JSON: `training`, `seconds` and `began_unix_ms` of the agent's /status, of the
// termination message and of attempt.json. docs/watching.md has the keys. Pure. Defined in run_facts.cc.
//
// The readers are safe for untrusted input. InvalidArgument: a wrong type, or a number out of range; the message begins
// with `where` and names the key.
//
// Include this header in .cc files only: nlohmann's header is heavy.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/json_fields.h"
#include "base/run_facts.h"
#include "base/status.h"

namespace muster {

nlohmann::ordered_json TrainingJson(const TrainingFacts& training);
StatusOr<TrainingFacts> ReadTrainingJson(const Json& object, const std::string& where);

// {"waiting": 1.5, "start": 12, ...}: all uses, in seconds, to the millisecond. A use that is missing counts as 0.
nlohmann::ordered_json SecondsJson(const TimeSpent& spent);
StatusOr<TimeSpent> ReadSecondsJson(const Json& object, const std::string& where);

// Of an object with `seconds` and `began_unix_ms`; nullopt: one of them is missing.
StatusOr<std::optional<RunTime>> ReadRunTime(const JsonFields& fields, const std::string& where);

}  // namespace muster
