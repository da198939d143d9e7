#include "initializers/earlier_run.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/text.h"
#include "initializers/entry_path.h"
#include "initializers/own_files.h"
#include "initializers/staging.h"

namespace muster::initializers {
namespace {

bool IsAsWritten(const std::string& target, const ManifestFile& file) {
  struct stat facts {};
  const std::string path = fmt::format("{}/{}", target, file.path);
  if (lstat(path.c_str(), &facts) != 0) return false;
  if (file.path.ends_with('/')) return S_ISDIR(facts.st_mode);
  return S_ISREG(facts.st_mode) && static_cast<uint64_t>(facts.st_size) == file.size &&
         ModifiedOf(facts) == file.modified_ns;
}

}  // namespace

StatusOr<EarlierRun> EarlierRun::Read(const std::string& target, const Wanted& wanted,
                                      const std::function<void(const std::string&)>& say,
                                      const std::function<Status()>& between) {
  EarlierRun run;
  auto text = ReadOwnFile(target, kManifestName);
  if (!text.ok()) return run;
  auto manifest = ReadManifest(*text);
  if (!manifest.ok()) {
    say(fmt::format("the manifest cannot be read ({}); what is there is fetched again", Message(manifest.status())));
    return run;
  }
  run.target_ = target;
  for (const ManifestFile& file : manifest->files) {
    if (!file.unpacked && !file.path.ends_with('/')) run.laid_.push_back(file.path);
  }
  if (manifest->source != wanted.source || manifest->selection != wanted.selection) return run;
  run.there_ = true;
  run.version_ = std::move(manifest->version);
  for (ManifestFile& file : manifest->files) {
    MUSTER_RETURN_IF_ERROR(between());
    const bool hashed = !file.hash.empty() || file.path.ends_with('/');
    const bool as_written = (hashed || !wanted.hashed) && (file.unpacked || IsAsWritten(target, file));
    run.all_ = run.all_ && as_written;
    const bool member = !file.archive.empty();
    Kept& kept = run.entries_[member ? file.archive : file.path];
    kept.as_written = kept.as_written && as_written;
    if (member) {
      kept.members.push_back(std::move(file));
      continue;
    }
    ++run.files_;
    run.bytes_ += file.size;
    run.unverified_ += !file.verified && !(wanted.by_version && file.path.starts_with("refs/"));
    if (wanted.by_version && as_written && file.verified) run.paths_.emplace(file.version, file.path);
    kept.file = std::move(file);
  }
  // What is not as it was written is as good as not there; an empty path: members without their archive.
  std::erase_if(run.entries_,
                [](const auto& entry) { return !entry.second.as_written || entry.second.file.path.empty(); });
  return run;
}

std::vector<ManifestFile> EarlierRun::Keep(const Entry& entry) {
  auto found = entries_.find(entry.path);
  if (found == entries_.end()) return {};
  Kept& kept = found->second;
  const bool folder = entry.path.ends_with('/');
  const bool same = !entry.version.empty() && kept.file.version == entry.version && kept.file.size == entry.size;
  if (!folder && !same) return {};
  std::vector<ManifestFile> files = std::move(kept.members);
  files.push_back(std::move(kept.file));
  entries_.erase(found);
  return files;
}

std::vector<std::string> EarlierRun::NotAmong(const std::vector<ManifestFile>& files) const {
  std::vector<std::string> others;
  auto by_path = [](const ManifestFile& file, const std::string& path) { return file.path < path; };
  for (const std::string& path : laid_) {
    const auto found = std::lower_bound(files.begin(), files.end(), path, by_path);
    struct stat facts {};
    if (found != files.end() && found->path == path && !found->unpacked) continue;
    if (lstat(fmt::format("{}/{}", target_, path).c_str(), &facts) == 0) others.push_back(path);
  }
  return others;
}

std::optional<std::string> EarlierRun::PathOf(const std::string& version) const {
  auto found = paths_.find(version);
  return found == paths_.end() ? std::nullopt : std::optional(found->second);
}

uint64_t StagedBytes(const std::string& target, const std::string& source, const Entry& entry) {
  const std::string name = Staging::NameOf(source, entry);
  struct stat facts {};
  if (lstat(fmt::format("{}/{}/staging/{}", target, kOwnFolder, name).c_str(), &facts) == 0) return entry.size;
  uint64_t bytes = 0;
  auto ranges = ReadOwnFile(target, fmt::format("staging/{}{}", name, kRanges));
  if (!ranges.ok()) return 0;
  for (const StagedRange& staged : ReadRangeLines(*ranges, entry.size)) bytes += staged.range.length;
  return bytes;
}

}  // namespace muster::initializers
