// SPDX-License-Identifier: Apache-2.0
#include "base/visible_text.h"

#include <algorithm>

namespace muster {
namespace {

constexpr char kEscape = '\x1b';

// Bytes of the escape sequence that `text` begins with.
size_t EscapeSize(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] == '[') {  // CSI: parameters, then one byte from @ to ~
    size_t end = 2;
    while (end < text.size() && (text[end] < '@' || text[end] > '~')) ++end;
    return std::min(end + 1, text.size());
  }
  if (text[1] != ']') return 2;
  size_t end = text.find_first_of("\a\x1b", 2);  // OSC, such as a link: up to BEL or ESC backslash
  if (end == std::string_view::npos) return text.size();
  return std::min(end + (text[end] == kEscape ? 2 : 1), text.size());
}

}  // namespace

std::string VisibleText(std::string_view line) {
  std::string text;
  text.reserve(line.size());
  for (size_t at = 0; at < line.size();) {
    if (line[at] == kEscape) {
      at += EscapeSize(line.substr(at));
      continue;
    }
    const auto byte = static_cast<unsigned char>(line[at++]);
    if ((byte >= 0x20 && byte != 0x7f) || byte == '\t') text += static_cast<char>(byte);
  }
  return text;
}

}  // namespace muster
