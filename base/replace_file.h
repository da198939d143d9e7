// A file is replaced in one step: whoever opens it reads the old bytes or the new ones, whole. kill -9 at any point
// leaves the old file, and at most one temporary file beside it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster {

// Makes the error of a failed system call; a caller may have remedies of its own.
using FailedCall = std::function<Status(int error, std::string_view what)>;

struct ReplaceFileOptions {
  mode_t mode = 0644;
  bool sync = false;  // bytes and name are on the disk before it returns, where the file system can be told so
  // Name of the temporary file, in the same folder. Empty: NAME and a random part, so that several writers do not meet.
  // Given: what an earlier run left under it is overwritten; for a folder with one writer, which knows that name.
  std::string temporary;
  FailedCall failed = ErrnoStatus;
};

using WritePiece = std::function<Status(std::string_view bytes)>;

// `write` gives the bytes, piece by piece. `name` lies in the open folder `folder` (AT_FDCWD: `name` is a path as
// open() takes it). A symbolic link called `name` is replaced, not followed; one in the place of the temporary file is
// an error. On an error, which is `write`'s or names the file and the system call's reason, the old file is as it was
// and the temporary one is gone.
Status ReplaceFile(int folder, const std::string& name, const std::function<Status(const WritePiece&)>& write,
                   const ReplaceFileOptions& options = {});
Status ReplaceFile(const std::string& path, std::string_view text, const ReplaceFileOptions& options = {});

// All of `bytes` to a descriptor that blocks. The error names `what`.
Status WriteAll(int fd, std::string_view bytes, std::string_view what, const FailedCall& failed = ErrnoStatus);

// A hexadecimal number of 16 digits that no other process has.
std::string RandomName();

}  // namespace muster
