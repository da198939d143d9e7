// SPDX-License-Identifier: Apache-2.0
#include "local/pod/working_folder.h"

#include "base/text.h"
#include "local/pod/volumes.h"

namespace muster::local {
namespace {

bool IsIn(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

}  // namespace

void NeedWorkingFolder(const std::string& pod_folder, const std::function<bool(const std::string& path)>& is_there,
                       ContainerProgram* container, std::vector<PodFolder>* folders) {
  const std::string path = TidyPath(container->working_directory);
  if (path.empty() || path == "/") return;
  const PodMount* mount = nullptr;  // the innermost mount that contains the folder
  for (const PodMount& one : container->mounts) {
    if (IsIn(path, one.target) && (mount == nullptr || one.target.size() > mount->target.size())) mount = &one;
  }
  if (mount != nullptr) {
    if (path != mount->target && !mount->read_only) {
      folders->push_back(PodFolder{.path = mount->source + path.substr(mount->target.size())});
    }
    return;
  }
  if (is_there(path)) return;
  const std::string made = fmt::format("{}/working-folders/{}", pod_folder, container->name);
  folders->push_back(PodFolder{.path = made});
  container->mounts.push_back(PodMount{.source = made, .target = path});
}

}  // namespace muster::local
