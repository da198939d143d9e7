// SPDX-License-Identifier: Apache-2.0
#include "agent/installation.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/descriptors.h"
#include "base/host_fs.h"
#include "base/replace_file.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr std::string_view kBinary = "muster";
constexpr std::string_view kLinks[] = {"torchrun", "muster-rsh"};
constexpr std::string_view kTemporary = ".muster-install.";
constexpr size_t kChunk = size_t{1} << 20;

// Tells any version of this binary from other programs. Volatile: the text must be in the binary, not in instructions.
std::string_view Mark() {
  static const char* const volatile mark = "This program is Muster's agent; `muster install` may replace it.";
  return mark;
}

// Reads `size` bytes, fewer only at the end of the file. -1 with errno on an error.
ssize_t ReadFully(int fd, char* to, size_t size, off_t offset) {
  size_t done = 0;
  while (done < size) {
    ssize_t count = pread(fd, to + done, size - done, offset + static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return static_cast<ssize_t>(done);
}

class Installer {
 public:
  Installer(std::string folder, bool force) : folder_(std::move(folder)), force_(force), chunk_(kChunk, '\0') {}

  StatusOr<Installation> Run() {
    MUSTER_RETURN_IF_ERROR(OpenSelf());
    MUSTER_RETURN_IF_ERROR(OpenFolder());
    for (std::string_view name : kLinks) MUSTER_RETURN_IF_ERROR(CheckLink(name));
    RemoveLeftovers();
    Installation done;
    if (!HoldsBinary(std::string(kBinary))) {
      MUSTER_RETURN_IF_ERROR(Place(kBinary, [this](const char* name) { return Copy(name); }));
      done.written.emplace_back(kBinary);
    }
    for (std::string_view name : kLinks) {
      if (IsOurLink(std::string(name))) continue;
      MUSTER_RETURN_IF_ERROR(Place(name, [this](const char* temporary) { return Link(temporary); }));
      done.written.emplace_back(name);
    }
    if (!done.written.empty())
      fsync(folder_fd_->get());  // names last; some file systems cannot, which is not a failure
    return done;
  }

 private:
  std::string Path(std::string_view name) const {
    return fmt::format("{}{}{}", folder_, folder_.ends_with('/') ? "" : "/", name);
  }

  // A failed call inside the folder, with the remedy where there is one.
  Status Failure(int error, std::string_view name) const {
    std::string what = fmt::format("cannot write {}", Path(name));
    Status status = ErrnoStatus(error, what);
    if (error == ENOSPC || error == EDQUOT) {
      struct statvfs facts {};
      fstatvfs(folder_fd_->get(), &facts);
      return WithRemedy(status,
                        fmt::format("the binary needs {:.1f} MB, {:.1f} MB are free; give the volume more room "
                                    "(emptyDir: sizeLimit)",
                                    static_cast<double>(size_) / 1e6,
                                    static_cast<double>(facts.f_bavail) * static_cast<double>(facts.f_frsize) / 1e6));
    }
    if (error == EROFS) return WithRemedy(status, "mount a writable volume there, such as an emptyDir");
    if (error == EACCES || error == EPERM) {
      return WithRemedy(
          status, fmt::format("user {} may not write there; set the pod's fsGroup, or mount an emptyDir", geteuid()));
    }
    return status;
  }

  Status OpenSelf() {
    // Without /proc: by the path given to execve(2), a pointer as a number. NOLINTNEXTLINE(performance-no-int-to-ptr)
    const char* given = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    for (const char* path : {"/proc/self/exe", given}) {
      if (path == nullptr) continue;
      self_.emplace(open(path, O_RDONLY | O_CLOEXEC));
      struct stat facts {};
      if (!self_->ok()) {
        if (path == given) return ErrnoStatus(errno, fmt::format("cannot read this binary ({})", path));
        continue;
      }
      if (fstat(self_->get(), &facts) != 0) return ErrnoStatus(errno, "cannot read this binary");
      size_ = facts.st_size;
      return absl::OkStatus();
    }
    return absl::NotFoundError("cannot find this binary: mount /proc");
  }

  Status OpenFolder() {
    MUSTER_RETURN_IF_ERROR(MakeFolders());
    folder_fd_.emplace(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder_fd_->ok()) {
      int error = errno;
      if (error == ENOTDIR) return NoFolder(folder_);
      return ErrnoStatus(error, fmt::format("cannot open {}", folder_));
    }
    struct statvfs facts {};
    if (fstatvfs(folder_fd_->get(), &facts) == 0 && (facts.f_flag & ST_NOEXEC) != 0) {
      return absl::FailedPreconditionError(fmt::format(
          "{} is mounted noexec: nothing in it can be executed; mount it without noexec, or give a folder on "
          "another volume, such as an emptyDir",
          folder_));
    }
    return absl::OkStatus();
  }

  static Status NoFolder(const std::string& path) {
    return absl::FailedPreconditionError(fmt::format("{} is not a folder; give another one, or remove it", path));
  }

  // World-searchable whatever the umask: the user's container may run as another user.
  Status MakeFolders() {
    for (size_t at = 0; at != std::string::npos;) {
      at = folder_.find('/', at + 1);
      std::string part = folder_.substr(0, at);
      if (mkdir(part.c_str(), 0755) == 0) {
        chmod(part.c_str(), 0755);
        continue;
      }
      int error = errno;
      struct stat facts {};
      if (stat(part.c_str(), &facts) == 0) {  // mkdir says EEXIST, EROFS or EACCES of a folder that exists
        if (!S_ISDIR(facts.st_mode)) return NoFolder(part);
        continue;
      }
      Status status = ErrnoStatus(error, fmt::format("cannot make the folder {}", part));
      if (error == EROFS) return WithRemedy(status, "mount a writable volume there, such as an emptyDir");
      if (error == EACCES) return WithRemedy(status, fmt::format("user {} may not write there", geteuid()));
      return WithRemedy(status, "give a folder on a volume for files, such as an emptyDir");
    }
    return absl::OkStatus();
  }

  // AlreadyExists if `name` is a file that is not Muster's, without --force; FailedPrecondition if it is a folder.
  Status CheckLink(std::string_view name) {
    struct stat facts {};
    if (fstatat(folder_fd_->get(), std::string(name).c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
      return absl::OkStatus();
    }
    if (S_ISDIR(facts.st_mode)) return IsFolder(name);
    if (force_ || IsOurLink(std::string(name)) || IsMuster(std::string(name))) return absl::OkStatus();
    return absl::AlreadyExistsError(
        fmt::format("{} exists and is not Muster's; give another folder, or --force to replace it", Path(name)));
  }
  Status IsFolder(std::string_view name) const {
    return absl::FailedPreconditionError(fmt::format("{} is a folder; remove it, or give another place", Path(name)));
  }

  // True if `name` is a link to the binary beside it, or the binary itself (a hard link or a copy).
  bool IsOurLink(const std::string& name) {
    char target[16];
    ssize_t length = readlinkat(folder_fd_->get(), name.c_str(), target, sizeof target);
    if (length >= 0) return std::string_view(target, static_cast<size_t>(length)) == kBinary;
    return HoldsBinary(name);
  }

  // True if `name` is a regular file with this binary's bytes that everybody may execute.
  bool HoldsBinary(const std::string& name) {
    Descriptor file(openat(folder_fd_->get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat facts {};
    if (!file.ok() || fstat(file.get(), &facts) != 0) return false;
    if (!S_ISREG(facts.st_mode) || facts.st_size != size_ || (facts.st_mode & 0555) != 0555) return false;
    struct stat own {};
    if (fstat(self_->get(), &own) == 0 && own.st_dev == facts.st_dev && own.st_ino == facts.st_ino) return true;
    std::string other(kChunk, '\0');
    for (off_t at = 0; at < size_;) {
      ssize_t mine = ReadFully(self_->get(), chunk_.data(), kChunk, at);
      ssize_t theirs = ReadFully(file.get(), other.data(), kChunk, at);
      if (mine <= 0 || mine != theirs || std::memcmp(chunk_.data(), other.data(), static_cast<size_t>(mine)) != 0) {
        return false;
      }
      at += mine;
    }
    return true;
  }

  // True if `name` is (or leads to) some version of this binary.
  bool IsMuster(const std::string& name) {
    Descriptor file(openat(folder_fd_->get(), name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    struct stat facts {};
    if (!file.ok() || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return false;
    const std::string_view mark = Mark();
    for (off_t at = 0; at < facts.st_size;) {
      ssize_t count = ReadFully(file.get(), chunk_.data(), kChunk, at);
      if (count <= 0) return false;
      std::string_view text(chunk_.data(), static_cast<size_t>(count));
      if (at == 0 && !text.starts_with("\x7f"
                                       "ELF"))
        return false;
      if (text.find(mark) != std::string_view::npos) return true;
      if (at + count >= facts.st_size || static_cast<size_t>(count) < mark.size()) return false;
      at += count - static_cast<off_t>(mark.size());  // the mark may lie across two chunks
    }
    return false;
  }

  // Removes temporary names of installations that were killed. The header explains the lock.
  void RemoveLeftovers() {
    int fd = folder_fd_->get();
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
      for (const std::string& name : Names()) {
        if (name.starts_with(kTemporary)) unlinkat(fd, name.c_str(), 0);
      }
    }
    flock(fd, LOCK_SH | LOCK_NB);
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    Descriptor folder(openat(folder_fd_->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR* listing = fdopendir(folder.get());
    if (listing == nullptr) return names;
    folder.Release();  // closedir() closes it
    while (dirent* entry = readdir(listing)) names.emplace_back(entry->d_name);
    closedir(listing);
    return names;
  }

  // Calls `make` with a temporary name and renames what it made to `name`. `make` returns 0 or an errno.
  Status Place(std::string_view name, const std::function<int(const char*)>& make) {
    int fd = folder_fd_->get();
    int error = 0;
    // Tries again if the name exists, or if another installation, holding the lock exclusively, removed it.
    for (int attempt = 0; attempt < 10; ++attempt) {
      const std::string temporary = fmt::format("{}{}", kTemporary, RandomName());
      error = make(temporary.c_str());
      if (error == 0 && renameat(fd, temporary.c_str(), fd, std::string(name).c_str()) == 0) {
        // If both are names of one file, rename(2) does nothing and the temporary one stays.
        unlinkat(fd, temporary.c_str(), 0);
        return absl::OkStatus();
      }
      if (error == 0) error = errno;
      if (error != EEXIST) unlinkat(fd, temporary.c_str(), 0);
      if (error == EISDIR) return IsFolder(name);
      if (error != EEXIST && error != ENOENT) break;
    }
    return Failure(error, name);
  }

  int Copy(const char* name) {
    Descriptor file(openat(folder_fd_->get(), name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700));
    if (!file.ok()) return errno;
    for (off_t at = 0; at < size_;) {
      ssize_t count = ReadFully(self_->get(), chunk_.data(), kChunk, at);
      if (count < 0) return errno;
      if (count == 0) return EIO;  // the binary has become shorter
      for (ssize_t done = 0; done < count;) {
        ssize_t part = write(file.get(), chunk_.data() + done, static_cast<size_t>(count - done));
        if (part < 0 && errno == EINTR) continue;
        if (part < 0) return errno;
        done += part;
      }
      at += count;
    }
    if (fchmod(file.get(), 0755) != 0) {
      struct stat facts {};
      // A file system without modes of its own shows all files as executable, or none.
      if (fstat(file.get(), &facts) != 0 || (facts.st_mode & 0555) != 0555) return EPERM;
    }
    if (fsync(file.get()) == 0 || errno == EINVAL || errno == ENOSYS) return 0;  // some file systems have no fsync
    return errno;
  }

  int Link(const char* name) {
    int fd = folder_fd_->get();
    std::string binary(kBinary);
    if (symlinkat(binary.c_str(), fd, name) == 0) return 0;
    if (!NotSupported(errno)) return errno;
    if (linkat(fd, binary.c_str(), fd, name, 0) == 0) return 0;
    if (!NotSupported(errno)) return errno;
    return Copy(name);
  }
  static bool NotSupported(int error) {
    return error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK || error == EXDEV;
  }

  const std::string folder_;
  const bool force_;
  std::string chunk_;
  std::optional<Descriptor> self_;
  std::optional<Descriptor> folder_fd_;
  off_t size_ = 0;
};

}  // namespace

StatusOr<Installation> InstallInto(const std::string& folder, bool force) { return Installer(folder, force).Run(); }

std::string OwnPath() {
  char self[4096];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  const bool whole = length > 0 && static_cast<size_t>(length) < sizeof self;
  return whole ? std::string(self, static_cast<size_t>(length)) : "";
}

std::string InstalledLink(std::string_view name) {
  HostFs fs;
  std::string path = OwnPath();
  if (path.empty()) return "";
  std::string link = fmt::format("{}/{}", path.substr(0, path.rfind('/')), name);
  auto identity = fs.Identity(link);
  return identity && identity == fs.Identity(path) ? link : "";
}

}  // namespace muster::agent
