// SPDX-License-Identifier: Apache-2.0
// Moments of the wall clock as JSON and XML write them (RFC 3339, ISO 8601). Pure. Safe for untrusted input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace muster {

// "2026-11-22T01:02:03Z", also with fractions (dropped), "UTC" and offsets (+01:00, +0100) -> seconds since 1970.
// InvalidArgument names the text. A text without a zone is an error too, so that local time is never taken for UTC.
StatusOr<int64_t> ParseIsoTime(std::string_view text);
// The same to the microsecond; further digits are dropped.
StatusOr<WallTime> ParseWallTime(std::string_view text);

// "2026-11-22T01:02:03Z", the format of Kubernetes' Time. A fraction of a second is dropped.
std::string IsoTime(WallTime time);
// "2026-11-22T01:02:03.000004Z", the format of Kubernetes' MicroTime (Lease, Event): always six digits.
std::string IsoMicroTime(WallTime time);

}  // namespace muster
