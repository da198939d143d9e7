// The token of a job: a Secret of its own, by which the agents of its pods know each other. Pure.
// docs/rendezvous.md says what the agents do with it.
#pragma once

#include <string>

#include "base/json_fields.h"
#include "controller/api/train_job.h"
#include "controller/plan/plan.h"

namespace muster::controller {

// <job>-token-<the first letters of the job's uid>: no job that had the name before, and nobody else, has made it.
std::string TokenSecretName(const TrainJob& job);

// That Secret, without the token. It cannot be changed.
PlannedObject TokenSecret(const TrainJob& job);

// The container asks for its token: MUSTER_TOKEN_FILE is its own already.
bool HasOwnToken(const Json& container);

// `container` of `pod` reads the token of the Secret.
void MountToken(const std::string& secret, Json* pod, Json* container);

// The Secret of a plan, with the token in it.
Json WithToken(Json secret, const std::string& token);

}  // namespace muster::controller
