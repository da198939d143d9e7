// SPDX-License-Identifier: Apache-2.0
#include "local/image/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <locale.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/descriptors.h"
#include "base/quoted.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "local/image/root_files.h"

namespace muster::local {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReadAtOnce = size_t{256} << 10;  // bytes
constexpr std::string_view kWhiteout = ".wh.", kOpaque = ".wh..wh..opq", kOther = ".wh..wh.";
constexpr mode_t kPermissions = 0777;  // without setuid, setgid and sticky
constexpr mode_t kOwnersFile = 0600, kOwnersFolder = 0700;

// "./a//b/" becomes "a/b". nullopt: the path leads out of the root.
std::optional<std::string> TidyMember(std::string_view path) {
  std::vector<std::string> parts;
  for (const std::string_view part : Split(path, '/')) {
    if (part == "..") return std::nullopt;
    if (!part.empty() && part != ".") parts.emplace_back(part);
  }
  return Join(parts, "/");
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string NameIn(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// libarchive converts names into the thread's character set, and drops names that it cannot convert.
class InUtf8 {
 public:
  InUtf8() : utf8_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)), before_(uselocale(utf8_)) {}
  ~InUtf8() {
    uselocale(before_);
    if (utf8_ != nullptr) freelocale(utf8_);
  }
  InUtf8(const InUtf8&) = delete;
  InUtf8& operator=(const InUtf8&) = delete;

 private:
  const locale_t utf8_, before_;
};

class Unpacking {
 public:
  Unpacking(int file, const std::string& name, int root, const LayerOptions& options)
      : file_(file), name_(name), root_(root), options_(options), archive_(archive_read_new(), &archive_read_free) {}

  Status Run(uint64_t* left_out) {
    const InUtf8 names;
    MUSTER_RETURN_IF_ERROR(EachMember([this](archive_entry* entry) -> StatusOr<bool> {
      MUSTER_RETURN_IF_ERROR(Take(entry));
      return true;
    }));
    *left_out += left_out_;
    return absl::OkStatus();
  }

  StatusOr<std::string> Find(std::string_view wanted, size_t most) {
    const InUtf8 names;
    std::optional<std::string> found;
    MUSTER_RETURN_IF_ERROR(EachMember([&](archive_entry* entry) -> StatusOr<bool> {
      const char* text = archive_entry_pathname(entry);
      if (text == nullptr || TidyMember(text) != wanted || archive_entry_filetype(entry) != AE_IFREG) return true;
      const int64_t size = archive_entry_size(entry);
      if (size < 0 || static_cast<uint64_t>(size) > most) {
        return absl::ResourceExhaustedError(
            fmt::format("{}: {} has {} bytes; the limit is {}", name_, wanted, size, most));
      }
      found.emplace(static_cast<size_t>(size), '\0');
      if (archive_read_data(archive_.get(), found->data(), found->size()) != size) return Broken();
      return false;
    }));
    if (!found) return absl::NotFoundError(fmt::format("{}: it has no {}", name_, wanted));
    return *std::move(found);
  }

 private:
  // `take` says whether there is more to do.
  template <typename Take>
  Status EachMember(const Take& take) {
    // Not archive_read_support_filter_all: for some first bytes that runs a program of this machine (lrzip, grzip).
    archive_read_support_filter_gzip(archive_.get());
    archive_read_support_filter_zstd(archive_.get());
    archive_read_support_filter_xz(archive_.get());
    archive_read_support_filter_bzip2(archive_.get());
    archive_read_support_format_tar(archive_.get());
    if (archive_read_open_fd(archive_.get(), file_, kReadAtOnce) != ARCHIVE_OK) return Broken();
    for (uint64_t members = 0;; ++members) {
      archive_entry* entry = nullptr;
      const int code = archive_read_next_header(archive_.get(), &entry);
      if (code == ARCHIVE_EOF) return absl::OkStatus();
      if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return Broken();
      if (members == options_.limits.members) {
        return absl::ResourceExhaustedError(fmt::format("{}: it has more than {} members", name_, members));
      }
      MUSTER_ASSIGN_OR_RETURN(const bool goes_on, take(entry));
      if (!goes_on) return absl::OkStatus();
    }
  }

  Status Broken() const {
    const char* why = archive_error_string(archive_.get());
    return absl::DataLossError(
        fmt::format("{}: the tar is broken: {}", name_, why == nullptr ? "it is not a tar" : why));
  }

  Status Wrong(std::string_view member, std::string_view why) const {
    return absl::InvalidArgumentError(fmt::format("{}: member {}: {}", name_, Quoted(member), why));
  }

  Status Failed(int error, std::string_view member) const {
    return ErrnoStatus(error, fmt::format("{}: member {}", name_, Quoted(member)));
  }

  Status Take(archive_entry* entry) {
    const char* text = archive_entry_pathname_utf8(entry);
    if (text == nullptr) text = archive_entry_pathname(entry);
    if (text == nullptr) return Wrong("", "it has no name");
    const auto path = TidyMember(text);
    if (!path) return Wrong(text, "it leads out of the image");
    if (path->empty()) return absl::OkStatus();
    const std::string name = NameIn(*path);
    if (options_.whiteouts && name.starts_with(kWhiteout)) return TakeOut(*path, name);
    const char* link = archive_entry_hardlink(entry);
    const mode_t type = archive_entry_filetype(entry);
    const bool is_known = link != nullptr || type == AE_IFREG || type == AE_IFDIR || type == AE_IFLNK;
    if (!is_known) {
      ++left_out_;
      return absl::OkStatus();
    }
    MUSTER_ASSIGN_OR_RETURN(const Descriptor folder, Folder(FolderOf(*path)));
    if (options_.whiteouts) made_.insert(*path);
    if (link == nullptr && type == AE_IFDIR) return MakeFolder(folder.get(), name, *path, archive_entry_perm(entry));
    MUSTER_RETURN_IF_ERROR(Remove(folder.get(), name));
    if (link != nullptr) return MakeLink(folder.get(), name, *path, link);
    if (type == AE_IFREG) return MakeFile(folder.get(), name, *path, entry);
    const char* target = archive_entry_symlink(entry);
    if (target == nullptr || *target == '\0') return Wrong(*path, "its link has no target");
    return symlinkat(target, folder.get(), name.c_str()) == 0 ? absl::OkStatus() : Failed(errno, *path);
  }

  // The folder at `path` in the root, made where it is missing.
  StatusOr<Descriptor> Folder(const std::string& path) {
    constexpr int kFlags = O_PATH | O_DIRECTORY;
    auto folder = OpenInRoot(root_, path.empty() ? "." : path, kFlags);
    if (folder.ok() || !absl::IsNotFound(folder.status()) || path.empty()) return folder;
    MUSTER_ASSIGN_OR_RETURN(const Descriptor above, Folder(FolderOf(path)));
    if (mkdirat(above.get(), NameIn(path).c_str(), 0755) != 0 && errno != EEXIST) return Failed(errno, path);
    return OpenInRoot(root_, path, kFlags);
  }

  // `folder` is an open folder of the root. Follows no symbolic link.
  Status Remove(int folder, const std::string& name) const {
    struct stat there {};
    if (fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) return absl::OkStatus();
    std::error_code error;
    fs::remove_all(fmt::format("/proc/self/fd/{}/{}", folder, name), error);
    return error ? absl::UnavailableError(fmt::format("{}: {} cannot be removed: {}", name_, name, error.message()))
                 : absl::OkStatus();
  }

  Status MakeFolder(int folder, const std::string& name, const std::string& path, mode_t mode) {
    struct stat there {};
    const bool is_there = fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && !S_ISDIR(there.st_mode)) MUSTER_RETURN_IF_ERROR(Remove(folder, name));
    if (mkdirat(folder, name.c_str(), kOwnersFolder) != 0 && errno != EEXIST) return Failed(errno, path);
    return fchmodat(folder, name.c_str(), (mode & kPermissions) | kOwnersFolder, 0) == 0 ? absl::OkStatus()
                                                                                         : Failed(errno, path);
  }

  Status MakeLink(int folder, const std::string& name, const std::string& path, const char* link) {
    const auto target = TidyMember(link);
    if (!target || target->empty()) return Wrong(path, "its hard link leads out of the image");
    const auto its_folder =
        OpenInRoot(root_, FolderOf(*target).empty() ? "." : FolderOf(*target), O_PATH | O_DIRECTORY);
    if (its_folder.ok() && linkat(its_folder->get(), NameIn(*target).c_str(), folder, name.c_str(), 0) == 0) {
      return absl::OkStatus();
    }
    return Wrong(path, fmt::format("its hard link leads to {}, which is missing", Quoted(link)));
  }

  Status MakeFile(int folder, const std::string& name, const std::string& path, archive_entry* entry) {
    MUSTER_RETURN_IF_ERROR(CheckRoom(archive_entry_size(entry)));
    const Descriptor file(
        openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnersFile));
    if (!file.ok()) return Failed(errno, path);
    int64_t end = 0;
    for (;;) {
      const void* bytes = nullptr;
      size_t count = 0;
      la_int64_t at = 0;
      const int code = archive_read_data_block(archive_.get(), &bytes, &count, &at);
      if (code == ARCHIVE_EOF) break;
      if (code != ARCHIVE_OK) return Broken();
      if (at != end && lseek(file.get(), at, SEEK_SET) < 0) return Failed(errno, path);
      MUSTER_RETURN_IF_ERROR(WriteAll(file.get(), {static_cast<const char*>(bytes), count}, Quoted(path)));
      end = at + static_cast<int64_t>(count);
    }
    const int64_t size = archive_entry_size(entry);
    if (size > end && ftruncate(file.get(), size) != 0) return Failed(errno, path);
    if (fchmod(file.get(), (archive_entry_perm(entry) & kPermissions) | kOwnersFile) != 0) return Failed(errno, path);
    // Python uses a compiled file only if its source has the modification time that the file names.
    const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                               {.tv_sec = archive_entry_mtime(entry), .tv_nsec = archive_entry_mtime_nsec(entry)}};
    futimens(file.get(), times);
    return absl::OkStatus();
  }

  Status CheckRoom(int64_t size) const {
    struct statvfs system {};
    if (fstatvfs(root_, &system) != 0) return absl::OkStatus();
    const uint64_t room = uint64_t{system.f_bavail} * system.f_frsize;
    if (static_cast<uint64_t>(std::max<int64_t>(size, 0)) + options_.limits.free <= room) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        fmt::format("{}: no room: {} MiB are free, and {} MiB have to stay free; set XDG_STATE_HOME to a folder of a "
                    "larger file system",
                    name_, room >> 20, options_.limits.free >> 20));
  }

  Status TakeOut(const std::string& path, const std::string& name) {
    const std::string above = FolderOf(path);
    if (name != kOpaque && name.starts_with(kOther)) return absl::OkStatus();  // a marker of aufs itself
    const auto folder = OpenInRoot(root_, above.empty() ? "." : above, O_RDONLY | O_DIRECTORY);
    if (!folder.ok()) return absl::OkStatus();
    if (name != kOpaque) {
      const std::string gone = name.substr(kWhiteout.size());
      if (gone.empty() || gone == "." || gone == "..") return Wrong(path, "it leads out of the image");
      return IsOfThisLayer(above, gone) ? absl::OkStatus() : Remove(folder->get(), gone);
    }
    if (!opaque_.insert(above).second) return absl::OkStatus();  // all that is there now is of this layer
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator it(fmt::format("/proc/self/fd/{}", folder->get()), error), end; !error && it != end;
         it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    for (const std::string& one : names) {
      if (!IsOfThisLayer(above, one)) MUSTER_RETURN_IF_ERROR(Remove(folder->get(), one));
    }
    return absl::OkStatus();
  }

  // Whether this layer has made the path, or something below it.
  bool IsOfThisLayer(const std::string& folder, const std::string& name) const {
    const std::string path = folder.empty() ? name : fmt::format("{}/{}", folder, name);
    const auto first = made_.lower_bound(path + "/");
    return made_.contains(path) || (first != made_.end() && first->starts_with(path + "/"));
  }

  const int file_;
  const std::string& name_;
  const int root_;
  const LayerOptions& options_;
  const std::unique_ptr<archive, int (*)(archive*)> archive_;
  std::set<std::string> made_;    // paths of this tar
  std::set<std::string> opaque_;  // folders that have lost what lower layers put there
  uint64_t left_out_ = 0;
};

}  // namespace

StatusOr<std::string> FileInTar(int file, const std::string& name, std::string_view wanted, size_t most) {
  const LayerOptions options;
  return Unpacking(file, name, -1, options).Find(wanted, most);
}

Status UnpackTar(int file, const std::string& name, int root, const LayerOptions& options, uint64_t* left_out) {
  return Unpacking(file, name, root, options).Run(left_out);
}

}  // namespace muster::local
