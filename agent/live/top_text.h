// SPDX-License-Identifier: Apache-2.0
// Numbers and times for the cells of `muster top`: short, and of a width that hardly changes. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace muster::agent {

inline constexpr char kUnknownCell[] = "-";

// At most 5 columns: "350ms", "1.2s", "45s", "12m", "3h", "5d".
std::string ShortSpan(Duration span);
// In whole seconds below a minute, so that it changes once a second: "0s", "12s", "3m", "2h", "5d".
std::string ShortAge(Duration age);
// At most 5 columns: "512K", "1.2G", "34G".
std::string ShortBytes(int64_t bytes);
// A position or its end: "250", "1.25"; above a hundred million in powers of ten.
std::string ShortPosition(double position);
std::string ShortLoss(double loss);  // "0.1234", "12.34"
// "12%" of 0.123; what is more than nothing is at least 1%.
std::string ShareText(double share);

// "4 min 05 s" of report/report_text.h.
std::string LongSpan(Duration span);

template <class Value, class Function>
std::string CellOf(const std::optional<Value>& value, Function text) {
  return value ? text(*value) : std::string(kUnknownCell);
}

// Whether `text` has `part`, in any case of ASCII letters. `part` is in lower case.
bool HasPart(std::string_view text, std::string_view part);

}  // namespace muster::agent
