// SPDX-License-Identifier: Apache-2.0
// What a terminal shows of a text: without its escape sequences and control characters. Pure.
#pragma once

#include <string>
#include <string_view>

namespace muster {

// `line` without CSI and OSC sequences (ECMA-48), other escapes of two bytes, and control characters but tabs. Bytes
// above 0x7f are left as they are.
std::string VisibleText(std::string_view line);

}  // namespace muster
