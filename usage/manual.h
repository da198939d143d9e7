// SPDX-License-Identifier: Apache-2.0
// The manual page of a command, in man's language (roff). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "usage/command.h"

namespace muster::usage {

// `source`: program and version, for the page's foot. `see_also`: names of other commands, as "muster run".
std::string ManualPage(const Command& command, std::string_view source, const std::vector<std::string>& see_also);

// A text as roff shows it, whatever is in it: one line, with `words` in bold.
std::string RoffText(std::string_view text);

// "muster-run" for "muster run".
std::string PageName(std::string_view command);

}  // namespace muster::usage
