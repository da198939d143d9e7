// What an earlier run has left in a target, by its manifest: what of it still counts, and what can be kept.
//
// Reads files' facts, not their bytes: a file whose size and time of change are those of the manifest is taken to be as
// it was written (`verify` reads it). Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "initializers/manifest.h"
#include "initializers/provider.h"

namespace muster::initializers {

class EarlierRun {
 public:
  struct Wanted {
    std::string source, selection;  // as in the manifest; one of another source or selection does not count
    bool hashed = false;            // a file whose hash was not computed does not count
    bool by_version = false;        // PathOf will be asked
  };
  EarlierRun() = default;  // there was none
  // One that cannot be read is said, and does not count. `between` is asked before each file, which a slow disk may
  // keep for long; its error ends it.
  static StatusOr<EarlierRun> Read(const std::string& target, const Wanted& wanted,
                                   const std::function<void(const std::string&)>& say,
                                   const std::function<Status()>& between);

  bool whole() const { return there_ && all_; }  // everything is as it was written
  const std::string& version() const { return version_; }
  uint64_t files() const { return files_; }  // of the source: an archive counts, not what came out of it
  uint64_t bytes() const { return bytes_; }
  uint64_t unverified() const { return unverified_; }  // of the files, whose store had published no hash

  // Of a folder that is there, or a file in this very version: what the manifest says of it and of what was unpacked
  // out of it. Empty: it has to be brought in. Once for each entry. They stay here until TakeKept.
  std::vector<ManifestFile> Keep(const Entry& entry);
  // All that was kept goes there.
  void TakeKept(ManifestFiles* files);
  bool all_kept() const { return left_ == 0; }  // nothing is left that the source does not have any more

  // Files of the manifest, whatever its source was, that are still there and are not among `files`, which are sorted by
  // their paths. After TakeKept, of those that were not.
  std::vector<std::string> NotAmong(const ManifestFiles& files) const;

  // Where a verified file of that version is, below the target.
  std::optional<std::string> PathOf(const std::string& version) const;

 private:
  ManifestFiles files_there_;                           // of the manifest, whatever its source was; by path
  std::vector<bool> to_keep_;                           // of them: as it was written, no member, not kept yet
  std::vector<bool> kept_;                              // of them
  std::map<std::string, std::vector<size_t>> members_;  // of an archive
  size_t left_ = 0;                                     // of to_keep_
  std::map<std::string, std::string> paths_;
  std::string version_;
  std::string target_;
  uint64_t files_ = 0, bytes_ = 0, unverified_ = 0;
  bool there_ = false, all_ = true;
};

// A sentence about those that NotAmong names, of which there are some.
std::string StayingText(const std::vector<std::string>& staying);

// Bytes of a file that an earlier run has left in the staging folder, by its journal. Writes nothing.
uint64_t StagedBytes(const std::string& target, const std::string& source, const Entry& entry);

}  // namespace muster::initializers
