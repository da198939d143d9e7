// SPDX-License-Identifier: Apache-2.0
// How a run has ended, for people, for its record, and as an exit code. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "local/cluster/local_job.h"

namespace muster::local {

struct RunEnd {
  LocalJobState job;
  int signal = 0;                   // that has stopped the run; 0: none
  Status refused;                   // an error: a pod could not start here
  std::vector<std::string> missed;  // drills that did not happen, each with the reason
};

struct RunVerdict {
  // As `job`. A job that has not ended by itself is "Stopped", or "Failed" if it was refused.
  std::string state, message;
  std::vector<std::string> lines;
  // 128 + the signal; else 78 if refused; else that of the failure that ended the job, kExitDrillMissed, or 0.
  int exit_code = 0;
};
RunVerdict VerdictOn(const RunEnd& end);

}  // namespace muster::local
