// SPDX-License-Identifier: Apache-2.0
#include "base/state_folder.h"

#include "base/quoted.h"
#include "base/text.h"

namespace muster {
namespace {

Status NotAbsolute(std::string_view variable, std::string_view value) {
  return absl::FailedPreconditionError(fmt::format("{}: {} is not an absolute path", variable, Quoted(value)));
}

}  // namespace

StatusOr<std::string> StateFolder(const Environment& environment) {
  std::string folder = environment.Get("XDG_STATE_HOME").value_or("");
  if (folder.empty()) {
    const std::string home = environment.Get("HOME").value_or("");
    if (home.empty()) {
      return absl::FailedPreconditionError("neither XDG_STATE_HOME nor HOME is set: set one, for logs and volumes");
    }
    if (home[0] != '/') return NotAbsolute("HOME", home);
    folder = home + "/.local/state";
  }
  if (folder[0] != '/') return NotAbsolute("XDG_STATE_HOME", folder);
  return folder + "/muster";
}

std::string ImportsFolder(std::string_view state) { return fmt::format("{}/imports", state); }
std::string JobFolder(std::string_view state, std::string_view job) { return fmt::format("{}/jobs/{}", state, job); }
std::string RunRecordPath(std::string_view job_folder) { return fmt::format("{}/run.json", job_folder); }
std::string AttemptsFolder(std::string_view job_folder) { return fmt::format("{}/attempts", job_folder); }
std::string ReportPath(std::string_view job_folder) { return fmt::format("{}/report.html", job_folder); }

}  // namespace muster
