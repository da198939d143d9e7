// One container of a pod. Pure; outside bytes.
#pragma once

#include "base/status.h"
#include "controller/local/pod_input.h"
#include "controller/local/pod_volumes.h"

namespace muster::controller {

// What `container`, of initContainers or of containers, comes to in a pod whose restartPolicy is `pod_restart`. What
// has to be made for it goes into `tree`. Errors as of ProgramOf.
enum class ContainerKind { kInit, kMain };
StatusOr<ContainerProgram> ContainerOf(Fields container, ContainerKind kind, ContainerProgram::Restart pod_restart,
                                       const PodVolumes& volumes, const PodInput& input, PodTree* tree);

// A restartPolicy; `otherwise`: it is not there.
ContainerProgram::Restart RestartOf(Fields object, ContainerProgram::Restart otherwise);

}  // namespace muster::controller
