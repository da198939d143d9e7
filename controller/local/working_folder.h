// The folder that a container's command runs in is made where it is not there, as the kubelet has it. Pure but for the
// question whether it is there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controller/local/pod_program.h"

namespace muster::controller {

// In a volume it is made in the volume; elsewhere a folder below `pod_folder` is mounted in its place, so nothing is
// made among this machine's own. What is missing goes to `folders`. A folder of a read-only volume stays missing.
// `is_there`: of an absolute path as the container sees it without mounts.
void NeedWorkingFolder(const std::string& pod_folder, const std::function<bool(const std::string& path)>& is_there,
                       ContainerProgram* container, std::vector<PodFolder>* folders);

}  // namespace muster::controller
