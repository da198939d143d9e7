// SPDX-License-Identifier: Apache-2.0
// Texts of the pages: HTML escaping, spans and moments of time. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

// `text` as a reader may see it. Drops colour sequences of terminals; a carriage return becomes a new line; other
// control characters, changes of the direction of writing, and bytes that are no UTF-8 become U+FFFD.
std::string ShownText(std::string_view text);
// The same for an element or a quoted attribute.
std::string EscapeHtml(std::string_view text);

// The last `limit` bytes, cut at a line or at least between characters; after a cut, a "..." line comes first.
std::string LastPart(std::string_view text, size_t limit);

// "450 ms", "1.25 s", "12.3 s", "4 min 05 s", "3 h 12 min", "2 d 4 h".
std::string FormatSpan(int64_t millis);
// The same of a span of seconds, rounded to milliseconds.
std::string FormatSeconds(double seconds);
// "2026-11-21 19:34:12 UTC"; "" outside the years 1970 to 9999.
std::string FormatMoment(int64_t unix_millis);
// "1.5 GiB", "12 MiB".
std::string FormatBytes(int64_t bytes);
// "2.314", "1.2e-05".
std::string FormatLoss(double loss);
// Steps are whole: "1240"; epochs have a fraction: "2.5".
std::string FormatPosition(double position, bool in_epochs);

// At most `most` + 1 moments of an axis of `span` milliseconds, at readable steps; the first is 0.
std::vector<int64_t> AxisTicks(int64_t span, int most);
// A tick in the unit that fits its step: "200 ms", "1.5 s", "40 s", "10 min", "6 h", "2 d".
std::string FormatTick(int64_t millis);

}  // namespace muster::agent
