// Puts this binary into a folder that other containers of the pod will mount: `muster install`.
//
// Every name in the folder is always absent, the old whole file, or the new whole file: contents are written under a
// temporary name beside it (".muster-install.<random>"), synced, made 0755 and renamed. A process killed at any moment
// leaves at most temporary names, which the next installation removes. It tells them from those of a living one by a
// lock on the folder (flock): each installation shares it while it writes, and only who has it alone removes. Where the
// file system has no such lock, nothing is removed.
//
// Any number of processes may install into one folder at once. Needs no shell, no NSS and no root, and /proc only where
// the binary was started by a path that no longer leads to it.
//
// Source of the idea: Tekton's entrypoint `cp`, which neither renames nor checks noexec.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::agent {

struct Installation {
  std::vector<std::string> written;  // names in the folder that were not there, or not the same; in the order made
};

// Installs `muster`, `torchrun` and `muster-rsh` (relative symbolic links to the first; hard links or copies where the
// file system has none) into `folder`, which is made (0755, with its parents) where it is missing. What is there
// already is not touched. Errors, each naming the path and the remedy: `folder` is no folder, cannot be written, is
// mounted noexec, is full; a name in it is a folder, or a link's name is a file of somebody else. `force` replaces the
// last.
StatusOr<Installation> InstallInto(const std::string& folder, bool force);

// Where this binary lies, by /proc; empty where that is not mounted.
std::string OwnPath();
// The path of a link by that name beside this binary that leads to it; empty: there is none.
std::string InstalledLink(std::string_view name);

}  // namespace muster::agent
