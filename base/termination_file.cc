// SPDX-License-Identifier: Apache-2.0
// The functions of base/termination_message.h that read and write the file.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptors.h"
#include "base/termination_message.h"
#include "base/text.h"

namespace muster {
namespace {

Descriptor Open(const std::string& path, int flags) {
  return Descriptor(open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

Status WriteError(int error, const std::string& path) {
  Status status = ErrnoStatus(error, path);
  // absl maps ENXIO (a pipe without a reader) to NotFound too. But callers are silent about NotFound.
  if (absl::IsNotFound(status) && error != ENOENT) status = absl::FailedPreconditionError(status.message());
  return Annotate(status, "cannot write the termination message (the exit code still holds)");
}

}  // namespace

Status WriteTerminationMessage(const std::string& path, std::string_view line) {
  Descriptor file = Open(path, O_WRONLY | O_TRUNC);
  if (!file.ok()) return WriteError(errno, path);
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0) return WriteError(errno, path);
  // A user may give a character device such as /dev/null on purpose, but not a pipe or a disk.
  if (!S_ISREG(facts.st_mode) && !S_ISCHR(facts.st_mode)) {
    return Annotate(absl::FailedPreconditionError(fmt::format("{}: not a regular file", path)),
                    "cannot write the termination message (the exit code still holds)");
  }
  while (!line.empty()) {
    ssize_t written = write(file.get(), line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      Status status = WriteError(errno, path);
      // If ftruncate() fails too, half a line stays; the reader refuses it.
      if (S_ISREG(facts.st_mode) && ftruncate(file.get(), 0) != 0) return status;
      return status;
    }
    line.remove_prefix(static_cast<size_t>(written));
  }
  if (file.Close() != 0) return WriteError(errno, path);
  return absl::OkStatus();
}

std::string ReadTerminationText(const std::string& path) {
  Descriptor file = Open(path, O_RDONLY);
  struct stat facts {};
  if (!file.ok() || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return "";
  std::string text(kMaxParsedTerminationMessage + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    ssize_t n = read(file.get(), text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    size += static_cast<size_t>(n);
  }
  text.resize(size);
  return text;
}

}  // namespace muster
