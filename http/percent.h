// Percent-encoding of RFC 3986, as SigV4 wants it: unreserved is A-Z a-z 0-9 - . _ ~, hex is upper case, a space is
// %20.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::http {

// Of either case.
std::optional<unsigned> HexDigit(char c);

// Every byte that is not unreserved, and not in `kept`, becomes %XX.
std::string PercentEncode(std::string_view text, std::string_view kept = "");
// Bad escapes stay as they are. `plus_is_space`: as forms have it.
std::string PercentDecode(std::string_view text, bool plus_is_space = false);

using QueryParameters = std::vector<std::pair<std::string, std::string>>;  // decoded; any order

// "name=value&..." in SigV4's order and encoding; also a form of OAuth's. What is sent must be what is signed. A
// parameter without a value is "name=".
std::string CanonicalQuery(const QueryParameters& query);

}  // namespace muster::http
