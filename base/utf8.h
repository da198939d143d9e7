// SPDX-License-Identifier: Apache-2.0
// Decodes untrusted UTF-8, such as the output of workers. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

inline constexpr std::string_view kReplacementCharacter = "\uFFFD";

// The first character of a text.
struct Utf8Character {
  uint32_t code = 0;  // 0 if not valid
  size_t size = 1;    // bytes; if not valid, the bytes that could begin a character (at least 1)
  bool valid = false;
};

// By Unicode's table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF. `text` is not empty.
Utf8Character FirstCharacter(std::string_view text);

bool IsUtf8(std::string_view text);  // whether all of `text` is valid

// The longest beginning of `text` of at most `most` bytes that ends between two characters. A text that is not UTF-8
// may be cut up to 3 bytes earlier.
std::string_view Beginning(std::string_view text, size_t most);
// `text`; if it is longer than `most` bytes, its Beginning and "...".
std::string Abbreviated(std::string_view text, size_t most);

}  // namespace muster
