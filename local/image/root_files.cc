// SPDX-License-Identifier: Apache-2.0
#include "local/image/root_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/quoted.h"

namespace muster::local {

StatusOr<Descriptor> OpenInRoot(int root, const std::string& path, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_IN_ROOT;
  const long made = syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
  if (made >= 0) return Descriptor(static_cast<int>(made));
  if (errno == ENOSYS) return absl::FailedPreconditionError("images need Linux 5.6 or newer (openat2)");
  return ErrnoStatus(errno, Quoted(path));
}

bool IsThere(const std::string& root, const std::string& path) {
  const Descriptor folder(open(root.empty() ? "/" : root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return folder.get() >= 0 && OpenInRoot(folder.get(), path, O_PATH).ok();
}

}  // namespace muster::local
