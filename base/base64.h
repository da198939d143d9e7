// SPDX-License-Identifier: Apache-2.0
// Base64 as in RFC 4648, with padding. Pure. Safe for untrusted input.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace muster {

std::string ToBase64(std::string_view raw);
// InvalidArgument names the text and what is wrong with it. White space is an error.
StatusOr<std::string> FromBase64(std::string_view text);

}  // namespace muster
