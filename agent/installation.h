// SPDX-License-Identifier: Apache-2.0
// Puts this binary into a folder that other containers of the pod will mount: `muster install`.
//
// At any moment each name in the folder is absent, the complete old file or the complete new file: contents are written
// under a temporary name in the folder (".muster-install.<random>"), made 0755, synced and renamed. A process that is
// killed leaves at most temporary names, and the next installation removes them. A lock on the folder (flock) protects
// the temporary names of running installations: each installation holds it shared while it writes, and removes names
// only while it holds it exclusively. If the file system has no flock, nothing is removed.
//
// Any number of processes may install into one folder at once. Needs no shell, no NSS and no root. Needs /proc only if
// the path by which the binary was started no longer leads to it.
//
// Source of the idea: Tekton's entrypoint `cp`, which neither renames nor checks noexec.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::agent {

struct Installation {
  std::vector<std::string> written;  // names that were missing or different before; in the order made
};

// Installs `muster`, `torchrun` and `muster-rsh` into `folder`; the last two are relative symbolic links to the first,
// or hard links or copies if the file system has no symbolic links. Makes `folder` (0755, with its parents) if it is
// missing. Does not touch a name that already has the right content. Errors, each naming the path and the remedy:
// `folder` is not a folder, cannot be written, is mounted noexec or is full; a name in it is a folder; a link's name is
// a file that is not Muster's (`force` replaces such a file).
StatusOr<Installation> InstallInto(const std::string& folder, bool force);

// The path of this binary, from /proc; empty if /proc is not mounted.
std::string OwnPath();
// The path of `name` in this binary's folder, if it leads to this binary; else empty.
std::string InstalledLink(std::string_view name);

}  // namespace muster::agent
