#include "initializers/own_files.h"

#include <fcntl.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/descriptors.h"
#include "base/text.h"
#include "initializers/entry_path.h"

namespace muster::initializers {

StatusOr<std::string> ReadOwnFile(const std::string& target, const std::string& name) {
  const std::string path = fmt::format("{}/{}/{}", target, kOwnFolder, name);
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.ok()) return ErrnoStatus(errno, path);
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

StatusOr<Manifest> ReadOwnManifest(const std::string& target, const std::string& name) {
  const std::string path = fmt::format("{}/{}/{}", target, kOwnFolder, name);
  Descriptor opened(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat facts {};
  if (!opened.ok() || fstat(opened.get(), &facts) != 0) return ErrnoStatus(errno, path);
  if (static_cast<uint64_t>(facts.st_size) > kLongestManifest) {
    return absl::InvalidArgumentError(fmt::format("{} is too long", path));
  }
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fdopen(opened.get(), "r"), &fclose);
  if (!file) return ErrnoStatus(errno, path);
  (void)opened.Release();
  __fsetlocking(file.get(), FSETLOCKING_BYCALLER);  // nobody else has it, and it is read by the byte
  return ReadManifest(file.get());
}

}  // namespace muster::initializers
