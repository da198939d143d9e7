#include "initializers/publication.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/text.h"
#include "initializers/after_publish.h"
#include "initializers/entry_path.h"
#include "initializers/own_files.h"

namespace muster::initializers {
namespace {

constexpr char kNext[] = "next.json";

bool IsFolder(const ManifestFile& file) { return file.path.ends_with('/'); }

// It is where it belongs; by its time of change too, where that is known.
bool IsInPlace(const std::string& target, const ManifestFile& file) {
  struct stat facts {};
  if (lstat(fmt::format("{}/{}", target, file.path).c_str(), &facts) != 0) return false;
  if (IsFolder(file)) return S_ISDIR(facts.st_mode);
  return S_ISREG(facts.st_mode) && static_cast<uint64_t>(facts.st_size) == file.size &&
         (file.modified_ns == 0 || file.modified_ns == ModifiedOf(facts));
}

// Whole in the staging folder; takes down when it was changed last, which a rename leaves as it is.
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

// Everything is where it belongs: next.json becomes the manifest.
Status Settle(Staging& staging, const std::string& target, Manifest manifest, const Staging::Meanwhile& meanwhile) {
  for (ManifestFile& file : manifest.files) {
    if (file.unpacked) continue;
    MUSTER_RETURN_IF_ERROR(meanwhile());
    struct stat facts {};
    const std::string path = fmt::format("{}/{}", target, file.path);
    const bool there = lstat(path.c_str(), &facts) == 0;
    if (!there || (!IsFolder(file) && static_cast<uint64_t>(facts.st_size) != file.size)) {
      return absl::DataLossError(fmt::format("{} is not there as it was published", path));
    }
    file.modified_ns = IsFolder(file) ? 0 : ModifiedOf(facts);
  }
  MUSTER_RETURN_IF_ERROR(staging.WriteOwn(kManifestName, WriteManifest(manifest)));
  staging.RemoveOwn(kNext);
  staging.Clear();
  return absl::OkStatus();
}

}  // namespace

Status Publish(Staging& staging, const std::string& target, Manifest manifest,
               const std::vector<Staging::Place>& places, const std::string& then,
               const Staging::Meanwhile& meanwhile) {
  MUSTER_RETURN_IF_ERROR(staging.CheckPlaces(places, meanwhile));
  std::vector<bool> staged(manifest.files.size());
  for (const Staging::Place& place : places) {
    MUSTER_RETURN_IF_ERROR(meanwhile());
    auto file = std::lower_bound(manifest.files.begin(), manifest.files.end(), place.path,
                                 [](const ManifestFile& a, const std::string& path) { return a.path < path; });
    if (file == manifest.files.end() || file->path != place.path) {
      return absl::InternalError(fmt::format("{} is staged, and not in the manifest", place.path));
    }
    if (!place.name.empty() && !IsStaged(staging, place.name, &*file)) {
      return absl::AbortedError(fmt::format("{}: somebody has removed it from {}/{}/staging: start it again",
                                            place.path, target, kOwnFolder));
    }
    staged[static_cast<size_t>(file - manifest.files.begin())] = true;
  }
  for (size_t i = 0; i < manifest.files.size(); ++i) {
    const ManifestFile& file = manifest.files[i];
    MUSTER_RETURN_IF_ERROR(meanwhile());
    if (staged[i] || file.unpacked || IsInPlace(target, file)) continue;
    return absl::AbortedError(
        fmt::format("{}/{} has been changed while the rest was brought in: start it again, to "
                    "have it fetched anew",
                    target, file.path));
  }
  if (!then.empty()) MUSTER_RETURN_IF_ERROR(staging.WriteOwn(kThenName, then));
  MUSTER_RETURN_IF_ERROR(staging.WriteOwn(kNext, WriteManifest(manifest)));
  staging.RemoveOwn(kManifestName);  // what it says does not hold while files are replaced
  MUSTER_RETURN_IF_ERROR(staging.Publish(places, meanwhile));
  return Settle(staging, target, std::move(manifest), meanwhile);
}

bool IsHalfPublished(const std::string& target) { return ReadOwnFile(target, kNext).ok(); }

StatusOr<bool> FinishPublication(Staging& staging, const std::string& target, const Plan& plan,
                                 const std::function<void(const std::string&)>& say,
                                 const Staging::Meanwhile& meanwhile) {
  auto text = ReadOwnFile(target, kNext);
  if (!text.ok()) return false;
  const auto drop = [&](std::string_view why) {
    say(fmt::format("what an earlier start was publishing in {} cannot be finished ({}); beginning anew", target, why));
    staging.RemoveOwn(kNext);
    return true;
  };
  auto next = ReadManifest(*text);
  if (!next.ok()) return drop(Message(next.status()));
  std::vector<Staging::Place> places;
  for (ManifestFile& file : next->files) {
    if (file.unpacked) continue;
    MUSTER_RETURN_IF_ERROR(meanwhile());
    std::string name = IsFolder(file) ? "" : NameOf(*next, file);
    ManifestFile staged = file;
    if (IsFolder(file) ||
        (IsStaged(staging, name, &staged) && (file.modified_ns == 0 || file.modified_ns == staged.modified_ns))) {
      places.push_back({std::move(name), file.path});
    } else if (!IsInPlace(target, file)) {
      return drop(fmt::format("{} is gone, or another", file.path));
    }
  }
  Status status = staging.CheckPlaces(places, meanwhile);
  if (absl::IsFailedPrecondition(status)) {
    if (next->source != plan.source || next->selection != plan.selection) return drop(Message(status));
    return WithRemedy(status, "once it is out of the way, the next start publishes the rest");
  }
  MUSTER_RETURN_IF_ERROR(status);
  staging.RemoveOwn(kManifestName);
  MUSTER_RETURN_IF_ERROR(staging.Publish(places, meanwhile));
  status = Settle(staging, target, *std::move(next), meanwhile);
  if (absl::IsDataLoss(status)) return drop(Message(status));
  MUSTER_RETURN_IF_ERROR(status);
  return true;
}

}  // namespace muster::initializers
