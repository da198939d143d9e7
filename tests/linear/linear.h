// SPDX-License-Identifier: Apache-2.0
// Checks that a parser of outside bytes takes time and memory in proportion to its input. The files beside this one
// have a table of rows for each room; every fuzz target has a row (tests/layout_test.py).
//
// A row makes inputs of n parts. n grows until the parser works long enough to be measured. Then it reads 8 n parts,
// and may take at most 36 times the time and 24 times the memory: work in proportion takes 8 times as much, and more
// where the larger input leaves the caches; the square takes 64 times. What is compared is the CPU time of this thread,
// the least of several tries, and the most memory from `new` at one time: other processes have little effect.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace muster {

struct LinearRow {
  std::string target;  // of tests/fuzz, without "_fuzz"
  std::string what;    // letters and digits: what the input is made of
  std::function<std::string(size_t parts)> input;
  std::function<void(const std::string& input)> parse;
};

// For the tables: INSTANTIATE_TEST_SUITE_P(Room, Linear, testing::ValuesIn(kRows), NameOfRow).
class Linear : public testing::TestWithParam<LinearRow> {};
inline std::string NameOfRow(const testing::TestParamInfo<LinearRow>& row) {
  return fmt::format("{}_{}", row.param.target, row.param.what);
}
inline void PrintTo(const LinearRow& row, std::ostream* out) { *out << row.target << ' ' << row.what; }

// Makers of inputs: `part` n times, between `before` and `after`.
inline auto Repeats(std::string_view part, std::string_view before = "", std::string_view after = "") {
  return [part, before, after](size_t parts) {
    std::string text(before);
    for (size_t at = 0; at < parts; ++at) text += part;
    return text.append(after);
  };
}
// The same with parts that differ: `part` gives the one of a number.
inline auto Numbers(std::function<std::string(size_t number)> part, std::string_view before = "",
                    std::string_view after = "") {
  return [part = std::move(part), before, after](size_t parts) {
    std::string text(before);
    for (size_t at = 0; at < parts; ++at) text += part(at);
    return text.append(after);
  };
}

}  // namespace muster
