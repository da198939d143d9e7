// SPDX-License-Identifier: Apache-2.0
// Reads one container of a pod. Pure; untrusted input.
#pragma once

#include "base/status.h"
#include "local/pod/input.h"
#include "local/pod/volumes.h"

namespace muster::local {

// The program of `container`, an entry of initContainers (kInit) or of containers (kMain), in a pod whose restartPolicy
// is `pod_restart`. Adds the folders and files that it needs to `tree`. Errors: as of ProgramOf.
enum class ContainerKind { kInit, kMain };
StatusOr<ContainerProgram> ContainerOf(controller::Fields container, ContainerKind kind,
                                       ContainerProgram::Restart pod_restart, const PodVolumes& volumes,
                                       const PodInput& input, PodTree* tree);

// The field restartPolicy of `object`; `otherwise` if it is missing.
ContainerProgram::Restart RestartOf(controller::Fields object, ContainerProgram::Restart otherwise);

}  // namespace muster::local
