// SPDX-License-Identifier: Apache-2.0
// Replaces a file atomically: a reader gets all old bytes or all new bytes. kill -9 at any point before the rename
// leaves the old file, and at most one temporary file beside it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster {

// Makes the status of a failed system call. A caller may give one that adds its own advice.
using FailedCall = std::function<Status(int error, std::string_view what)>;

struct ReplaceFileOptions {
  mode_t mode = 0644;
  bool sync = false;  // sync data and name to the disk before returning, where the file system supports it
  // Name of the temporary file, in the same folder. Empty: `name` and a random part, so that writers do not collide. A
  // given name is overwritten if an earlier run left such a file; use it only if the folder has one writer.
  std::string temporary;
  FailedCall failed = ErrnoStatus;
};

using WritePiece = std::function<Status(std::string_view bytes)>;

// `write` gives the bytes, piece by piece. `name` is relative to the open folder `folder` (AT_FDCWD: as in open()). A
// symbolic link called `name` is replaced, not followed; a link in place of the temporary file is an error. An error is
// that of `write`, or names the file and the reason. It leaves the old file and no temporary one; but if only the sync
// of the folder fails, the new file is in place.
Status ReplaceFile(int folder, const std::string& name, const std::function<Status(const WritePiece&)>& write,
                   const ReplaceFileOptions& options = {});
Status ReplaceFile(const std::string& path, std::string_view text, const ReplaceFileOptions& options = {});

// Writes all of `bytes` to a blocking descriptor. The error names `what`.
Status WriteAll(int fd, std::string_view bytes, std::string_view what, const FailedCall& failed = ErrnoStatus);

// A hexadecimal number of 16 digits that differs between processes: random, else made of the pid and the clock.
std::string RandomName();

}  // namespace muster
