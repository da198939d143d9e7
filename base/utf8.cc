// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <algorithm>

namespace muster {

Utf8Character FirstCharacter(std::string_view text) {
  auto byte = [&](size_t at) -> uint32_t { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0; };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  if (lead < 0xC2 || lead > 0xF4) return {};
  const size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  uint32_t code = lead & (0xFFu >> (size + 1));
  uint32_t least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  uint32_t most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t at = 1; at < size; ++at) {
    if (byte(at) < least || byte(at) > most) return {0, at, false};
    code = code << 6 | (byte(at) & 0x3F);
    least = 0x80;
    most = 0xBF;
  }
  return {code, size, true};
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character character = FirstCharacter(text);
    if (!character.valid) return false;
    text.remove_prefix(character.size);
  }
  return true;
}

std::string_view Beginning(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  constexpr size_t kMostContinuations = 3;
  for (size_t back = 0; back <= std::min(kMostContinuations, most); ++back) {
    const bool continues = (static_cast<unsigned char>(text[most - back]) & 0xC0) == 0x80;
    if (!continues) return text.substr(0, most - back);
  }
  return text.substr(0, most);
}

std::string Abbreviated(std::string_view text, size_t most) {
  return text.size() <= most ? std::string(text) : std::string(Beginning(text, most)) + "...";
}

}  // namespace muster
