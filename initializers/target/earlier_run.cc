// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/earlier_run.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "initializers/facts/entry_path.h"
#include "initializers/target/metadata_files.h"
#include "initializers/target/staging.h"

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
  auto manifest = ReadMetadataManifest(target, kManifestName);
  if (!manifest.ok()) {
    if (absl::IsNotFound(manifest.status())) return run;
    say(fmt::format("the manifest cannot be read ({}); what is there is fetched again", Message(manifest.status())));
    return run;
  }
  run.target_ = target;
  run.files_there_ = std::move(manifest->files);
  if (manifest->source != wanted.source || manifest->selection != wanted.selection) return run;
  run.there_ = true;
  run.version_ = std::move(manifest->version);
  run.to_keep_.resize(run.files_there_.size());
  run.kept_.resize(run.files_there_.size());
  std::set<std::string> broken;  // paths of archives with a changed member
  for (size_t at = 0; at < run.files_there_.size(); ++at) {
    const ManifestFile file = run.files_there_[at];
    MUSTER_RETURN_IF_ERROR(between());
    const bool hashed = !file.hash.empty() || file.path.ends_with('/');
    const bool as_written = (hashed || !wanted.hashed) && (file.unpacked || IsAsWritten(target, file));
    run.all_ = run.all_ && as_written;
    if (!file.archive.empty()) {
      run.members_[file.archive].push_back(at);
      if (!as_written) broken.insert(file.archive);
      continue;
    }
    ++run.files_;
    run.bytes_ += file.size;
    run.unverified_ += !file.verified && !(wanted.by_version && file.path.starts_with("refs/"));
    if (wanted.by_version && as_written && file.verified) run.paths_.emplace(file.version, file.path);
    run.to_keep_[at] = as_written;
  }
  // An archive with a changed member counts as missing.
  for (const std::string& archive : broken) {
    if (const auto at = run.files_there_.Find(archive)) run.to_keep_[*at] = false;
  }
  run.left_ = static_cast<size_t>(std::count(run.to_keep_.begin(), run.to_keep_.end(), true));
  return run;
}

std::vector<ManifestFile> EarlierRun::Keep(const Entry& entry) {
  const auto at = files_there_.Find(entry.path);
  if (!at || *at >= to_keep_.size() || !to_keep_[*at]) return {};
  ManifestFile there = files_there_[*at];
  const bool folder = entry.path.ends_with('/');
  const bool same = !entry.version.empty() && there.version == entry.version && there.size == entry.size;
  if (!folder && !same) return {};
  std::vector<ManifestFile> files;
  if (const auto members = members_.find(entry.path); members != members_.end()) {
    for (size_t member : members->second) {
      files.push_back(files_there_[member]);
      kept_[member] = true;
    }
  }
  files.push_back(std::move(there));
  kept_[*at] = true;
  to_keep_[*at] = false;
  --left_;
  return files;
}

// Moves the files one by one, so that memory never holds all of them twice.
void EarlierRun::TakeKept(ManifestFiles* files) {
  ManifestFiles others;
  for (size_t at = 0; !files_there_.empty(); ++at) {
    ManifestFiles& to = at < kept_.size() && kept_[at] ? *files : others;
    to.push_back(files_there_.PopFront());
  }
  files_there_ = std::move(others);
  to_keep_.clear();
  kept_.clear();
  members_.clear();
}

std::vector<std::string> EarlierRun::NotAmong(const ManifestFiles& files) const {
  std::vector<std::string> others;
  for (const ManifestFile& there : files_there_) {
    if (there.unpacked || there.path.ends_with('/')) continue;
    const auto found = files.Find(there.path);
    struct stat facts {};
    if (found && !files[*found].unpacked) continue;
    if (lstat(fmt::format("{}/{}", target_, there.path).c_str(), &facts) == 0) others.push_back(there.path);
  }
  return others;
}

std::optional<std::string> EarlierRun::PathOf(const std::string& version) const {
  auto found = paths_.find(version);
  return found == paths_.end() ? std::nullopt : std::optional(found->second);
}

std::string StayingText(const std::vector<std::string>& staying) {
  const bool one = staying.size() == 1;
  return fmt::format(
      "{} of an earlier run {} that this source does not have ({}{}); remove what should not be there, or name a "
      "folder of its own",
      Counted(static_cast<int64_t>(staying.size()), "file"), one ? "stays" : "stay", staying.front(),
      one ? "" : ", ...");
}

uint64_t StagedBytes(const std::string& target, const std::string& source, const Entry& entry) {
  const std::string name = Staging::NameOf(source, entry);
  struct stat facts {};
  if (lstat(fmt::format("{}/{}/staging/{}", target, kOwnFolder, name).c_str(), &facts) == 0) return entry.size;
  uint64_t bytes = 0;
  auto ranges = ReadMetadataFile(target, fmt::format("staging/{}{}", name, kRanges));
  if (!ranges.ok()) return 0;
  for (const StagedRange& staged : ReadRangeLines(*ranges, entry.size)) bytes += staged.range.length;
  return bytes;
}

}  // namespace muster::initializers
