// SPDX-License-Identifier: Apache-2.0
// The report of `muster report` as one HTML page: no script, no network, no other file. Pure: records in, text out.
//
// Every text from workers, nodes or paths is escaped (report_text.h), and a Content-Security-Policy in the page allows
// nothing but its own style. The page's size is bounded: beyond a limit, items are left out as a whole and counted.
#pragma once

#include <string>
#include <vector>

#include "agent/page/report_timeline.h"
#include "agent/report/run_summary.h"

namespace muster::agent {

struct PageLimits {
  size_t runs = 10;        // shown in full; further ones are listed
  size_t attempts = 200;   // of a run; the newest are shown
  size_t failures = 8;     // of an attempt, shown in full
  size_t text = 16 << 10;  // bytes of one worker's traceback, and of its last lines
  size_t all_text = 2 << 20;
  size_t problems = 50;
  TimelineLimits timeline;
};

// `folder`: what the user named. `place`: the folder of the page; logs below it are links, none if it is empty. `runs`:
// from Summarize(); may be empty.
std::string ReportPage(const std::string& folder, const std::string& place, const std::vector<RunSummary>& runs,
                       const std::vector<HistoryProblem>& problems, const PageLimits& limits = {});

// What became of the run, in a few words: "Succeeded after 2 restarts", "Failed: killed by SIGKILL".
std::string Headline(const RunSummary& run);

}  // namespace muster::agent
