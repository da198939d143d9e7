// SPDX-License-Identifier: Apache-2.0
// The folder for files that outlive a command: jobs of `muster local`, their logs, their volumes, and what scripts
// import. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/environment.h"
#include "base/status.h"

namespace muster {

// $XDG_STATE_HOME/muster, else $HOME/.local/state/muster. The path is absolute; the folder may not exist.
// FailedPrecondition: neither variable is set, or the path is not absolute.
StatusOr<std::string> StateFolder(const Environment& environment);

// What scripts import (agent/standby/kept_imports.h).
std::string ImportsFolder(std::string_view state);

// Paths of a local job: its folder in the state folder; below that, the record of its run
// (local/state/run_record.h), the folder with the records of its agents (docs/attempt-json.md), which has one
// folder per pod, and the report page made from the records.
std::string JobFolder(std::string_view state, std::string_view job);
std::string RunRecordPath(std::string_view job_folder);
std::string AttemptsFolder(std::string_view job_folder);
std::string ReportPath(std::string_view job_folder);

}  // namespace muster
