// Base64 as RFC 4648 has it, with padding. Pure; outside bytes.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace muster {

std::string ToBase64(std::string_view raw);
// InvalidArgument names the text and what is wrong with it: white space in it, too.
StatusOr<std::string> FromBase64(std::string_view text);

}  // namespace muster
