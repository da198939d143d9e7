#include "initializers/publication.h"

#include <sys/stat.h>

#include "base/text.h"
#include "initializers/entry_path.h"
#include "initializers/own_files.h"

namespace muster::initializers {
namespace {

constexpr char kNext[] = "next.json";

// Everything is where it belongs: next.json becomes the manifest.
Status Settle(Staging& staging, const std::string& target, Manifest manifest) {
  for (ManifestFile& file : manifest.files) {
    if (file.unpacked) continue;
    struct stat facts {};
    const std::string path = fmt::format("{}/{}", target, file.path);
    const bool there = lstat(path.c_str(), &facts) == 0;
    const bool folder = file.path.ends_with('/');
    if (!there || (!folder && static_cast<uint64_t>(facts.st_size) != file.size)) {
      return absl::DataLossError(fmt::format("{} is not there as it was published", path));
    }
    file.modified_ns = folder ? 0 : ModifiedOf(facts);
  }
  MUSTER_RETURN_IF_ERROR(staging.WriteOwn(kManifestName, WriteManifest(manifest)));
  staging.RemoveOwn(kNext);
  staging.Clear();
  return absl::OkStatus();
}

}  // namespace

Status Publish(Staging& staging, const std::string& target, const Manifest& manifest,
               const std::vector<Staging::Place>& places) {
  MUSTER_RETURN_IF_ERROR(staging.WriteOwn(kNext, WriteManifest(manifest)));
  staging.RemoveOwn(kManifestName);  // what it says does not hold while files are replaced
  MUSTER_RETURN_IF_ERROR(staging.Publish(places, true));
  return Settle(staging, target, manifest);
}

bool IsHalfPublished(const std::string& target) { return ReadOwnFile(target, kNext).ok(); }

Status FinishPublication(Staging& staging, const std::string& target,
                         const std::function<void(const std::string&)>& say) {
  auto text = ReadOwnFile(target, kNext);
  if (!text.ok()) return absl::OkStatus();
  auto next = ReadManifest(*text);
  if (!next.ok()) {
    say(fmt::format("{}/{}/{} cannot be read ({}); beginning anew", target, kOwnFolder, kNext, Message(next.status())));
    return absl::OkStatus();
  }
  std::vector<Staging::Place> places;
  for (const ManifestFile& file : next->files) {
    if (file.path.ends_with('/')) places.push_back({"", file.path});
    if (file.unpacked) continue;
    Entry entry;
    entry.path = file.path;
    entry.size = file.size;
    entry.version = file.version;
    std::string name = Staging::NameOf(next->source, entry);
    if (staging.IsWhole(name)) places.push_back({std::move(name), file.path});
  }
  MUSTER_RETURN_IF_ERROR(staging.Publish(places, false));
  Status settled = Settle(staging, target, *std::move(next));
  if (!settled.ok()) say(fmt::format("{}; beginning anew", Message(settled)));
  return absl::OkStatus();
}

}  // namespace muster::initializers
