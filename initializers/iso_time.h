// Points in time as JSON and XML answers write them. Pure; outside bytes.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace muster::initializers {

// "2026-11-22T01:02:03Z", also with fractions (dropped), "UTC" and offsets (+01:00, +0100) -> seconds since 1970.
// InvalidArgument names the text: also where it has no zone, so that nobody takes local time for UTC.
StatusOr<int64_t> ParseIsoTime(std::string_view text);

}  // namespace muster::initializers
