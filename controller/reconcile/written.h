// SPDX-License-Identifier: Apache-2.0
// The JSON that an action writes.
#pragma once

#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

// The merge patch of an action that changes an object. It contains the uid, so that a server does not apply it to
// another object of that name. Pure.
Json PatchOf(const Action& action);

// The object that an action creates, with the parts that no plan contains: the token, or the pair of SSH keys, of the
// job with this uid (derived_secrets.h). `master_key`: not used if the action has no `fill`. Unavailable: OpenSSL
// fails.
StatusOr<Json> Filled(const Action& action, std::string_view uid, std::string_view master_key);

}  // namespace muster::controller
