// Volumes of a pod: what has to be made for them, and what a container sees of them. Pure; outside bytes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "controller/local/pod_environment.h"
#include "controller/local/pod_input.h"

namespace muster::controller {

// Folders and files to make, each once, a folder after those above it.
class PodTree {
 public:
  void Add(PodFolder folder);
  // Each folder on the way from `folder`, which is there, to `relative` below it.
  void AddBelow(const std::string& folder, std::string_view relative);
  void Add(PodFile file) { files_[file.path] = std::move(file); }
  // InvalidArgument: a file is the folder of something else, too. `where`: of the volumes.
  Status Check(std::string_view where) const;
  bool HasFile(const std::string& path) const { return files_.contains(path); }

  std::vector<PodFolder> TakeFolders() { return std::move(folders_); }
  std::vector<PodFile> Files() const;

 private:
  std::vector<PodFolder> folders_;
  std::set<std::string> known_;
  std::map<std::string, PodFile> files_;
};

struct PodVolume {
  std::string source;  // absolute
  bool read_only = false;
};
using PodVolumes = std::map<std::string, PodVolume, std::less<>>;

// The volumes of a pod by name, and what has to be made for them. NotFound as of ProgramOf.
StatusOr<PodVolumes> VolumesOf(Fields spec, const PodInput& input, PodTree* tree);

// What `container` mounts, ordered by target; folders of subPath go into `tree`.
StatusOr<std::vector<PodMount>> MountsOf(Fields container, const PodVolumes& volumes, const Variables& variables,
                                         PodTree* tree);

// The absolute path in a container that the text in `field` says. Complains where it is missing, the root or has "..".
std::string TargetOf(Fields object, const char* field);

// Without "." and "//", and without a slash at the end.
std::string TidyPath(std::string_view path);

}  // namespace muster::controller
