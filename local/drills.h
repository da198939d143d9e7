// SPDX-License-Identifier: Apache-2.0
// Drills: what the user orders to happen to a node or a rank in a local run (--kill), and when. Pure; untrusted input.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/status.h"

namespace muster::local {

struct Drill {
  enum class Target { kNode, kRank } target = Target::kNode;
  int number = 0;  // node rank, or rank of a worker
  struct Signal {  // the process gets it
    int number;
    bool operator==(const Signal&) const = default;
  };
  struct Exit {  // the process ends with this code, as if by itself
    int code;
    bool operator==(const Exit&) const = default;
  };
  enum class Link { kCut, kMend };  // the node's network link is cut, or works again
  std::variant<Signal, Exit, Link> action = Signal{SIGKILL};
  std::optional<Duration> after;  // since the beginning of the run
  std::string text;               // without `after`: once a line of output contains this
  std::string said;               // the flag's value, for messages
};

// "node:1@30s", "rank:3@epoch 4", "rank:0:STOP@500ms", "rank:0:exit=3@1s", "node:1:cut@2s":
// TARGET:NUMBER[:SIGNAL|:exit=CODE|:cut|:mend]@WHEN. If WHEN is a number with ms, s or m, it is a time, else a text.
// InvalidArgument: names the value and the wanted form.
StatusOr<Drill> ParseDrill(std::string_view text);

// FailedPrecondition: the drill cuts or mends a link, and hosts have no links, for the reason `why_shared`; empty: they
// have.
Status CheckLinks(const Drill& drill, std::string_view why_shared);

}  // namespace muster::local
