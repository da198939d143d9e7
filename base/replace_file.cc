// SPDX-License-Identifier: Apache-2.0
#include "base/replace_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/kernel_calls.h"
#include "base/text.h"

namespace muster {
namespace {

// Syncs the folder, which puts the new name on the disk. Some file systems can sync files only; that is not an error.
Status SyncFolderOf(int folder, const std::string& name, const ReplaceFileOptions& options) {
  const size_t slash = name.rfind('/');
  const std::string path = slash == std::string::npos ? "." : name.substr(0, slash + 1);
  Descriptor opened(openat(folder, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.ok() && (fsync(opened.get()) == 0 || IsNotOffered(errno))) return absl::OkStatus();
  return options.failed(errno, fmt::format("cannot sync {}", path));
}

Status WriteTemporary(int folder, const std::string& temporary, const ReplaceFileOptions& options,
                      const std::function<Status(const WritePiece&)>& write) {
  const int once = options.temporary.empty() ? O_EXCL : O_TRUNC;
  Descriptor file(openat(folder, temporary.c_str(),
                         O_WRONLY | O_CREAT | once | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, options.mode));
  if (!file.ok()) return options.failed(errno, fmt::format("cannot write {}", temporary));
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return absl::FailedPreconditionError(fmt::format("{} is not a regular file: remove it", temporary));
  }
  MUSTER_RETURN_IF_ERROR(
      write([&](std::string_view bytes) { return WriteAll(file.get(), bytes, temporary, options.failed); }));
  if (options.sync && fdatasync(file.get()) != 0 && !IsNotOffered(errno))
    return options.failed(errno, fmt::format("cannot sync {}", temporary));
  if (file.Close() != 0) return options.failed(errno, fmt::format("cannot write {}", temporary));
  return absl::OkStatus();
}

}  // namespace

Status ReplaceFile(int folder, const std::string& name, const std::function<Status(const WritePiece&)>& write,
                   const ReplaceFileOptions& options) {
  const std::string temporary =
      options.temporary.empty() ? fmt::format("{}.{}.part", name, RandomName()) : options.temporary;
  Status status = WriteTemporary(folder, temporary, options, write);
  if (status.ok() && renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) {
    status = options.failed(errno, fmt::format("cannot rename {} to {}", temporary, name));
  }
  if (!status.ok()) {
    unlinkat(folder, temporary.c_str(), 0);
    return status;
  }
  return options.sync ? SyncFolderOf(folder, name, options) : absl::OkStatus();
}

Status ReplaceFile(const std::string& path, std::string_view text, const ReplaceFileOptions& options) {
  return ReplaceFile(
      AT_FDCWD, path, [text](const WritePiece& piece) { return piece(text); }, options);
}

Status WriteAll(int fd, std::string_view bytes, std::string_view what, const FailedCall& failed) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed(errno, fmt::format("cannot write {}", what));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

std::string RandomName() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
    number = (static_cast<uint64_t>(getpid()) << 32) ^
             static_cast<uint64_t>(MonotonicClock::now().time_since_epoch().count());
  }
  return fmt::format("{:016x}", number);
}

}  // namespace muster
