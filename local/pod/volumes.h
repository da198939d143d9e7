// SPDX-License-Identifier: Apache-2.0
// The volumes of a pod: the folders and files to make, and the mounts of each container. Pure; untrusted input.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "local/pod/environment.h"
#include "local/pod/input.h"

namespace muster::local {

// Folders and files to make, each once. A folder comes after its parent folders.
class PodTree {
 public:
  void Add(PodFolder folder);
  // Adds each folder on the way from `folder`, which exists, to `relative` below it.
  void AddBelow(const std::string& folder, std::string_view relative);
  void Add(PodFile file) { files_[file.path] = std::move(file); }
  void Add(HostPath path) { host_paths_.push_back(std::move(path)); }
  // InvalidArgument: a path is both a file and a folder. `where`: the path of the field volumes, for the message.
  Status Check(std::string_view where) const;
  bool HasFile(const std::string& path) const { return files_.contains(path); }

  std::vector<PodFolder> TakeFolders() { return std::move(folders_); }
  std::vector<PodFile> Files() const;
  std::vector<HostPath> TakeHostPaths() { return std::move(host_paths_); }

 private:
  std::vector<PodFolder> folders_;
  std::set<std::string> known_;
  std::map<std::string, PodFile> files_;
  std::vector<HostPath> host_paths_;
};

struct PodVolume {
  std::string source;  // absolute; empty: it is in memory
  bool read_only = false;
  std::optional<int64_t> bytes;  // of one that is in memory
};
using PodVolumes = std::map<std::string, PodVolume, std::less<>>;

// The volumes of a pod by name. Adds what has to be made for them to `tree`. NotFound: as of ProgramOf.
StatusOr<PodVolumes> VolumesOf(controller::Fields spec, const PodInput& input, PodTree* tree);

// The mounts of `container`, ordered by target. Adds the folders of subPath to `tree`.
StatusOr<std::vector<PodMount>> MountsOf(controller::Fields container, const PodVolumes& volumes,
                                         const Variables& variables, PodTree* tree);

// True, with a complaint, if no path can be so long.
bool IsTooLong(controller::Fields object, const char* field, std::string_view path);

// The absolute path in the container that `field` gives. Complains if the field is missing, is the root, or has "..".
std::string TargetOf(controller::Fields object, const char* field);

// `path` without "." and "//", and without a slash at the end.
std::string TidyPath(std::string_view path);

}  // namespace muster::local
