// Secrets of one job alone. The token is one, by which the agents of its pods know each other. Pure.
// docs/rendezvous.md says what the agents do with it.
#pragma once

#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "controller/api/meta.h"
#include "controller/plan/plan.h"

namespace muster::controller {

// <job>-<purpose>-<the first letters of the job's uid>: no job that had the name before, and nobody else, has made it.
std::string OwnSecretName(const Meta& job, std::string_view purpose);

// A Secret of such a name, without what `fill` puts into it. It cannot be changed.
PlannedObject OwnSecret(const std::string& name, PlannedObject::Fill fill);

// <job>-token-...
std::string TokenSecretName(const Meta& job);

// That Secret, without the token. It cannot be changed.
PlannedObject TokenSecret(const Meta& job);

// The container asks for its token: MUSTER_TOKEN_FILE is its own already.
bool HasOwnToken(const Json& container);

// `container` of `pod` reads the token of the Secret.
void MountToken(const std::string& secret, Json* pod, Json* container);

// The Secret of a plan, with the token in it.
Json WithToken(Json secret, const std::string& token);

}  // namespace muster::controller
