// SPDX-License-Identifier: Apache-2.0
// Carries out one action of a decision in a World. Pure, except for the random bytes of tokens.
#pragma once

#include "controller/api/meta.h"
#include "controller/reconcile/steps.h"
#include "local/cluster/world.h"

namespace muster::local {

// OK: the world is now as the action wants it. An object that has gone, or that was deleted and created again, is
// neither changed nor deleted, and that is OK too. FailedPrecondition: an object with the needed name exists and is not
// controlled by `owner`. `owner`: the job that the action is about; `owner_kind`: its kind.
Status CarryOut(const controller::Action& action, std::string_view owner_kind, const controller::Meta& owner,
                WallTime now, World* world);

}  // namespace muster::local
