// SPDX-License-Identifier: Apache-2.0
#include "base/folder_names.h"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <memory>

#include "base/descriptors.h"

namespace muster {

StatusOr<std::vector<std::string>> NamesIn(int at, const std::string& path, std::string_view shown) {
  Descriptor folder(openat(at, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.ok()) return ErrnoStatus(errno, shown);
  const std::unique_ptr<DIR, int (*)(DIR*)> open(fdopendir(folder.get()), &closedir);
  if (!open) return ErrnoStatus(errno, shown);
  folder.Release();
  std::vector<std::string> names;
  while (true) {
    errno = 0;  // readdir() returns null both at the end and on an error: only errno tells which
    const dirent* entry = readdir(open.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return ErrnoStatus(errno, shown);
  return names;
}

}  // namespace muster
