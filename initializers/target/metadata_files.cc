// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/metadata_files.h"

#include <fcntl.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/text.h"
#include "initializers/facts/entry_path.h"
#include "initializers/facts/failure.h"

namespace muster::initializers {
namespace {

std::string PathOf(const std::string& target, const std::string& name) {
  return fmt::format("{}/{}/{}", target, kOwnFolder, name);
}

}  // namespace

StatusOr<Descriptor> OpenMetadataFile(int at, const std::string& name, int flags) {
  constexpr int kAlways = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  Descriptor file(openat(at, name.c_str(), flags | kAlways, 0644));
  struct stat facts {};
  if (file.ok() && fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode)) return file;
  if (file.ok() || errno == ELOOP || errno == ENXIO || errno == EISDIR) {
    return absl::FailedPreconditionError(
        fmt::format("{} has to be a regular file, which Muster writes, but is none: remove it", name));
  }
  return DiskStatus(errno, name);
}

bool HasMetadataFile(const std::string& target, const std::string& name) {
  struct stat facts {};
  return lstat(PathOf(target, name).c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

StatusOr<std::string> ReadMetadataFile(const std::string& target, const std::string& name) {
  const std::string path = PathOf(target, name);
  MUSTER_ASSIGN_OR_RETURN(const Descriptor file, OpenMetadataFile(AT_FDCWD, path, O_RDONLY));
  std::string text;
  std::string buffer(1 << 16, '\0');
  ssize_t got = 0;
  while ((got = read(file.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer, 0, static_cast<size_t>(got));
    if (text.size() > kLongestManifest) return absl::InvalidArgumentError(fmt::format("{} is too long", path));
  }
  if (got < 0) return ErrnoStatus(errno, path);
  return text;
}

StatusOr<Manifest> ReadMetadataManifest(const std::string& target, const std::string& name) {
  const std::string path = PathOf(target, name);
  MUSTER_ASSIGN_OR_RETURN(Descriptor opened, OpenMetadataFile(AT_FDCWD, path, O_RDONLY));
  struct stat facts {};
  if (fstat(opened.get(), &facts) != 0) return ErrnoStatus(errno, path);
  if (static_cast<uint64_t>(facts.st_size) > kLongestManifest) {
    return absl::InvalidArgumentError(fmt::format("{} is too long", path));
  }
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fdopen(opened.get(), "r"), &fclose);
  if (!file) return ErrnoStatus(errno, path);
  (void)opened.Release();
  __fsetlocking(file.get(), FSETLOCKING_BYCALLER);  // no other thread uses it, and it is read byte by byte
  return ReadManifest(file.get());
}

}  // namespace muster::initializers
