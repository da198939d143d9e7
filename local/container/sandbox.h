// SPDX-License-Identifier: Apache-2.0
// Gives a container its own view of this machine's files, by bubblewrap: volumes at their mountPath, its own /dev/shm,
// /etc/hosts and host name. All other files are this machine's or an image's. Pure, except for the listing of folders.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "local/pod/program.h"

namespace muster::local {

struct SandboxSpec {
  std::string bwrap;      // its path
  bool own_pids = false;  // it has its own PID namespace: its processes end with it, even if this process is killed
  std::string hostname;   // of the pod
  std::vector<PodMount> files;  // of this pod: /etc/hosts; a mount of a volume at the same path hides it
  // The root folder of the container, read-only; empty: this machine's own root. With a root folder, /dev, /proc, /sys
  // and /etc/resolv.conf are this machine's, and /tmp, /run and /var/tmp are empty and the container's own.
  std::string root;
  std::vector<PodMount> mounts;
  std::string working_directory;  // empty: "/"
};

struct FolderEntry {
  std::string name;
  std::string link;  // the target of a symbolic link; empty: it is not a link
  bool is_folder = false;
};
// Lists the folder at an absolute path; empty if it is not a folder that can be read.
using ListFolder = std::function<std::vector<FolderEntry>(const std::string& path)>;
std::vector<FolderEntry> ListRealFolder(const std::string& path);

// The words to put before a command. If the target of a mount does not exist, nothing is created in this machine's own
// folders: each folder above it is replaced by an empty one, in which its entries are mounted. Symbolic links on the
// way to a target are followed inside of the root.
std::vector<std::string> SandboxWords(const SandboxSpec& spec, const ListFolder& list);

}  // namespace muster::local
