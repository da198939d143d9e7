// The JSON that an action writes.
#pragma once

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

// The merge patch of an action that changes an object. It contains the uid, so that a server does not apply it to
// another object of that name. Pure.
Json PatchOf(const Action& action);

// The object that an action creates, with the parts that no plan contains: a new token, or a new pair of SSH keys.
// Unavailable: OpenSSL has no random bytes.
StatusOr<Json> Filled(const Action& action);

}  // namespace muster::controller
