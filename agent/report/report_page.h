// The report of `muster report` as one HTML page: no script, no network, no file beside it. Pure: records in, text out.
//
// Every text that workers, nodes or paths bring is escaped (report_text.h), and a Content-Security-Policy in the page
// allows nothing but its own style. Its size is bounded: beyond the limits things are counted and left out, not cut.
#pragma once

#include <string>
#include <vector>

#include "agent/report/report_timeline.h"
#include "agent/report/run_summary.h"

namespace muster::agent {

struct PageLimits {
  size_t runs = 10;        // told in full; further ones are listed
  size_t attempts = 200;   // of a run, the newest
  size_t failures = 8;     // of an attempt, told in full
  size_t text = 16 << 10;  // bytes of one worker's traceback, and of its last lines
  size_t all_text = 2 << 20;
  size_t problems = 50;
  TimelineLimits timeline;
};

// `folder`: what the user named; `runs` as Summarize gives them, may be empty.
std::string ReportPage(const std::string& folder, const std::vector<RunSummary>& runs,
                       const std::vector<HistoryProblem>& problems, const PageLimits& limits = {});

// What became of the run, in a few words: "Succeeded after 2 restarts", "Failed: killed by SIGKILL".
std::string Headline(const RunSummary& run);

}  // namespace muster::agent
