// Where Muster keeps what outlives a command: jobs of `muster local`, their logs, their volumes. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/environment.h"
#include "base/status.h"

namespace muster {

// $XDG_STATE_HOME/muster, else $HOME/.local/state/muster: absolute, may not be there. FailedPrecondition: neither is
// set, or the first is no absolute path.
StatusOr<std::string> StateFolder(const Environment& environment);

// The folder of a local job in it, and in that: the records of its agents (docs/attempt-json.md), a folder for each
// pod; and the page made from them.
std::string JobFolder(std::string_view state, std::string_view job);
std::string AttemptsFolder(std::string_view job_folder);
std::string ReportPath(std::string_view job_folder);

}  // namespace muster
