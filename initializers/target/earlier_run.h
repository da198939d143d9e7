// SPDX-License-Identifier: Apache-2.0
// What an earlier run has left in a target, according to its manifest: which files still count, and which can be kept.
//
// Reads the metadata of files, not their bytes: a file whose size and time of change equal those in the manifest counts
// as unchanged (`verify` reads the bytes). Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "initializers/facts/provider.h"
#include "initializers/target/manifest.h"

namespace muster::initializers {

class EarlierRun {
 public:
  struct Wanted {
    std::string source, selection;  // as in the manifest; a manifest with another source or selection does not count
    bool hashed = false;            // true: a file without a computed hash does not count
    bool by_version = false;        // true: PathOf will be called
  };
  EarlierRun() = default;  // there was no earlier run
  // A manifest that is there and cannot be read, or is damaged, is reported by `say` and ignored. Calls `between`
  // before each file, since a slow disk may take long; an error of `between` ends Read with that error.
  static StatusOr<EarlierRun> Read(const std::string& target, const Wanted& wanted,
                                   const std::function<void(const std::string&)>& say,
                                   const std::function<Status()>& between);

  bool whole() const { return there_ && all_; }  // everything is as it was written
  const std::string& version() const { return version_; }
  uint64_t files() const { return files_; }  // of the source: counts the archive, not its unpacked files
  uint64_t bytes() const { return bytes_; }
  uint64_t unverified() const { return unverified_; }  // files whose hash the store had not published

  // The records of `entry`, and of the files unpacked from it, if the folder or the file in this very version exists;
  // empty: it has to be fetched. Call it once for each entry. The records stay here until TakeKept.
  std::vector<ManifestFile> Keep(const Entry& entry);
  // Moves all kept records to `files`.
  void TakeKept(ManifestFiles* files);
  bool all_kept() const { return left_ == 0; }  // the source has changed or removed none of the files

  // Files of the manifest (of any source) that still exist and are not in `files`, which must be sorted by path. After
  // TakeKept: only of the files that were not kept.
  std::vector<std::string> NotAmong(const ManifestFiles& files) const;

  // The path below the target of a verified file of that version.
  std::optional<std::string> PathOf(const std::string& version) const;

 private:
  ManifestFiles files_there_;                           // of the manifest, of any source; by path
  std::vector<bool> to_keep_;                           // for each: unchanged, no member of an archive, not kept yet
  std::vector<bool> kept_;                              // for each of files_there_
  std::map<std::string, std::vector<size_t>> members_;  // archive -> indexes of its members
  size_t left_ = 0;                                     // how many to_keep_ are true
  std::map<std::string, std::string> paths_;
  std::string version_;
  std::string target_;
  uint64_t files_ = 0, bytes_ = 0, unverified_ = 0;
  bool there_ = false, all_ = true;
};

// A sentence about the files that NotAmong returned; `staying` is not empty.
std::string StayingText(const std::vector<std::string>& staying);

// How many bytes of `entry` an earlier run has left in the staging folder, by its journal. Writes nothing.
uint64_t StagedBytes(const std::string& target, const std::string& source, const Entry& entry);

}  // namespace muster::initializers
