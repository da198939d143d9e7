// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/staging.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

#include "base/folder_names.h"
#include "base/kernel_calls.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "initializers/disk/disk_pool.h"
#include "initializers/facts/entry_path.h"
#include "initializers/facts/failure.h"
#include "initializers/target/metadata_files.h"

namespace muster::initializers {
namespace {

constexpr size_t kLongestRanges = size_t{16} << 20;  // bytes of a NAME.ranges that are read
constexpr char kHashes[] = ".hashes";
constexpr char kClone[] = ".clone";  // the file with which a reflink is tried

// Switches a file to the page cache: some file systems open a file for direct I/O, and then refuse each access or want
// a larger alignment. False: it was not open for direct I/O.
bool ThroughCache(int file) {
  const int flags = fcntl(file, F_GETFL);
  return flags >= 0 && (flags & O_DIRECT) != 0 && fcntl(file, F_SETFL, flags & ~O_DIRECT) == 0;
}

Status WriteAll(int file, const char* bytes, size_t length, uint64_t offset) {
  while (length > 0) {
    ssize_t written = pwrite(file, bytes, length, static_cast<off_t>(offset));
    if (written < 0 && (errno == EINTR || (errno == EINVAL && ThroughCache(file)))) continue;
    if (written < 0) return DiskStatus(errno, "writing");
    bytes += written;
    offset += static_cast<size_t>(written);
    length -= static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

// Reads the file in pieces, until its end or until `take` returns false.
Status ReadPieces(int file, const std::function<bool(std::string_view)>& take) {
  char buffer[1 << 14];
  while (true) {
    const ssize_t got = read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return DiskStatus(errno, "reading");
    if (got == 0 || !take({buffer, static_cast<size_t>(got)})) return absl::OkStatus();
  }
}

StatusOr<std::string> ReadAll(int file, size_t most) {
  std::string text;
  MUSTER_RETURN_IF_ERROR(ReadPieces(file, [&](std::string_view piece) {
    text += piece;
    return text.size() < most;
  }));
  return text;
}

// Appends a line in one call: after a crash it is whole, or cut at the end of the file.
Status Append(int file, const std::string& line, std::string_view shown) {
  const ssize_t written = write(file, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return absl::OkStatus();
  return DiskStatus(written < 0 ? errno : ENOSPC, fmt::format("writing {}", shown));
}

// Call it before the file takes its name, so that no whole file with a hash lacks its line.
Status NoteHash(int hashes, const std::string& name, const StagedHash& hash) {
  return hash.hash.empty() ? absl::OkStatus() : Append(hashes, WriteHashLine(name, hash), kHashes);
}

Status MakeFolder(int at, const std::string& name, const std::string& shown) {
  if (mkdirat(at, name.c_str(), 0755) == 0 || errno == EEXIST) return absl::OkStatus();
  return DiskStatus(errno, shown);
}

StatusOr<Descriptor> OpenFolder(int at, const std::string& name, const std::string& shown) {
  Descriptor folder(openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.ok()) return folder;
  if (errno == ELOOP || errno == ENOTDIR) {
    return absl::FailedPreconditionError(
        fmt::format("{} is a link or a file, where a folder has to be: remove it, or name another target", shown));
  }
  return DiskStatus(errno, shown);
}

StatusOr<Descriptor> OpenTarget(const std::string& target) {
  Descriptor root(open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));  // the target itself may be a link
  if (root.ok()) return root;
  if (errno == ENOTDIR) {
    return absl::FailedPreconditionError(
        fmt::format("{} is a file, where a folder has to be: remove it, or name another target", target));
  }
  return DiskStatus(errno, target);
}

Status FolderInTheWay(const std::string& target, const std::string& path) {
  return absl::FailedPreconditionError(
      fmt::format("{}/{} is a folder, where a file has to be: remove it, or name another target", target, path));
}

Status GiveLength(int file, uint64_t size, uint64_t have) {
  if (have >= size || ftruncate(file, static_cast<off_t>(size)) == 0) return absl::OkStatus();
  return DiskStatus(errno, fmt::format("a file of {} bytes", size));
}

Status ReserveFor(int file, uint64_t size, uint64_t have) {
  if (size == 0) return absl::OkStatus();
  int failed;
  do {
    failed = fallocate(file, 0, 0, static_cast<off_t>(size));
  } while (failed != 0 && errno == EINTR);
  if (failed == 0) return absl::OkStatus();
  if (!IsNotOffered(errno)) return DiskStatus(errno, fmt::format("reserving {} bytes", size));
  return GiveLength(file, size, have);
}

}  // namespace

StatusOr<Descriptor> OpenOwnFolder(const std::string& target) {
  for (size_t slash = target.find('/', 1); slash != std::string::npos; slash = target.find('/', slash + 1)) {
    if (mkdir(target.substr(0, slash).c_str(), 0755) != 0 && errno != EEXIST) {
      return DiskStatus(errno, fmt::format("making {}", target.substr(0, slash)));
    }
  }
  if (mkdir(target.c_str(), 0755) != 0 && errno != EEXIST) return DiskStatus(errno, fmt::format("making {}", target));
  MUSTER_ASSIGN_OR_RETURN(Descriptor root, OpenTarget(target));
  const std::string own = fmt::format("{}/{}", target, kOwnFolder);
  MUSTER_RETURN_IF_ERROR(MakeFolder(root.get(), std::string(kOwnFolder), own));
  return OpenFolder(root.get(), std::string(kOwnFolder), own);
}

StagedFile::StagedFile(const Staging& staging, std::string name, uint64_t size)
    : folder_(staging.folder_.get()),
      hashes_(staging.hashes_.get()),
      target_(staging.target_),
      name_(std::move(name)),
      size_(size),
      in_memory_(staging.in_memory_) {}
StagedFile::~StagedFile() = default;

Status StagedFile::Reserve() {
  struct stat before {};
  if (fstat(file_.get(), &before) != 0) return DiskStatus(errno, name_);
  const auto have = static_cast<uint64_t>(before.st_size);
  return Annotate(in_memory_ ? GiveLength(file_.get(), size_, have) : ReserveFor(file_.get(), size_, have), target_);
}

Status StagedFile::Write(uint64_t offset, std::string_view bytes) {
  const size_t odd = direct_ ? bytes.size() % kBlockAlignment : 0;  // only at the file's end; Finish cuts the padding
  const size_t even = bytes.size() - odd;
  MUSTER_RETURN_IF_ERROR(Annotate(WriteAll(file_.get(), bytes.data(), even, offset), name_));
  if (odd == 0) return absl::OkStatus();
  alignas(kBlockAlignment) char last[kBlockAlignment] = {};
  bytes.copy(last, odd, even);
  return Annotate(WriteAll(file_.get(), last, sizeof last, offset + even), name_);
}

StatusOr<size_t> StagedFile::Read(uint64_t offset, char* bytes, size_t length) {
  size_t wanted = direct_ ? (length + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment : length;
  size_t have = 0;
  while (have < length) {
    ssize_t got = pread(file_.get(), bytes + have, wanted - have, static_cast<off_t>(offset + have));
    if (got < 0 && (errno == EINTR || (errno == EINVAL && ThroughCache(file_.get())))) continue;
    if (got < 0) return DiskStatus(errno, fmt::format("reading {}", name_));
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  return std::min(have, length);
}

bool StagedFile::CloneFrom(int source) { return ioctl(file_.get(), FICLONE, source) == 0; }

StatusOr<size_t> StagedFile::CopyFrom(int source, uint64_t offset, size_t length) {
  auto from = static_cast<off64_t>(offset);
  off64_t to = from;
  const ssize_t copied = copy_file_range(source, &from, file_.get(), &to, length, 0);
  if (copied >= 0) return static_cast<size_t>(copied);
  if (errno == EXDEV || IsNotOffered(errno)) {
    return absl::UnimplementedError("copy_file_range");
  }
  return DiskStatus(errno, fmt::format("copying to {}", name_));
}

Status StagedFile::Note(const StagedRange& staged) {
  return Append(ranges_.get(), WriteRangeLine(staged), fmt::format("{}{}", name_, kRanges));
}

Status StagedFile::Forget() {
  noted_.clear();
  if (ftruncate(ranges_.get(), 0) != 0) return DiskStatus(errno, name_);
  return absl::OkStatus();
}

void StagedFile::Discard() {
  noted_.clear();
  (void)ftruncate(file_.get(), 0);  // an open descriptor then holds no disk space
  unlinkat(folder_, fmt::format("{}{}", name_, kPart).c_str(), 0);
  unlinkat(folder_, fmt::format("{}{}", name_, kRanges).c_str(), 0);
}

Status StagedFile::Finish(const StagedHash& hash, bool sync) {
  if (ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) return DiskStatus(errno, name_);
  if (sync && fdatasync(file_.get()) != 0 && !IsNotOffered(errno)) {
    return DiskStatus(errno, fmt::format("syncing {}", name_));
  }
  MUSTER_RETURN_IF_ERROR(NoteHash(hashes_, name_, hash));
  const std::string part = fmt::format("{}{}", name_, kPart);
  if (renameat(folder_, part.c_str(), folder_, name_.c_str()) != 0) return DiskStatus(errno, part);
  if (ranges_.ok()) unlinkat(folder_, fmt::format("{}{}", name_, kRanges).c_str(), 0);
  if (file_.Close() != 0) return DiskStatus(errno, name_);
  return absl::OkStatus();
}

std::string Staging::NameOf(std::string_view source, const Entry& entry) {
  auto hasher = Hasher::Make(HashKind::kSha256, 0);
  for (std::string_view part : {source, std::string_view(entry.path), std::string_view(entry.version)}) {
    hasher->Update(fmt::format("{}:", part.size()));
    hasher->Update(part);
  }
  hasher->Update(std::to_string(entry.size));
  return ToHex(hasher->Finish().substr(0, 16));
}

StatusOr<std::unique_ptr<Staging>> Staging::Open(const std::string& target) {
  std::unique_ptr<Staging> staging(new Staging(target));
  MUSTER_ASSIGN_OR_RETURN(staging->own_, OpenOwnFolder(target));
  MUSTER_ASSIGN_OR_RETURN(staging->root_, OpenTarget(target));
  const std::string shown = fmt::format("{}/{}/staging", target, kOwnFolder);
  MUSTER_RETURN_IF_ERROR(MakeFolder(staging->own_.get(), "staging", shown));
  MUSTER_ASSIGN_OR_RETURN(staging->folder_, OpenFolder(staging->own_.get(), "staging", shown));
  struct statfs kind {};
  staging->in_memory_ = fstatfs(staging->folder_.get(), &kind) == 0 && kind.f_type == TMPFS_MAGIC;
  MUSTER_RETURN_IF_ERROR(staging->earlier_.Read(staging->folder_.get(), shown));
  MUSTER_RETURN_IF_ERROR(Annotate(staging->OpenHashes(), fmt::format("{}/{}", shown, kHashes)));
  return staging;
}

bool Staging::IsWhole(const std::string& name) {
  earlier_.Claim(name);
  return earlier_.IsWhole(name);
}

uint64_t Staging::Held(const std::string& name) {
  earlier_.Claim(name);
  return earlier_.Held(name);
}

Status Staging::OpenHashes() {
  MUSTER_ASSIGN_OR_RETURN(hashes_, OpenMetadataFile(folder_.get(), kHashes, O_RDWR | O_CREAT | O_APPEND));
  HashLines lines([this](const std::string& name) { return earlier_.IsWhole(name); });
  MUSTER_RETURN_IF_ERROR(ReadPieces(hashes_.get(), [&](std::string_view piece) {
    lines.Add(piece);
    return true;
  }));
  // A cut line must not swallow the next one.
  if (lines.cut()) MUSTER_RETURN_IF_ERROR(Append(hashes_.get(), "\n", kHashes));
  hash_of_ = std::move(lines).End();
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<StagedFile>> Staging::OpenFile(const std::string& name, uint64_t size, bool direct) {
  MUSTER_ASSIGN_OR_RETURN(auto staged, OpenPart(name, size, direct));
  MUSTER_RETURN_IF_ERROR(staged->Reserve());
  return staged;
}

StatusOr<std::unique_ptr<StagedFile>> Staging::OpenUnreserved(const std::string& name, uint64_t size) {
  return OpenPart(name, size, false);
}

bool Staging::CanClone(const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return false;
  const auto [known, first] = clones_.try_emplace(facts.st_dev, false);
  if (!first) return known->second;
  const Descriptor from(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  const auto to = OpenMetadataFile(folder_.get(), kClone, O_WRONLY | O_CREAT);
  known->second = from.ok() && to.ok() && ioctl(to->get(), FICLONE, from.get()) == 0;
  unlinkat(folder_.get(), kClone, 0);
  return known->second;
}

StatusOr<std::unique_ptr<StagedFile>> Staging::OpenPart(const std::string& name, uint64_t size, bool direct) {
  earlier_.Claim(name);
  std::unique_ptr<StagedFile> staged(new StagedFile(*this, name, size));
  const std::string part = fmt::format("{}{}", name, kPart);
  constexpr int kFlags = O_RDWR | O_CREAT;
  if (direct && !in_memory_) {
    auto opened = OpenMetadataFile(folder_.get(), part, kFlags | O_DIRECT);
    staged->direct_ = opened.ok();  // EINVAL: the file system has no direct I/O
    if (opened.ok()) staged->file_ = *std::move(opened);
  }
  if (!staged->direct_) {
    MUSTER_ASSIGN_OR_RETURN(staged->file_, OpenMetadataFile(folder_.get(), part, kFlags));
  }
  const std::string ranges = fmt::format("{}{}", name, kRanges);
  MUSTER_ASSIGN_OR_RETURN(staged->ranges_, OpenMetadataFile(folder_.get(), ranges, kFlags | O_APPEND));
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadAll(staged->ranges_.get(), kLongestRanges));
  staged->noted_ = ReadRangeLines(text, size);
  // A cut line must not swallow the next one.
  std::string good;
  for (const StagedRange& range : staged->noted_) good += WriteRangeLine(range);
  if (good != text) {
    if (ftruncate(staged->ranges_.get(), 0) != 0) return DiskStatus(errno, ranges);
    MUSTER_RETURN_IF_ERROR(WriteAll(staged->ranges_.get(), good.data(), good.size(), 0));
  }
  return staged;
}

Status Staging::WriteWhole(const std::string& name, std::string_view bytes, const StagedHash& hash, bool sync) {
  earlier_.Claim(name);
  const std::string part = fmt::format("{}{}", name, kPart);
  MUSTER_ASSIGN_OR_RETURN(Descriptor file, OpenMetadataFile(folder_.get(), part, O_WRONLY | O_CREAT | O_TRUNC));
  MUSTER_RETURN_IF_ERROR(Annotate(WriteAll(file.get(), bytes.data(), bytes.size(), 0), target_));
  if (sync && fdatasync(file.get()) != 0 && !IsNotOffered(errno)) return DiskStatus(errno, part);
  if (file.Close() != 0) return DiskStatus(errno, part);
  MUSTER_RETURN_IF_ERROR(NoteHash(hashes_.get(), name, hash));
  if (renameat(folder_.get(), part.c_str(), folder_.get(), name.c_str()) != 0) return DiskStatus(errno, part);
  return absl::OkStatus();
}

Status Staging::MakeExecutable(const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const struct stat facts, FactsOf(name));
  const mode_t readers = facts.st_mode & (S_IRUSR | S_IRGRP | S_IROTH);
  if (fchmodat(folder_.get(), name.c_str(), (facts.st_mode & 07777) | readers >> 2, 0) == 0) return absl::OkStatus();
  if (IsNotOffered(errno)) return absl::UnimplementedError(fmt::format("{} keeps no modes of files", target_));
  return DiskStatus(errno, name);
}

Status Staging::LinkWhole(const std::string& name, const std::string& path) {
  earlier_.Claim(name);
  unlinkat(folder_.get(), name.c_str(), 0);
  if (linkat(AT_FDCWD, path.c_str(), folder_.get(), name.c_str(), 0) == 0) return absl::OkStatus();
  if (errno == EXDEV) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is on another file system than {}: a hard link cannot reach it; leave --hard-link out", path, target_));
  }
  if (IsNotOffered(errno) || errno == EMLINK) {
    return absl::FailedPreconditionError(fmt::format(
        "no hard link can be made of {} in {} ({}): the file system has none, or lets only the file's owner "
        "make them; leave --hard-link out",
        path, target_, strerror(errno)));
  }
  return DiskStatus(errno, fmt::format("linking {}", path));
}

Status Staging::LinkStaged(const std::string& name, const std::string& other) {
  if (name == other) return absl::OkStatus();
  earlier_.Claim(name);
  unlinkat(folder_.get(), name.c_str(), 0);
  if (linkat(folder_.get(), other.c_str(), folder_.get(), name.c_str(), 0) == 0) return absl::OkStatus();
  if (IsNotOffered(errno) || errno == EMLINK) return CopyStaged(name, other);
  return DiskStatus(errno, fmt::format("linking below {}", target_));
}

Status Staging::CopyStaged(const std::string& name, const std::string& other) {
  MUSTER_ASSIGN_OR_RETURN(const Descriptor from, OpenWhole(other));
  const std::string part = fmt::format("{}{}", name, kPart);
  MUSTER_ASSIGN_OR_RETURN(Descriptor to, OpenMetadataFile(folder_.get(), part, O_WRONLY | O_CREAT | O_TRUNC));
  uint64_t offset = 0;
  Status written;
  MUSTER_RETURN_IF_ERROR(ReadPieces(from.get(), [&](std::string_view piece) {
    written = WriteAll(to.get(), piece.data(), piece.size(), offset);
    offset += piece.size();
    return written.ok();
  }));
  MUSTER_RETURN_IF_ERROR(Annotate(written, target_));
  if (to.Close() != 0) return DiskStatus(errno, part);
  if (renameat(folder_.get(), part.c_str(), folder_.get(), name.c_str()) != 0) return DiskStatus(errno, part);
  return absl::OkStatus();
}

Status Staging::AdoptWhole(const std::string& name, const std::string& path) {
  MUSTER_RETURN_IF_ERROR(LinkWhole(name, path));
  earlier_.AddWhole(name);
  adopted_.insert(name);
  return absl::OkStatus();
}

StatusOr<struct stat> Staging::FactsOf(const std::string& name) const {
  struct stat facts {};
  if (fstatat(folder_.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return DiskStatus(errno, name);
  return facts;
}

const StagedHash* Staging::HashOf(const std::string& name) const {
  auto found = hash_of_.find(name);
  return found == hash_of_.end() ? nullptr : &found->second;
}

StatusOr<Descriptor> Staging::OpenWhole(const std::string& name) const {
  return OpenMetadataFile(folder_.get(), name, O_RDONLY);
}

StatusOr<int> Staging::FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return root_.get();
  const std::string folder = path.substr(0, slash);
  if (last_folder_.ok() && folder == last_folder_path_) return last_folder_.get();
  Descriptor at(dup(root_.get()));
  for (size_t begin = 0; begin <= folder.size();) {
    const size_t end = std::min(folder.find('/', begin), folder.size());
    const std::string name = folder.substr(begin, end - begin);
    const std::string shown = fmt::format("{}/{}", target_, folder.substr(0, end));
    MUSTER_RETURN_IF_ERROR(MakeFolder(at.get(), name, shown));
    MUSTER_ASSIGN_OR_RETURN(at, OpenFolder(at.get(), name, shown));
    begin = end + 1;
  }
  last_folder_ = std::move(at);
  last_folder_path_ = folder;
  return last_folder_.get();
}

Status Staging::CheckPath(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash);
  if (folder != checked_path_ || !checked_.ok()) {
    Descriptor at(dup(root_.get()));
    for (size_t begin = 0; begin < folder.size();) {
      const size_t end = std::min(folder.find('/', begin), folder.size());
      auto next =
          OpenFolder(at.get(), folder.substr(begin, end - begin), fmt::format("{}/{}", target_, folder.substr(0, end)));
      if (absl::IsNotFound(next.status())) return absl::OkStatus();
      MUSTER_RETURN_IF_ERROR(next.status());
      at = *std::move(next);
      begin = end + 1;
    }
    checked_ = std::move(at);
    checked_path_ = folder;
  }
  struct stat facts {};
  const std::string last = path.substr(slash + 1);
  if (last.empty() || fstatat(checked_.get(), last.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return absl::OkStatus();
  return S_ISDIR(facts.st_mode) ? FolderInTheWay(target_, path) : absl::OkStatus();
}

Status Staging::CheckPlaces(const std::vector<Place>& places, const Meanwhile& meanwhile) {
  checked_ = Descriptor();
  for (const Place& place : places) {
    MUSTER_RETURN_IF_ERROR(meanwhile());
    MUSTER_RETURN_IF_ERROR(CheckPath(place.path));
  }
  return absl::OkStatus();
}

Status Staging::Sync() {
  if (syncfs(folder_.get()) == 0) return absl::OkStatus();
  if (IsNotOffered(errno)) return SyncEach();
  return DiskStatus(errno, fmt::format("syncing {}", target_));
}

// Syncs file by file. If fsync is not offered either, nothing more can be done.
Status Staging::SyncEach() {
  auto sync = [this](int file) {
    return fsync(file) == 0 || IsNotOffered(errno) ? absl::OkStatus()
                                                   : DiskStatus(errno, fmt::format("syncing {}", target_));
  };
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder_.get(), ".", target_));
  for (const std::string& name : names) {
    MUSTER_ASSIGN_OR_RETURN(const Descriptor file, OpenMetadataFile(folder_.get(), name, O_RDONLY));
    MUSTER_RETURN_IF_ERROR(sync(file.get()));
  }
  return sync(folder_.get());
}

Status Staging::Publish(const std::vector<Place>& places, const Meanwhile& meanwhile) {
  for (const Place& place : places) {
    MUSTER_RETURN_IF_ERROR(meanwhile());
    MUSTER_ASSIGN_OR_RETURN(int folder, FolderOf(place.path));
    if (place.name.empty()) continue;  // an empty folder: FolderOf has made it
    const std::string last = place.path.substr(place.path.rfind('/') + 1);
    if (renameat(folder_.get(), place.name.c_str(), folder, last.c_str()) == 0) continue;
    if (errno == EISDIR) return FolderInTheWay(target_, place.path);
    return DiskStatus(errno, fmt::format("{}/{}", target_, place.path));
  }
  return absl::OkStatus();
}

Status Staging::WriteOwn(const std::string& name, std::string_view text) {
  return WriteOwn(name, [text](const WritePiece& piece) { return piece(text); });
}

Status Staging::WriteOwn(const std::string& name, const std::function<Status(const WritePiece&)>& write) {
  const ReplaceFileOptions options{.sync = true, .temporary = fmt::format("{}{}", name, kPart), .failed = DiskStatus};
  return ReplaceFile(own_.get(), name, write, options);
}

void Staging::RemoveOwn(const std::string& name) {
  if (unlinkat(own_.get(), name.c_str(), 0) == 0) (void)fsync(own_.get());
}

void Staging::Clear() {
  const auto names = NamesIn(folder_.get(), ".", "");
  if (!names.ok()) return;  // the next start finds the rest
  for (const std::string& name : *names) unlinkat(folder_.get(), name.c_str(), 0);
  unlinkat(own_.get(), "staging", AT_REMOVEDIR);
}

StatusOr<DiskRoom> Staging::room() const {
  struct statvfs facts {};
  if (fstatvfs(root_.get(), &facts) != 0) return DiskStatus(errno, target_);
  DiskRoom room{uint64_t{facts.f_bavail} * facts.f_frsize, facts.f_favail};
  // Some file systems (FUSE) report zeros: take the space as unlimited. A full disk then shows when it is written.
  if (facts.f_blocks == 0) room.bytes = std::numeric_limits<int64_t>::max();
  if (facts.f_files == 0) room.files.reset();
  return room;
}

}  // namespace muster::initializers
