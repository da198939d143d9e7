// A container's own view of this machine's files, by bubblewrap: volumes at their mountPath, its own /dev/shm,
// /etc/hosts and host name. Everything else is this machine's, or of an image. Pure but for the listing of folders.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controller/local/pod_program.h"

namespace muster::controller {

struct SandboxSpec {
  std::string bwrap;      // its path
  bool own_pids = false;  // it sees its own processes alone, and they end with it, whatever becomes of this process
  std::string hostname;   // of the pod
  std::vector<PodMount> files;  // of this pod, where its volumes have none: /etc/hosts
  // A folder that stands for this machine's files, read-only; empty: these files themselves. /dev, /proc, /sys and
  // /etc/resolv.conf are this machine's, /tmp, /run and /var/tmp are empty and the container's own.
  std::string root;
  std::vector<PodMount> mounts;
  std::string working_directory;  // empty: "/"
};

struct FolderEntry {
  std::string name;
  std::string link;  // what a symbolic link names; empty: it is none
  bool is_folder = false;
};
// Of an absolute path; nothing where it is no folder that can be read.
using ListFolder = std::function<std::vector<FolderEntry>(const std::string& path)>;
std::vector<FolderEntry> ListRealFolder(const std::string& path);

// The words before a command. A mount whose target is not there gets a place of its own: the folder that it would be
// made in is shown entry by entry, so nothing is made in this machine's own folders. Symbolic links on the way to a
// target are followed as this machine has them.
std::vector<std::string> SandboxWords(const SandboxSpec& spec, const ListFolder& list);

}  // namespace muster::controller
