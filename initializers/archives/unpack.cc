// SPDX-License-Identifier: Apache-2.0
#include "initializers/archives/unpack.h"

#include <algorithm>
#include <unordered_map>

#include "base/quoted.h"
#include "base/text.h"
#include "initializers/archives/archive_reader.h"
#include "initializers/disk/disk_pool.h"
#include "initializers/facts/entry_path.h"

namespace muster::initializers {
namespace {

constexpr int kLongestChain = 40;        // of links; the limit of Linux
constexpr uint64_t kMemberBytes = 1024;  // of a member besides its content: archive header, name in our memory

class Unpacking {
 public:
  Unpacking(Staging& staging, const MovedFile& archive, const UnpackOptions& options, const std::atomic<bool>& stop)
      : staging_(staging),
        archive_(archive),
        options_(options),
        stop_(stop),
        folder_(archive.entry.path.substr(0, archive.entry.path.rfind('/') + 1)),
        most_bytes_(std::max(options.limits.free, archive.entry.size > UINT64_MAX / options.limits.ratio
                                                      ? UINT64_MAX
                                                      : archive.entry.size * options.limits.ratio)) {}

  StatusOr<Unpacked> Run();

 private:
  Status Count(uint64_t bytes);
  Status CheckPath(const std::string& member) const;
  Status Bring(ArchiveReader& reader, MovedFile* file);
  Status BringSmall(ArchiveReader& reader, MovedFile* file);
  Status BringLarge(ArchiveReader& reader, MovedFile* file);
  StatusOr<size_t> Fill(ArchiveReader& reader, size_t most);
  Status CheckEnd(ArchiveReader& reader, const Entry& entry);
  Status ResolveLinks();
  MovedFile NewFile(const std::string& member, uint64_t size) const;
  MovedFile* Place(const std::string& member, MovedFile file);

  Staging& staging_;
  const MovedFile& archive_;
  const UnpackOptions& options_;
  const std::atomic<bool>& stop_;
  const std::string folder_;  // folder of the archive: empty, or with a trailing '/'
  const uint64_t most_bytes_;
  uint64_t members_ = 0;
  uint64_t counted_ = 0;  // bytes counted against most_bytes_
  Unpacked unpacked_;
  std::unordered_map<std::string, size_t> places_;      // member -> index in unpacked_.files
  std::unordered_map<std::string, std::string> links_;  // member -> its target
  std::string buffer_ = std::string(kBlockBytes, '\0');
};

StatusOr<Unpacked> Unpacking::Run() {
  MUSTER_ASSIGN_OR_RETURN(Descriptor file, staging_.OpenWhole(archive_.name));
  MUSTER_ASSIGN_OR_RETURN(auto reader, ArchiveReader::Open(std::move(file), archive_.entry.path, *options_.windows));
  const auto wanted = [this](std::string_view path) {
    return IsWanted(fmt::format("{}{}", folder_, path), {}, options_.ignore);
  };
  while (true) {
    if (stop_) return absl::CancelledError("unpacking was stopped");
    MUSTER_ASSIGN_OR_RETURN(auto member, reader->Next(wanted));
    if (!member) break;
    if (++members_ > options_.limits.members) {
      return absl::ResourceExhaustedError(fmt::format("{} has more than {} members: allow more with --extract-members",
                                                      archive_.entry.path, options_.limits.members));
    }
    MUSTER_RETURN_IF_ERROR(Annotate(Count(kMemberBytes), archive_.entry.path));
    MUSTER_RETURN_IF_ERROR(Annotate(CheckPath(member->path), archive_.entry.path));
    switch (member->kind) {
      case Member::Kind::kLink:
        links_.insert_or_assign(std::move(member->path), std::move(member->target));
        break;
      case Member::Kind::kFolder:
        Place(member->path, NewFile(member->path + "/", 0));
        break;
      case Member::Kind::kFile:
        MUSTER_RETURN_IF_ERROR(
            Annotate(Bring(*reader, Place(member->path, NewFile(member->path, member->size))), archive_.entry.path));
        break;
    }
  }
  MUSTER_RETURN_IF_ERROR(ResolveLinks());
  return std::move(unpacked_);
}

MovedFile Unpacking::NewFile(const std::string& member, uint64_t size) const {
  MovedFile file;
  file.entry.path = folder_ + member;
  file.entry.key = file.entry.path;
  file.entry.size = size;
  file.entry.version = archive_.entry.version;
  return file;
}

// A member replaces an earlier one of the same name.
MovedFile* Unpacking::Place(const std::string& member, MovedFile file) {
  links_.erase(member);
  auto [place, added] = places_.emplace(member, unpacked_.files.size());
  if (added) {
    unpacked_.files.push_back(std::move(file));
  } else {
    unpacked_.files[place->second] = std::move(file);
  }
  return &unpacked_.files[place->second];
}

// The reader has checked the path of the member itself; with the archive's folder in front it may be too long.
Status Unpacking::CheckPath(const std::string& member) const {
  return folder_.empty() ? absl::OkStatus() : CheckEntryPath(folder_ + member);
}

Status Unpacking::Count(uint64_t bytes) {
  if (bytes > most_bytes_ - counted_) {
    return absl::ResourceExhaustedError(
        fmt::format("it is {} bytes long and unpacks to more than {}, as an archive bomb does: allow more with "
                    "--extract-ratio (now {})",
                    archive_.entry.size, most_bytes_, options_.limits.ratio));
  }
  counted_ += bytes;
  return absl::OkStatus();
}

Status Unpacking::Bring(ArchiveReader& reader, MovedFile* file) {
  const uint64_t size = file->entry.size;
  MUSTER_RETURN_IF_ERROR(Count(size));
  unpacked_.bytes += size;
  file->name = Staging::NameOf(options_.source, file->entry);
  return size <= kBlockBytes ? BringSmall(reader, file) : BringLarge(reader, file);
}

// Reads until the buffer has `most` bytes, or the member ends.
StatusOr<size_t> Unpacking::Fill(ArchiveReader& reader, size_t most) {
  size_t have = 0;
  while (have < most) {
    MUSTER_ASSIGN_OR_RETURN(size_t got, reader.Read(buffer_.data() + have, most - have));
    if (got == 0) break;
    have += got;
  }
  return have;
}

// Fails if the member has more bytes. Reading its end checks its checksum.
Status Unpacking::CheckEnd(ArchiveReader& reader, const Entry& entry) {
  char more = 0;
  MUSTER_ASSIGN_OR_RETURN(const size_t got, reader.Read(&more, 1));
  if (got == 0) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("{} is longer than the {} bytes that the archive states", Quoted(entry.path), entry.size));
}

std::string Described(Hasher& hasher) {
  Expectation hash;
  hash.kind = HashKind::kCrc32c;
  hash.value = hasher.Finish();
  return Describe(hash);
}

Status Shorter(const Entry& entry, uint64_t have) {
  return absl::DataLossError(
      fmt::format("{} is {} bytes long in place of {}: the archive is broken", Quoted(entry.path), have, entry.size));
}

Status Unpacking::BringSmall(ArchiveReader& reader, MovedFile* file) {
  MUSTER_ASSIGN_OR_RETURN(const size_t have, Fill(reader, file->entry.size));
  if (have != file->entry.size) return Shorter(file->entry, have);
  MUSTER_RETURN_IF_ERROR(CheckEnd(reader, file->entry));
  auto hasher = Hasher::Make(HashKind::kCrc32c, have);
  hasher->Update({buffer_.data(), have});
  file->hash = Described(*hasher);
  return staging_.WriteWhole(file->name, {buffer_.data(), have}, {}, false);
}

Status Unpacking::BringLarge(ArchiveReader& reader, MovedFile* file) {
  const uint64_t size = file->entry.size;
  MUSTER_ASSIGN_OR_RETURN(auto staged, staging_.OpenFile(file->name, size, false));
  MUSTER_RETURN_IF_ERROR(staged->Forget());
  auto hasher = Hasher::Make(HashKind::kCrc32c, size);
  for (uint64_t at = 0; at < size;) {
    if (stop_) return absl::CancelledError("unpacking was stopped");
    const size_t wanted = std::min<uint64_t>(buffer_.size(), size - at);
    MUSTER_ASSIGN_OR_RETURN(const size_t have, Fill(reader, wanted));
    if (have != wanted) return Shorter(file->entry, at + have);
    hasher->Update({buffer_.data(), have});
    MUSTER_RETURN_IF_ERROR(staged->Write(at, {buffer_.data(), have}));
    at += have;
  }
  MUSTER_RETURN_IF_ERROR(CheckEnd(reader, file->entry));
  file->hash = Described(*hasher);
  return staged->Finish({}, false);
}

// Called when all members are known, because a link may stand before its target.
Status Unpacking::ResolveLinks() {
  const auto links = std::exchange(links_, {});
  for (const auto& [member, first] : links) {
    std::string target = first;
    for (int steps = 0; steps < kLongestChain && !places_.contains(target); ++steps) {
      auto link = links.find(target);
      if (link == links.end()) break;
      target = link->second;
    }
    const auto found = places_.find(target);
    if (found == places_.end() || unpacked_.files[found->second].name.empty()) {
      return absl::NotFoundError(
          fmt::format("{}: {} is a link to {}, which is not a file of the archive; leave it out with --ignore",
                      archive_.entry.path, Quoted(member), Quoted(first)));
    }
    const MovedFile& other = unpacked_.files[found->second];
    MovedFile file = NewFile(member, other.entry.size);
    file.hash = other.hash;
    file.name = Staging::NameOf(options_.source, file.entry);
    MUSTER_RETURN_IF_ERROR(staging_.LinkStaged(file.name, other.name));
    Place(member, std::move(file));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Unpacked> Unpack(Staging& staging, const MovedFile& archive, const UnpackOptions& options,
                          const std::atomic<bool>& stop) {
  return Unpacking(staging, archive, options, stop).Run();
}

}  // namespace muster::initializers
