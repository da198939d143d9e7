// One action of a decision, carried out in a World. Pure, but for the random bytes of tokens.
#pragma once

#include "controller/api/meta.h"
#include "controller/local/world.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

// OK: it is so now. An object of the name that is needed and that another one's controller has: FailedPrecondition.
// What has gone, or been made anew, is neither changed nor deleted. `owner`: the job that the action is about, of
// `owner_kind`.
Status CarryOut(const Action& action, std::string_view owner_kind, const Meta& owner, WallTime now, World* world);

}  // namespace muster::controller
