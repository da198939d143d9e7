// SPDX-License-Identifier: Apache-2.0
// The table of a run's attempts: what ended each, what it cost, the last lines of the workers that failed, and where
// the logs are. Pure.
#pragma once

#include <span>
#include <string>

#include "agent/report/run_summary.h"

namespace muster::agent {

struct AttemptsView {
  size_t failures = 8;     // of an attempt, shown in full
  size_t text = 16 << 10;  // bytes of one worker's traceback, and of its last lines
  std::string place;       // the folder of the page: logs below it are links (file_link.h)
};

// `room`: bytes of tracebacks and last lines that may still be shown on the page; it shrinks. The last attempt's
// details are open if the run failed.
std::string AttemptsTable(const RunSummary& run, std::span<const AttemptSummary> shown, const AttemptsView& view,
                          size_t& room);

// "rank 3 on node-0: exit code 1"
std::string WhoAndHow(const FailedWorker& failed);
// A reason of any length, shortened and escaped.
std::string ReasonHtml(std::string_view text);

}  // namespace muster::agent
