// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/publication.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/text.h"
#include "initializers/facts/entry_path.h"
#include "initializers/target/after_publish.h"
#include "initializers/target/metadata_files.h"

namespace muster::initializers {
namespace {

constexpr char kNext[] = "next.json";

bool IsFolder(const ManifestFile& file) { return file.path.ends_with('/'); }

// True if the file is in its place; also compares its time of change if it is known.
bool IsInPlace(const std::string& target, const ManifestFile& file) {
  struct stat facts {};
  if (lstat(fmt::format("{}/{}", target, file.path).c_str(), &facts) != 0) return false;
  if (IsFolder(file)) return S_ISDIR(facts.st_mode);
  return S_ISREG(facts.st_mode) && static_cast<uint64_t>(facts.st_size) == file.size &&
         (file.modified_ns == 0 || file.modified_ns == ModifiedOf(facts));
}

// True if the file is whole in the staging folder. Then sets its time of change, which a rename does not alter.
bool IsStaged(const Staging& staging, const std::string& name, ManifestFile* file) {
  const auto facts = staging.FactsOf(name);
  if (!facts.ok() || !S_ISREG(facts->st_mode) || static_cast<uint64_t>(facts->st_size) != file->size) return false;
  file->modified_ns = ModifiedOf(*facts);
  return true;
}

std::string NameOf(const Manifest& manifest, const ManifestFile& file) {
  Entry entry;
  entry.path = file.path;
  entry.size = file.size;
  entry.version = file.version;
  return Staging::NameOf(manifest.source, entry);
}

Status Write(Staging& staging, const std::string& name, const Manifest& manifest) {
  return staging.WriteOwn(name, [&](const WritePiece& piece) { return WriteManifest(manifest, piece); });
}

// Passes the staged files and their places in groups: all names at once would take as much memory as the manifest.
Status ForPlaces(const Manifest& manifest, const std::function<Status(const std::vector<Staging::Place>&)>& some) {
  constexpr size_t kAtOnce = 256;
  std::vector<Staging::Place> places;
  for (const ManifestFile& file : manifest.files) {
    if (!file.staged) continue;
    places.push_back({IsFolder(file) ? "" : NameOf(manifest, file), file.path});
    if (places.size() < kAtOnce) continue;
    MUSTER_RETURN_IF_ERROR(some(places));
    places.clear();
  }
  return some(places);
}

Status CheckPlaces(Staging& staging, const Manifest& manifest, const Staging::Meanwhile& meanwhile) {
  return ForPlaces(manifest, [&](const auto& places) { return staging.CheckPlaces(places, meanwhile); });
}

Status Place(Staging& staging, const Manifest& manifest, const Staging::Meanwhile& meanwhile) {
  return ForPlaces(manifest, [&](const auto& places) { return staging.Publish(places, meanwhile); });
}

// Checks that every file is in its place, and makes next.json the manifest.
Status Settle(Staging& staging, const std::string& target, Manifest manifest, const Staging::Meanwhile& meanwhile) {
  for (size_t at = 0; at < manifest.files.size(); ++at) {
    const ManifestFile file = manifest.files[at];
    if (file.unpacked) continue;
    MUSTER_RETURN_IF_ERROR(meanwhile());
    struct stat facts {};
    const std::string path = fmt::format("{}/{}", target, file.path);
    const bool there = lstat(path.c_str(), &facts) == 0;
    if (!there || (!IsFolder(file) && static_cast<uint64_t>(facts.st_size) != file.size)) {
      return absl::DataLossError(fmt::format("{} is not there as it was published", path));
    }
    manifest.files.SetModified(at, IsFolder(file) ? 0 : ModifiedOf(facts));
  }
  MUSTER_RETURN_IF_ERROR(Write(staging, kManifestName, manifest));
  staging.RemoveOwn(kNext);
  staging.Clear();
  return absl::OkStatus();
}

}  // namespace

Status Publish(Staging& staging, const std::string& target, Manifest manifest, const std::string& then,
               const Staging::Meanwhile& meanwhile) {
  MUSTER_RETURN_IF_ERROR(CheckPlaces(staging, manifest, meanwhile));
  for (size_t at = 0; at < manifest.files.size(); ++at) {
    MUSTER_RETURN_IF_ERROR(meanwhile());
    ManifestFile file = manifest.files[at];
    if (file.staged && !IsFolder(file) && !IsStaged(staging, NameOf(manifest, file), &file)) {
      return absl::AbortedError(
          fmt::format("{}: it has been removed from {}/{}/staging: start it again", file.path, target, kOwnFolder));
    }
    manifest.files.SetModified(at, file.modified_ns);
    if (file.staged || file.unpacked || IsInPlace(target, file)) continue;
    return absl::AbortedError(
        fmt::format("{}/{} has been changed while the rest was brought in: start it again, to "
                    "have it fetched anew",
                    target, file.path));
  }
  if (!then.empty()) MUSTER_RETURN_IF_ERROR(staging.WriteOwn(kThenName, then));
  MUSTER_RETURN_IF_ERROR(Write(staging, kNext, manifest));
  staging.RemoveOwn(kManifestName);  // it is wrong while files are being replaced
  MUSTER_RETURN_IF_ERROR(Place(staging, manifest, meanwhile));
  return Settle(staging, target, std::move(manifest), meanwhile);
}

bool IsHalfPublished(const std::string& target) { return HasMetadataFile(target, kNext); }

StatusOr<bool> FinishPublication(Staging& staging, const std::string& target, const Plan& plan,
                                 const std::function<void(const std::string&)>& say,
                                 const Staging::Meanwhile& meanwhile) {
  auto next = ReadMetadataManifest(target, kNext);
  if (absl::IsNotFound(next.status())) return false;
  const auto drop = [&](std::string_view why) {
    say(fmt::format("what an earlier start was publishing in {} cannot be finished ({}); beginning anew", target, why));
    staging.RemoveOwn(kNext);
    return true;
  };
  if (!next.ok()) return drop(Message(next.status()));
  for (size_t at = 0; at < next->files.size(); ++at) {
    const ManifestFile file = next->files[at];
    if (file.unpacked) continue;
    MUSTER_RETURN_IF_ERROR(meanwhile());
    ManifestFile found = file;
    const bool staged = IsFolder(file) || (IsStaged(staging, NameOf(*next, file), &found) &&
                                           (file.modified_ns == 0 || file.modified_ns == found.modified_ns));
    next->files.SetStaged(at, staged);
    if (!staged && !IsInPlace(target, file)) {
      return drop(fmt::format("{} is gone, or has changed", file.path));
    }
  }
  Status status = CheckPlaces(staging, *next, meanwhile);
  if (absl::IsFailedPrecondition(status)) {
    if (next->source != plan.source || next->selection != plan.selection) return drop(Message(status));
    return WithRemedy(status, "once it is out of the way, the next start publishes the rest");
  }
  MUSTER_RETURN_IF_ERROR(status);
  staging.RemoveOwn(kManifestName);
  MUSTER_RETURN_IF_ERROR(Place(staging, *next, meanwhile));
  status = Settle(staging, target, *std::move(next), meanwhile);
  if (absl::IsDataLoss(status)) return drop(Message(status));
  MUSTER_RETURN_IF_ERROR(status);
  return true;
}

}  // namespace muster::initializers
