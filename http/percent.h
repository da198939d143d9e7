// SPDX-License-Identifier: Apache-2.0
// Percent-encoding of RFC 3986 in the form that SigV4 requires: unreserved are A-Z a-z 0-9 - . _ ~, hex digits are in
// upper case, a space is %20.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::http {

// The value of a hexadecimal digit in upper or lower case.
std::optional<unsigned> HexDigit(char c);

// Every byte that is neither unreserved nor in `kept` becomes %XX.
std::string PercentEncode(std::string_view text, std::string_view kept = "");
// Invalid escapes stay unchanged. `plus_is_space`: '+' is a space, as in forms.
std::string PercentDecode(std::string_view text, bool plus_is_space = false);

using QueryParameters = std::vector<std::pair<std::string, std::string>>;  // decoded; any order

// "name=value&..." in SigV4's order and encoding; also used for OAuth forms. Send exactly this text, since it is what
// is signed. A parameter without a value is "name=".
std::string CanonicalQuery(const QueryParameters& query);

}  // namespace muster::http
