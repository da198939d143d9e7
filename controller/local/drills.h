// Faults on purpose in a local run: which process gets which signal, or ends with which code, which node's link is cut,
// and when. Pure; outside bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace muster::controller {

struct Drill {
  enum class Target { kNode, kRank } target = Target::kNode;
  int number = 0;                // node rank, or rank
  int signal = 9;                // SIGKILL
  std::optional<int> exit_code;  // in place of a signal: it ends with this, as if by itself
  enum class Link { kAsItIs, kCut, kMend } link = Link::kAsItIs;  // of a node, in place of a signal
  std::optional<Duration> after;                                  // from the beginning of the run
  std::string text;                                               // else: once a line of output has this
  std::string said;                                               // as the user gave it
};

// "node:1@30s", "rank:3@epoch 4", "rank:0:STOP@500ms", "rank:0:exit=3@1s", "node:1:cut@2s":
// TARGET:NUMBER[:SIGNAL|:exit=CODE|:cut|:mend]@WHEN. A number with ms, s or m is a time; anything else a text.
// InvalidArgument names the value and what is wanted.
StatusOr<Drill> ParseDrill(std::string_view text);

}  // namespace muster::controller
