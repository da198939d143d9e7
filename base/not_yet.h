// What a command says of a peer that it waits for. Pure.
#pragma once

#include <string>
#include <string_view>

namespace muster {

// `failure`: of the last dial, "HOST:PORT: REASON" for each address, with "; " between. Where each refused it is "nothing
// listens there yet": pods start in any order. Else the failure, without `address` before it.
std::string NotYet(std::string_view failure, std::string_view address);

}  // namespace muster
