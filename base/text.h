// Reading and joining short texts. (Debian's absl has its own string_view; these take std::string_view.)
//
// Messages are built with fmt::format.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// The whole of `text` as a decimal number, "+" not allowed; nullopt when it is not one or does not fit.
std::optional<int64_t> ParseInt(std::string_view text);
// The whole of `text` as a finite decimal number such as "0.5" or "30".
std::optional<double> ParseDouble(std::string_view text);

bool IsVisible(std::string_view text);          // only ASCII that shows: no blank, nothing that a header cannot hold
std::string_view Strip(std::string_view text);  // without ASCII white space at both ends
std::string Lower(std::string_view text);       // ASCII
std::string Upper(std::string_view text);       // ASCII

// Parts between separators: "a,,b" gives "a", "", "b"; an empty text gives no part.
std::vector<std::string_view> Split(std::string_view text, char separator);
// Parts between runs of blanks, tabs and \r: " a \tb" gives "a", "b".
std::vector<std::string_view> Words(std::string_view line);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);

std::string Counted(int64_t count, std::string_view noun);  // "1 node", "3 nodes"

}  // namespace muster
