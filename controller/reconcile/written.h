// What an action writes, for whoever carries it out.
#pragma once

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

// Of an action that changes an object: the merge patch. It holds the uid, so that a server merges it into no other
// object of that name. Pure.
Json PatchOf(const Action& action);

// The object of an action that creates one, with what a plan does not say: a new token, or a new key pair.
// Unavailable: OpenSSL has no random bytes.
StatusOr<Json> Filled(const Action& action);

}  // namespace muster::controller
