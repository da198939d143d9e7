// SPDX-License-Identifier: Apache-2.0
#include "base/quoted.h"

#include "base/text.h"
#include "base/utf8.h"

namespace muster {
namespace {

// Also line separators, and characters that make a terminal change the order of a text.
bool IsControl(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string Quoted(std::string_view text, size_t most) {
  std::string quoted = "'";
  for (size_t at = 0; at < text.size();) {
    if (at >= most) return quoted + "...'";
    const Utf8Character character = FirstCharacter(text.substr(at));
    if (character.valid && !IsControl(character.code)) {
      quoted += text.substr(at, character.size);
    } else {
      for (char c : text.substr(at, character.size)) quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    at += character.size;
  }
  return quoted + "'";
}

std::string QuotedEnd(std::string_view said, size_t most) {
  std::string end;
  const auto lines = Split(said, '\n');
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::string_view words = Strip(*line);
    if (words.empty()) continue;
    std::string longer = end.empty() ? std::string(words) : fmt::format("{} / {}", words, end);
    if (!end.empty() && longer.size() > most) break;
    end = std::move(longer);
  }
  return Quoted(end, most);
}

}  // namespace muster
