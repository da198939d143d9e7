// SPDX-License-Identifier: Apache-2.0
#include "local/pod/probe_rule.h"

#include <algorithm>

namespace muster::local {

std::string_view NameOf(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kStartup:
      return "startup";
    case ProbeKind::kLiveness:
      return "liveness";
    case ProbeKind::kReadiness:
      return "readiness";
  }
  return "";
}

TimePoint FirstQuestion(const Probe& probe, TimePoint begun, TimePoint asks) {
  return std::max(begun + probe.first, asks);
}

ProbeStep CountAnswer(const Probe& probe, ProbeKind kind, ProbeAnswer::Kind answer, TimePoint asked, TimePoint now,
                      ProbeState* state) {
  ProbeStep step{.next = std::max(asked + probe.period, now)};
  if (answer == ProbeAnswer::Kind::kUnknown) return step;
  const bool succeeded = answer == ProbeAnswer::Kind::kSuccess;
  state->succeeded = state->succeeded || succeeded;
  if (kind == ProbeKind::kReadiness && !state->succeeded) {
    const bool counts = asked >= state->due.value_or(asked);
    if (counts) state->due = asked + probe.period;
    step.next = std::max(std::min(*state->due, asked + state->early), now);
    state->early *= 2;
    if (!counts) return step;
  }
  const int wanted = succeeded ? probe.successes : probe.failures;
  state->run = state->last == answer ? std::min(state->run + 1, wanted) : 1;
  state->last = answer;
  if (state->run < wanted) return step;
  step.verdict = succeeded ? ProbeStep::Verdict::kSuccess : ProbeStep::Verdict::kFailure;
  const bool settled = kind == ProbeKind::kStartup || (kind == ProbeKind::kLiveness && !succeeded);
  if (settled) step.next.reset();
  return step;
}

}  // namespace muster::local
