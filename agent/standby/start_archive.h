// SPDX-License-Identifier: Apache-2.0
// A zip archive in memory with the modules sitecustomize, learner, watcher and probe, which Python imports from a path
// of /proc/self/fd: nothing is written to a disk, so that it works on a read-only root and as any user.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptors.h"
#include "base/status.h"

namespace muster::agent::standby {

// A zip archive of files, (name, content) each, stored: zipimport needs no zlib for it.
std::string ZipOf(const std::vector<std::pair<std::string_view, std::string_view>>& files);

// A descriptor of memory (memfd) that has the archive; the file offset is 0. FailedPrecondition: the kernel has no
// memfd, or a profile forbids it.
StatusOr<Descriptor> OpenStartArchive();

}  // namespace muster::agent::standby
