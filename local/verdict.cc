// SPDX-License-Identifier: Apache-2.0
#include "local/verdict.h"

#include "base/exit_codes.h"
#include "base/text.h"

namespace muster::local {
namespace {

int CodeOf(const RunEnd& end) {
  if (end.signal != 0) return 128 + end.signal;
  if (!end.refused.ok()) return kExitBadConfiguration;
  if (end.job.succeeded) return end.missed.empty() ? 0 : kExitDrillMissed;
  const int code = end.job.failures.empty() ? 1 : end.job.failures.back().exit_code;
  return code == 0 ? 1 : code;
}

}  // namespace

RunVerdict VerdictOn(const RunEnd& end) {
  RunVerdict verdict{.state = end.job.state, .message = end.job.message, .exit_code = CodeOf(end)};
  if (!end.job.finished && end.signal != 0) {
    verdict.state = "Stopped";
    verdict.message = fmt::format("by {}", SignalName(end.signal));
  } else if (!end.job.finished && !end.refused.ok()) {
    verdict.state = "Failed";
    verdict.message = Message(end.refused);
  }
  for (const std::string& drill : end.missed) {
    verdict.lines.push_back(fmt::format("the drill did not happen: {}", drill));
  }
  verdict.lines.push_back(fmt::format("{} {}: {}{}{}{}", end.job.kind, end.job.name, verdict.state,
                                      end.job.restarts == 0 ? "" : ", " + Counted(end.job.restarts, "restart"),
                                      verdict.message.empty() ? "" : ": ", verdict.message));
  return verdict;
}

}  // namespace muster::local
