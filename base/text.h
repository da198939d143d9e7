// SPDX-License-Identifier: Apache-2.0
// Parses, splits and joins short texts. (Debian's absl has its own string_view; these functions take std::string_view.)
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

// All of `text` as a decimal integer without "+". nullopt when it is none or does not fit.
std::optional<int64_t> ParseInt(std::string_view text);
// All of `text` as a finite decimal number such as "0.5" or "30". nullopt when it is none.
std::optional<double> ParseDouble(std::string_view text);

bool IsVisible(std::string_view text);          // only visible ASCII, no blanks: fit for an HTTP header
std::string_view Strip(std::string_view text);  // without ASCII white space at both ends
std::string Lower(std::string_view text);       // ASCII
std::string Upper(std::string_view text);       // ASCII

// Parts between separators: "a,,b" gives "a", "", "b". An empty text gives no parts.
std::vector<std::string_view> Split(std::string_view text, char separator);
// Parts between runs of blanks, tabs and \r: " a \tb" gives "a", "b".
std::vector<std::string_view> Words(std::string_view line);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);

std::string Counted(int64_t count, std::string_view noun);  // "1 node", "3 nodes"

}  // namespace muster
