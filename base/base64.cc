// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <cstdint>

#include "base/quoted.h"
#include "base/text.h"

namespace muster {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

Status Bad(std::string_view text, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{} is not base64: {}", Quoted(text), what));
}

}  // namespace

std::string ToBase64(std::string_view raw) {
  std::string text;
  text.reserve((raw.size() + 2) / 3 * 4);
  for (size_t i = 0; i < raw.size(); i += 3) {
    const std::string_view group = raw.substr(i, 3);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < group.size() ? static_cast<unsigned char>(group[k]) : 0U);
    for (size_t k = 0; k < 4; ++k) text += k <= group.size() ? kDigits[bits >> 6 * (3 - k) & 63] : '=';
  }
  return text;
}

StatusOr<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 != 0) return Bad(text, "its length must be a multiple of four");
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string raw;
  raw.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t digit = 0;
    if (i < text.size() - padding) digit = kDigits.find(text[i]);
    if (digit == std::string_view::npos) return Bad(text, "it may hold only A-Z, a-z, 0-9, + and /");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (i % 4 != 3) continue;
    for (int shift : {16, 8, 0}) raw += static_cast<char>(bits >> shift & 0xff);
  }
  if (padding > 0) {
    // RFC 4648 section 3.5: unused bits are zero, so each value has exactly one text.
    if (raw.substr(raw.size() - padding).find_first_not_of('\0') != std::string::npos) {
      return Bad(text, "its last digit has bits that belong to no byte");
    }
    raw.erase(raw.size() - padding);
  }
  return raw;
}

}  // namespace muster
