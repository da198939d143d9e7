// SPDX-License-Identifier: Apache-2.0
// Creates the working folder of a container's command if it is missing, as the kubelet does. Pure, except for
// `is_there`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "local/pod/program.h"

namespace muster::local {

// A missing working folder in a volume is created there, but not in a read-only one. Elsewhere a folder below
// `pod_folder` is mounted in its place, so nothing is created in this machine's own folders. Adds the folders to create
// to `folders`. `is_there`: whether an absolute path exists in the container without its mounts.
void NeedWorkingFolder(const std::string& pod_folder, const std::function<bool(const std::string& path)>& is_there,
                       ContainerProgram* container, std::vector<PodFolder>* folders);

}  // namespace muster::local
