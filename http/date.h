// SPDX-License-Identifier: Apache-2.0
// Dates in HTTP headers (RFC 9110 5.6.7): Date, Retry-After, Last-Modified. Pure. Safe for untrusted input.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::http {

// Any of the three forms -> seconds since 1970; nullopt if it is none of them. A two-digit year is of the century of
// `unix_now`, or of the one before if it would be more than fifty years ahead.
std::optional<int64_t> ParseDate(std::string_view text, int64_t unix_now);

}  // namespace muster::http
