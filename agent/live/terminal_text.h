// SPDX-License-Identifier: Apache-2.0
// Text of jobs for a terminal: harmless, and as many columns wide as it says. Pure, thread-safe.
//
// The text comes from workers, so it may hold anything. What a terminal obeys is left out or replaced: escape sequences
// are dropped; tabs and ends of lines become blanks; other control characters, changes of the direction of writing and
// bytes that are no UTF-8 become U+FFFD; characters without a shape (joiners, variation selectors, tags) are dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

// The columns of a character: 2 for East Asian wide ones and emoji, 0 for combining marks, else 1. By Unicode 14.
size_t ColumnsOf(uint32_t code);

struct ShownText {
  std::string text;
  size_t columns = 0;
  size_t bytes = 0;   // of the original that are shown or dropped
  bool whole = true;  // false: the text had to be cut
};

// The beginning of `text` that fits into `most` columns. Its time is linear in `most`, whatever the length of `text`.
ShownText Shown(std::string_view text, size_t most);
// The same; if it had to be cut, the last column is "…".
ShownText Cut(std::string_view text, size_t most);

// All of `text` in lines of `columns` columns, at most `most` of them.
std::vector<std::string> Wrapped(std::string_view text, size_t columns, size_t most);

// `shown` for a terminal without UTF-8: as many columns of ASCII.
std::string InAscii(std::string_view shown);

}  // namespace muster::agent
