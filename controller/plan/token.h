// SPDX-License-Identifier: Apache-2.0
// Secrets that belong to one job alone, such as the token by which the agents of its pods authenticate to each other.
// Pure. docs/rendezvous.md says what the agents do with the token.
#pragma once

#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "controller/api/meta.h"
#include "controller/plan/plan.h"

namespace muster::controller {

// <job>-<purpose>-<the first letters of the job's uid>, so neither an earlier job of the name nor anybody else made it.
std::string OwnSecretName(const Meta& job, std::string_view purpose);

// An immutable Secret of that name, still without the content of `fill`.
PlannedObject OwnSecret(const std::string& name, PlannedObject::Fill fill);

std::string TokenSecretName(const Meta& job);  // <job>-token-...

// The Secret TokenSecretName(), still without the token. It is immutable.
PlannedObject TokenSecret(const Meta& job);

// Whether the container has MUSTER_TOKEN_FILE already, and so a token of its own.
bool HasOwnToken(const Json& container);

// Mounts `secret` in `container` of `pod`, and sets MUSTER_TOKEN_FILE.
void MountToken(const std::string& secret, Json* pod, Json* container);

// TokenSecret() with the token in it.
Json WithToken(Json secret, const std::string& token);

}  // namespace muster::controller
