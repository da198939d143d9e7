// SPDX-License-Identifier: Apache-2.0
// LD_PRELOAD library: reading the folder MUSTER_TEST_READDIR_FAILS_IN fails with EIO after its first two names.
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <map>
#include <string>

namespace {

std::string PathOf(DIR* folder) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(dirfd(folder));
  const ssize_t length = readlink(link.c_str(), path, sizeof path);
  return length < 0 ? "" : std::string(path, static_cast<size_t>(length));
}

}  // namespace

extern "C" dirent* readdir(DIR* folder) {
  using Real = dirent* (*)(DIR*);
  static const Real real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "readdir"));
  static thread_local std::map<DIR*, int> names;
  const char* broken = getenv("MUSTER_TEST_READDIR_FAILS_IN");
  if (broken == nullptr || PathOf(folder) != broken) return real(folder);
  dirent* entry = nullptr;
  while ((entry = real(folder)) != nullptr && entry->d_name[0] == '.') {
  }
  if (entry != nullptr && ++names[folder] <= 2) return entry;
  names.erase(folder);
  errno = EIO;
  return nullptr;
}
