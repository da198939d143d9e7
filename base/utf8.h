// Reading UTF-8 that nobody has checked: what workers write. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster {

inline constexpr std::string_view kReplacementCharacter = "\uFFFD";

// What a text begins with.
struct Utf8Character {
  uint32_t code = 0;  // 0 where it is not valid
  size_t size = 1;    // bytes; of what is no character, those that could have begun one (at least 1)
  bool valid = false;
};

// By Unicode's table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF. `text` is not empty.
Utf8Character FirstCharacter(std::string_view text);

bool IsUtf8(std::string_view text);  // all of it

}  // namespace muster
