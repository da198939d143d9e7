// Faults that the user orders in a local run (--kill): a signal to a process, an exit code of a process, or a cut of a
// node's link, and when. Pure; untrusted input.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace muster::local {

struct Drill {
  enum class Target { kNode, kRank } target = Target::kNode;
  int number = 0;                // node rank, or rank of a worker
  int signal = 9;                // SIGKILL
  std::optional<int> exit_code;  // in place of a signal: the process ends with this code, as if by itself
  enum class Link { kAsItIs, kCut, kMend } link = Link::kAsItIs;  // in place of a signal: of a node's network link
  std::optional<Duration> after;                                  // since the beginning of the run
  std::string text;  // without `after`: once a line of output contains this
  std::string said;  // the flag's value, for messages
};

// "node:1@30s", "rank:3@epoch 4", "rank:0:STOP@500ms", "rank:0:exit=3@1s", "node:1:cut@2s":
// TARGET:NUMBER[:SIGNAL|:exit=CODE|:cut|:mend]@WHEN. If WHEN is a number with ms, s or m, it is a time, else a text.
// InvalidArgument: names the value and the wanted form.
StatusOr<Drill> ParseDrill(std::string_view text);

// FailedPrecondition: the drill cuts or mends a link, and hosts have no links, for the reason `why_shared`; empty: they
// have.
Status CheckLinks(const Drill& drill, std::string_view why_shared);

}  // namespace muster::local
