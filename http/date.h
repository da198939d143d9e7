// Dates as HTTP's headers write them (RFC 9110 5.6.7): Date, Retry-After, Last-Modified. Pure; outside bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::http {

// Any of the three forms -> seconds since 1970; nothing for what is none. `unix_now`: two digits of a year are of the
// century that brings them within fifty years of it.
std::optional<int64_t> ParseDate(std::string_view text, int64_t unix_now);

}  // namespace muster::http
