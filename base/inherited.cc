// SPDX-License-Identifier: Apache-2.0
#include "base/inherited.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"

namespace muster {
namespace {

constinit std::vector<int> inherited;  // constinit: NoteInheritedDescriptors() may run before dynamic initialization

}  // namespace

void NoteInheritedDescriptors() {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  inherited.clear();
  while (const dirent* entry = readdir(folder)) {
    auto number = ParseInt(entry->d_name);
    if (!number || *number <= STDERR_FILENO) continue;
    const int descriptor = static_cast<int>(*number);
    // Descriptors that this process opened (`folder`, or by a shared library) have FD_CLOEXEC; inherited ones do not.
    if ((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0) inherited.push_back(descriptor);
  }
  closedir(folder);
  std::sort(inherited.begin(), inherited.end());
}

const std::vector<int>& InheritedDescriptors() { return inherited; }

}  // namespace muster
