// SPDX-License-Identifier: Apache-2.0
#include "initializers/stores/local_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/folder_names.h"
#include "base/text.h"
#include "initializers/facts/entry_path.h"
#include "initializers/target/manifest.h"
#include "initializers/target/metadata_files.h"

namespace muster::initializers {
namespace {

constexpr size_t kPage = 1000;  // entries
constexpr std::string_view kClaims = "MUSTER_CLAIMS";
constexpr std::string_view kMounts = "/mnt/pvc";
constexpr std::string_view kLostAndFound = "lost+found";  // in the root of ext4; only root can read it

// Both are real paths.
bool IsBelow(std::string_view path, std::string_view root) {
  return path == root || root == "/" || (path.starts_with(root) && path[root.size()] == '/');
}

// The path without links, '.' and '..'; nullopt: it does not exist.
std::optional<std::string> RealPath(const std::string& path) {
  std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), &std::free);
  return real ? std::optional<std::string>(real.get()) : std::nullopt;
}

// The same for a path that need not exist yet.
std::string RealPathToBe(const std::string& path) {
  std::error_code error;
  std::string real = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error).string();
  while (real.size() > 1 && real.ends_with('/')) real.pop_back();
  return error ? "" : real;
}

Status NotThere(const LocalPlace& place) {
  const std::string_view remedy =
      place.root.empty() ? "check the path" : "mount the claim there, or say where it is with --claim NAME=DIR";
  return absl::NotFoundError(fmt::format("{}: there is no such file or folder; {}", place.path, remedy));
}

Status BadLink(std::string_view path, std::string_view fault) {
  return absl::FailedPreconditionError(
      fmt::format("{} is a link {}, remove the link, or leave it out with --ignore", path, fault));
}

// Ignores errors other than EACCES, because a sandbox may lack the call; a real error shows when the file is opened.
Status CheckReadable(const std::string& path) {
  if (access(path.c_str(), R_OK) == 0 || errno != EACCES) return absl::OkStatus();
  return ErrnoStatus(EACCES, path);
}

// Reads one folder after the other, a page at a time, on the pool.
class Walk {
 public:
  Walk(LocalPlace place, Patterns patterns) : place_(std::move(place)), patterns_(std::move(patterns)) {}

  // False: this was the last page.
  StatusOr<bool> NextPage(std::vector<Entry>* entries, std::vector<std::string>* notes);

 private:
  struct Chain {  // real paths of a folder and of those it was reached through
    std::string real;
    std::shared_ptr<const Chain> above;
  };
  struct Folder {
    std::string path;   // below the source, with a trailing '/'; empty: the source
    std::string where;  // path on this machine
    std::shared_ptr<const Chain> chain;
  };
  Status Begin(std::vector<Entry>* entries, std::vector<std::string>* notes);
  Status Read(const Folder& folder, std::vector<Entry>* entries, std::vector<std::string>* notes);
  Status Add(const Folder& folder, const std::string& name, std::vector<Entry>* entries,
             std::vector<std::string>* notes);
  Status PassOver(const std::string& path, Status problem, std::vector<std::string>* notes) const;
  Entry EntryOf(std::string path, std::string where, const struct stat& facts) const;

  const LocalPlace place_;
  const Patterns patterns_;
  std::string root_;  // real path; empty: no bound
  std::vector<Folder> folders_;
  ManifestFiles published_;  // what the manifest in the source says of its files, without what is not needed
  bool begun_ = false;
};

StatusOr<bool> Walk::NextPage(std::vector<Entry>* entries, std::vector<std::string>* notes) {
  if (!std::exchange(begun_, true)) MUSTER_RETURN_IF_ERROR(Begin(entries, notes));
  while (!folders_.empty() && entries->size() < kPage) {
    Folder folder = std::move(folders_.back());
    folders_.pop_back();
    MUSTER_RETURN_IF_ERROR(Read(folder, entries, notes));
  }
  return !folders_.empty();
}

Status Walk::Begin(std::vector<Entry>* entries, std::vector<std::string>* notes) {
  const auto real = RealPath(place_.path);
  if (!real) return errno == ENOENT || errno == ENOTDIR ? NotThere(place_) : ErrnoStatus(errno, place_.path);
  if (!place_.root.empty()) {
    const auto root = RealPath(place_.root);
    if (!root) return NotThere(place_);
    root_ = *root;
    if (!IsBelow(*real, root_)) {
      return absl::FailedPreconditionError(fmt::format("{} is a link that leads out of its claim", place_.path));
    }
  }
  struct stat facts {};
  if (stat(real->c_str(), &facts) != 0) return ErrnoStatus(errno, place_.path);
  if (S_ISREG(facts.st_mode)) {
    std::string_view name = place_.path;
    MUSTER_RETURN_IF_ERROR(CheckReadable(*real));
    entries->push_back(EntryOf(std::string(name.substr(name.rfind('/') + 1)), *real, facts));
    return absl::OkStatus();
  }
  if (!S_ISDIR(facts.st_mode)) {
    return absl::FailedPreconditionError(fmt::format("{} is neither a file nor a folder", place_.path));
  }
  if (auto manifest = ReadMetadataManifest(*real, kManifestName); manifest.ok()) {
    while (!manifest->files.empty()) {
      ManifestFile file = manifest->files.PopFront();
      if (!file.verified) continue;
      file.version.clear();
      file.archive.clear();
      published_.push_back(file);
    }
  } else if (!absl::IsNotFound(manifest.status())) {
    notes->push_back(fmt::format("the source's manifest cannot be read ({}): its checksums are not compared",
                                 Message(manifest.status())));
  }
  folders_.push_back({"", *real, std::make_shared<const Chain>(Chain{*real, nullptr})});
  return absl::OkStatus();
}

// Returns `problem`, unless the object at `path`, which may be or hold wanted files, can be left out: then notes it.
Status Walk::PassOver(const std::string& path, Status problem, std::vector<std::string>* notes) const {
  const bool of_the_file_system = path == kLostAndFound && absl::IsPermissionDenied(problem);
  if (!of_the_file_system && !MatchesAny(patterns_.ignore, path)) return problem;
  notes->push_back(fmt::format("{}: it is left out", Message(problem)));
  return absl::OkStatus();
}

Status Walk::Read(const Folder& folder, std::vector<Entry>* entries, std::vector<std::string>* notes) {
  auto read = NamesIn(AT_FDCWD, folder.where, folder.where);
  if (!read.ok() && folder.path.empty()) return read.status();
  if (!read.ok()) return PassOver(folder.path.substr(0, folder.path.size() - 1), read.status(), notes);
  std::vector<std::string>& names = *read;
  if (folder.path.empty()) std::erase(names, kOwnFolder);
  if (names.empty() && !folder.path.empty()) {
    Entry empty;
    empty.path = folder.path;
    empty.key = folder.where;
    entries->push_back(std::move(empty));
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) MUSTER_RETURN_IF_ERROR(Add(folder, name, entries, notes));
  return absl::OkStatus();
}

Status Walk::Add(const Folder& folder, const std::string& name, std::vector<Entry>* entries,
                 std::vector<std::string>* notes) {
  const std::string path = folder.path + name;
  const bool wanted = IsWanted(path, patterns_.include, patterns_.ignore);
  const bool may_hold = MayHoldWanted(path + '/', patterns_.include, patterns_.ignore);
  if (!wanted && !may_hold) return absl::OkStatus();
  std::string where = fmt::format("{}/{}", folder.where, name);
  struct stat facts {};
  if (lstat(where.c_str(), &facts) != 0) return PassOver(path, ErrnoStatus(errno, where), notes);
  const bool link = S_ISLNK(facts.st_mode);
  if (link) {
    const auto real = RealPath(where);
    if (!real && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) {
      return wanted ? BadLink(where, "that leads nowhere: mend it") : absl::OkStatus();
    }
    if (!real || stat(real->c_str(), &facts) != 0) return PassOver(path, ErrnoStatus(errno, where), notes);
    where = *real;
  }
  const bool folder_here = S_ISDIR(facts.st_mode);
  if (folder_here ? !may_hold : !wanted) return absl::OkStatus();
  if (link && !root_.empty() && !IsBelow(where, root_)) {
    const std::string fault = fmt::format("that leads out of its claim, to {}: copy the linked file or folder", where);
    return PassOver(path, BadLink(fmt::format("{}/{}", folder.where, name), fault), notes);
  }
  if (S_ISREG(facts.st_mode)) {
    MUSTER_RETURN_IF_ERROR(CheckReadable(where));
    entries->push_back(EntryOf(path, std::move(where), facts));
    return absl::OkStatus();
  }
  if (!folder_here) {
    notes->push_back(fmt::format("{} is neither a file nor a folder: it is left out", where));
    return absl::OkStatus();
  }
  for (const Chain* above = folder.chain.get(); above != nullptr; above = above->above.get()) {
    if (above->real != where) continue;
    const std::string fault = fmt::format("that leads to a folder it is in, {}: copy the linked folder", where);
    return PassOver(path, BadLink(fmt::format("{}/{}", folder.where, name), fault), notes);
  }
  auto chain = std::make_shared<const Chain>(Chain{where, folder.chain});
  folders_.push_back({path + '/', std::move(where), std::move(chain)});
  return absl::OkStatus();
}

Entry Walk::EntryOf(std::string path, std::string where, const struct stat& facts) const {
  Entry entry;
  const auto at = published_.Find(path);
  entry.path = std::move(path);
  entry.key = std::move(where);
  entry.size = static_cast<uint64_t>(facts.st_size);
  entry.version = LocalVersion(facts);
  if (!at) return entry;
  const ManifestFile published = published_[*at];
  if (published.size == entry.size && published.modified_ns == ModifiedOf(facts)) {
    auto expected = ParseExpectation(published.hash);
    if (expected.ok()) entry.expected = Checkable(*std::move(expected));
  }
  return entry;
}

class LocalFolder final : public Catalogue {
 public:
  LocalFolder(DiskPool& pool, LocalPlace place, Patterns patterns, std::function<void(const std::string&)> say)
      : pool_(pool), place_(std::move(place)), patterns_(std::move(patterns)), say_(std::move(say)) {}

  Handle List(Listing listing) override {
    auto reading = std::make_shared<Reading>(
        Reading{Walk(place_, patterns_), pool_.NewStrand(), std::move(listing), {}, {}, true});
    Handle handle = std::make_shared<bool>();
    Next(reading, handle);
    return handle;
  }
  std::string endpoint() const override { return ""; }
  std::string version() const override { return ""; }

 private:
  struct Reading {
    Walk walk;
    DiskPool::Strand strand;
    Listing listing;
    std::vector<Entry> entries;
    std::vector<std::string> notes;
    StatusOr<bool> more;
  };
  void Next(const std::shared_ptr<Reading>& reading, const std::weak_ptr<void>& wanted) {
    auto work = [reading] { reading->more = reading->walk.NextPage(&reading->entries, &reading->notes); };
    pool_.Run(reading->strand, work, [this, reading, wanted] {
      if (wanted.expired()) return;
      for (const std::string& note : std::exchange(reading->notes, {})) say_(note);
      if (!reading->more.ok()) return reading->listing.end(reading->more.status());
      reading->listing.page(std::exchange(reading->entries, {}));
      if (wanted.expired()) return;
      *reading->more ? Next(reading, wanted) : reading->listing.end(absl::OkStatus());
    });
  }

  DiskPool& pool_;
  const LocalPlace place_;
  const Patterns patterns_;
  const std::function<void(const std::string&)> say_;
};

}  // namespace

StatusOr<LocalPlace> FindLocalPlace(const Source& source, const std::vector<std::string>& claims,
                                    const Environment& environment) {
  std::string path = source.path;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (source.scheme == Scheme::kFile) return LocalPlace{path, ""};
  if (!path.empty()) MUSTER_RETURN_IF_ERROR(Annotate(CheckEntryPath(path), source.uri));
  std::vector<std::string> known = claims;
  const std::string listed = environment.Get(kClaims).value_or("");
  for (std::string_view part : Split(listed, ',')) known.emplace_back(Strip(part));
  std::string root = fmt::format("{}/{}", kMounts, source.container);
  bool named = false;
  for (const std::string& claim : known) {
    const size_t equals = claim.find('=');
    if (equals == std::string::npos || equals == 0 || claim[equals + 1] != '/') {
      return absl::InvalidArgumentError(
          fmt::format("'{}' (--claim, {}) does not say where a claim is mounted: write NAME=DIR", claim, kClaims));
    }
    if (!named && claim.substr(0, equals) == source.container) {
      root = claim.substr(equals + 1);
      named = true;
    }
  }
  return LocalPlace{path.empty() ? root : fmt::format("{}/{}", root, path), root};
}

StatusOr<bool> IsTarget(const LocalPlace& place, const std::string& target) {
  const auto source = RealPath(place.path);
  const std::string there = RealPathToBe(target);
  if (!source || there.empty()) return false;  // opening it reports the error
  if (*source == there) return true;
  if (IsBelow(*source, there) || IsBelow(there, *source)) {
    return absl::InvalidArgumentError(
        fmt::format("one of {} and {} is within the other: name another target", place.path, target));
  }
  return false;
}

std::unique_ptr<Catalogue> MakeLocalFolder(DiskPool& pool, LocalPlace place, Patterns patterns,
                                           std::function<void(const std::string&)> say) {
  return std::make_unique<LocalFolder>(pool, std::move(place), std::move(patterns), std::move(say));
}

std::string LocalVersion(const struct stat& facts) { return fmt::format("{}.{}", ModifiedOf(facts), facts.st_ino); }

}  // namespace muster::initializers
