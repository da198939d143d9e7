// The facts about a run as text: the output of `muster status` and the answer of /status. Pure.
#pragma once

#include <string>
#include <string_view>

#include "rendezvous/messages.h"

namespace muster::agent {

// One JSON object in one line, without line feed (docs/rendezvous.md has the fields). If not empty, `source` (who
// reported) and `source_reason` (why not the coordinator) are added (docs/watching.md).
std::string StatusJson(const rendezvous::StatusReport& report, std::string_view source = "",
                       std::string_view source_reason = "");

// For people; several lines.
std::string StatusTable(const rendezvous::StatusReport& report);

}  // namespace muster::agent
