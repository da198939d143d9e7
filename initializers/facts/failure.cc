// SPDX-License-Identifier: Apache-2.0
#include "initializers/facts/failure.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/exit_codes.h"
#include "base/text.h"

namespace muster::initializers {

// WithUser explains a missing permission, at the end of the run and in the same way for every room.
Status DiskStatus(int error, std::string_view what) {
  const Status status = ErrnoStatus(error, what);
  const std::string_view remedy = error == ENOSPC || error == EDQUOT ? "give it a larger volume, or make room"
                                  : error == EROFS                   ? "mount it writable, or name another target"
                                  : error == ENOTDIR ? "remove what is in the way, or name another target"
                                                     : "";
  return remedy.empty() ? status : WithRemedy(status, remedy);
}

Status WithUser(Status status) {
  const std::string_view text = Message(status);
  if (!absl::IsPermissionDenied(status) || !(text.ends_with(strerror(EACCES)) || text.ends_with(strerror(EPERM)))) {
    return status;
  }
  return absl::PermissionDeniedError(
      fmt::format("{} to user {} (group {}): let it in (the folder's mode; of a volume, fsGroup), or run as another",
                  text, geteuid(), getegid()));
}

Status WithPlaceOfPatterns(Status status, std::string_view uri) {
  if (!absl::IsNotFound(status) || uri.find('*') == std::string_view::npos) return status;
  return WithRemedy(status, fmt::format("a URI has no wildcards: give the folder, and --include '{}'",
                                        uri.substr(uri.rfind('/') + 1)));
}

int ExitCodeOf(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
      return kExitBadConfiguration;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
      return kExitSourceUnreachable;
    default:
      return 1;
  }
}

}  // namespace muster::initializers
