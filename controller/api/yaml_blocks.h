// SPDX-License-Identifier: Apache-2.0
// Makes block scalars (`|`, `>`) of a YAML text readable for yaml-cpp. Pure; linear; untrusted input.
#pragma once

#include <string>
#include <string_view>

namespace muster::controller {

// yaml-cpp takes the column of an anchor or a tag in a list for the indentation of the list: the text below "- &a |"
// would have to be further right than the anchor. Moves such text to the right, which changes neither it nor any line's
// number.
std::string WithBlocksFurtherRight(std::string_view text);

}  // namespace muster::controller
