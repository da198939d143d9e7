#include "base/inherited.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"

namespace muster {
namespace {

constinit std::vector<int> inherited;  // noted by a constructor: nothing may make it empty again

}  // namespace

void NoteInheritedDescriptors() {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  inherited.clear();
  while (const dirent* entry = readdir(folder)) {
    auto number = ParseInt(entry->d_name);
    if (!number || *number <= STDERR_FILENO) continue;
    const int descriptor = static_cast<int>(*number);
    // The folder's, and what a shared library has opened before us: what comes over exec has no such mark.
    if ((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0) inherited.push_back(descriptor);
  }
  closedir(folder);
  std::sort(inherited.begin(), inherited.end());
}

const std::vector<int>& InheritedDescriptors() { return inherited; }

}  // namespace muster
