// The facts about a run as text: what `muster status` prints and /status answers. Pure.
#pragma once

#include <string>
#include <string_view>

#include "rendezvous/messages.h"

namespace muster::agent {

// One JSON object in one line, without line feed (docs/rendezvous.md has the fields). `source` and `source_reason` are
// added where not empty: who told it, and why not the coordinator (docs/watching.md).
std::string StatusJson(const rendezvous::StatusReport& report, std::string_view source = "",
                       std::string_view source_reason = "");

// For people; several lines.
std::string StatusTable(const rendezvous::StatusReport& report);

}  // namespace muster::agent
