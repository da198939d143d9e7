// SPDX-License-Identifier: Apache-2.0
// How a command describes a peer that it waits for. Pure.
#pragma once

#include <string>
#include <string_view>

namespace muster {

// Returns "nothing listens there yet" if every address refused the last dial, since pods start in any order. Otherwise
// returns `failure` ("HOST:PORT: REASON" for each address, with "; " between) without a leading "`address`: ".
std::string NotYet(std::string_view failure, std::string_view address);

}  // namespace muster
