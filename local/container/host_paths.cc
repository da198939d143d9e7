// SPDX-License-Identifier: Apache-2.0
#include "local/container/host_paths.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/descriptors.h"
#include "base/quoted.h"
#include "base/text.h"

namespace muster::local {
namespace {

struct Type {
  std::string_view name;
  mode_t format;  // 0: any
  std::string_view said;
  bool is_made;  // if it is missing
};
constexpr Type kTypes[] = {
    {"", 0, "", false},
    {"DirectoryOrCreate", S_IFDIR, "a folder", true},
    {"Directory", S_IFDIR, "a folder", false},
    {"FileOrCreate", S_IFREG, "a file", true},
    {"File", S_IFREG, "a file", false},
    {"Socket", S_IFSOCK, "a socket", false},
    {"CharDevice", S_IFCHR, "a character device", false},
    {"BlockDevice", S_IFBLK, "a block device", false},
};

}  // namespace

Status CheckHostPath(const HostPath& path) {
  const auto wrong = [&path](std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("{}: {} {}", path.where, Quoted(path.path), why));
  };
  for (const Type& type : kTypes) {
    if (type.name != path.type) continue;
    struct stat found {};
    if (stat(path.path.c_str(), &found) != 0) {
      if (errno == ENOENT && type.is_made) return absl::OkStatus();
      if (errno != ENOENT) return wrong(fmt::format("cannot be used: {}", strerror(errno)));
      const bool may_be_folder = type.format == 0 || type.format == S_IFDIR;
      return wrong(fmt::format("does not exist on this machine; create it{}",
                               may_be_folder ? ", or give it the type DirectoryOrCreate" : ""));
    }
    if (type.format == 0 || (found.st_mode & S_IFMT) == type.format) return absl::OkStatus();
    return wrong(fmt::format("is not {}, as its type {} says", type.said, type.name));
  }
  return absl::OkStatus();
}

Status MakeHostPath(const HostPath& path) {
  if (path.type == "FileOrCreate") {
    const Descriptor made(open(path.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!made.ok() && errno != EEXIST) return ErrnoStatus(errno, fmt::format("{}: {}", path.where, path.path));
  }
  return CheckHostPath(path);
}

}  // namespace muster::local
