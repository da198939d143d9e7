// SPDX-License-Identifier: Apache-2.0
// Files in TARGET/.muster/staging: there until all are whole and verified, then renamed to their places.
//
// The folder is also the journal. After a kill at any byte the next start can interpret it:
//   NAME           whole and verified
//   .hashes        a line for each NAME, written before the file takes that name: the hash of its bytes
//   NAME.part      being written; it has its full length from the beginning
//   NAME.ranges    which ranges of NAME.part are written: a line for each, with the hash of its bytes and of the line
// NAME is derived from source, path, size and version, so that a file is never continued with the bytes of another
// version. A range or a whole file of an earlier start counts only after its bytes have been read back and hashed
// (recheck.h): a machine that lost power may have kept the line or the name and lost the bytes.
//
// Files of earlier starts that this one does not need are leftovers (leftovers.h). Asking for a NAME claims it.
//
// No step follows a symbolic link below the target. Staging is not thread-safe, except for what says "any thread";
// Write and Read of a StagedFile may be called from several threads at once, for different ranges.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/descriptors.h"
#include "base/replace_file.h"
#include "base/status.h"
#include "initializers/facts/provider.h"
#include "initializers/target/leftovers.h"
#include "initializers/target/staging_lines.h"

namespace muster::initializers {

class Staging;

class StagedFile {
 public:
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  // With direct(): offsets and addresses are multiples of kBlockAlignment, and Read may fill `bytes` up to the next.
  Status Write(uint64_t offset, std::string_view bytes);
  StatusOr<size_t> Read(uint64_t offset, char* bytes, size_t length);
  // True if writes bypass the page cache, and those of several threads run in parallel; else one at a time.
  bool direct() const { return direct_; }
  // Reserves space for the whole file, so that a full disk shows before anything is fetched. On a file system in memory
  // only sets the length: allocating pages in advance, out of the CPU's cache, costs a tenth of the time to fill them.
  Status Reserve();
  // Clones all of `source` as a reflink. False: the file systems cannot share blocks.
  bool CloneFrom(int source);
  // Copies in the kernel or on the file server, maybe fewer bytes; 0: end of `source`. Unimplemented: impossible here.
  StatusOr<size_t> CopyFrom(int source, uint64_t offset, size_t length);
  Status Note(const StagedRange& staged);                    // journals a range; its bytes are written already
  std::vector<StagedRange> noted() const { return noted_; }  // noted by an earlier start; read them back before use
  // Gives the whole, verified file its name in the staging folder. `sync`: returns when its bytes are on the disk.
  Status Finish(const StagedHash& hash, bool sync);
  // Invalidates all bytes and all notes.
  Status Forget();
  // As Forget, and frees the disk space: another version is wanted. No write may follow.
  void Discard();

 private:
  friend class Staging;
  StagedFile(const Staging& staging, std::string name, uint64_t size);

  const int folder_, hashes_;  // of Staging
  const std::string target_;
  const std::string name_;
  const uint64_t size_;
  Descriptor file_;
  Descriptor ranges_;
  const bool in_memory_;
  bool direct_ = false;
  std::vector<StagedRange> noted_;
};

// Opens TARGET and kOwnFolder in it; creates them if they are missing. FailedPrecondition: the target is a file, a link
// stands in the way, the file system is read-only or full; says which, and the remedy.
StatusOr<Descriptor> OpenOwnFolder(const std::string& target);

class Staging {
 public:
  // Same errors as OpenOwnFolder.
  static StatusOr<std::unique_ptr<Staging>> Open(const std::string& target);

  // The NAME of an entry.
  static std::string NameOf(std::string_view source, const Entry& entry);

  // The free space that an unprivileged user may take.
  StatusOr<DiskRoom> room() const;

  bool IsWhole(const std::string& name);  // any thread
  // Bytes of the disk that NAME takes already, whole or not, from an earlier start: this run does not need them again.
  uint64_t Held(const std::string& name);
  // The space that the removal of leftovers would free; and the removal.
  DiskRoom leftovers() const { return earlier_.room(); }
  DiskRoom DropLeftovers() { return earlier_.Drop(); }
  // Opens NAME.part and reserves its space (Reserve). `direct`: bypass the page cache if the file system supports it.
  StatusOr<std::unique_ptr<StagedFile>> OpenFile(const std::string& name, uint64_t size, bool direct);
  // As OpenFile, through the page cache and without reserving space.
  StatusOr<std::unique_ptr<StagedFile>> OpenUnreserved(const std::string& name, uint64_t size);
  // True if the file `path` can be reflinked into this folder. Tries it once for each source file system.
  bool CanClone(const std::string& path);
  // Writes a small file, whole, in one step. Any thread.
  Status WriteWhole(const std::string& name, std::string_view bytes, const StagedHash& hash, bool sync);
  // Makes NAME a hard link to the file `path`. FailedPrecondition: another file system, or no link can be made.
  Status LinkWhole(const std::string& name, const std::string& path);
  // Makes a whole file executable for all who may read it. Unimplemented: the file system keeps no modes. Any thread.
  Status MakeExecutable(const std::string& name);
  // Makes `name` a second name of the whole `other`; a copy if the file system has no hard links.
  Status LinkStaged(const std::string& name, const std::string& other);
  // As LinkWhole, and IsWhole(name) is true from then on. Only on the thread that owns Staging.
  Status AdoptWhole(const std::string& name, const std::string& path);
  // True if AdoptWhole linked it in this process: the file that it is linked to counts as unchanged (earlier_run.h).
  bool IsAdopted(const std::string& name) const { return adopted_.contains(name); }
  // The stat of a whole file.
  StatusOr<struct stat> FactsOf(const std::string& name) const;
  // Opens a whole file for reading.
  StatusOr<Descriptor> OpenWhole(const std::string& name) const;
  // What an earlier start noted about a whole file; nullptr: nothing.
  const StagedHash* HashOf(const std::string& name) const;
  // Removes all files of NAME, whole or not. Any thread.
  void Drop(const std::string& name) { earlier_.Remove(name); }

  // Called between steps of work that may take minutes on a slow volume; an error ends the work with that error.
  using Meanwhile = std::function<Status()>;

  struct Place {
    std::string name;  // in the staging folder; empty: make a folder
    std::string path;  // below the target
  };
  // FailedPrecondition: a folder stands where the file `path` has to be, or a link or a file where a folder has to be
  // (`path` itself if it ends with '/'); names it and the remedy. Keeps what it finds of folders for the next call.
  Status CheckPath(const std::string& path);
  // Checks all places again, without the kept results.
  Status CheckPlaces(const std::vector<Place>& places, const Meanwhile& meanwhile);
  // Syncs the bytes and names of all staged files to the disk. Any thread.
  Status Sync();
  // Renames all files to their places. Stops at the first error.
  Status Publish(const std::vector<Place>& places, const Meanwhile& meanwhile);
  // Writes a file of Muster's own below .muster: writes a temporary file, syncs it, renames it.
  Status WriteOwn(const std::string& name, std::string_view text);
  // As above; `write` passes the text in pieces.
  Status WriteOwn(const std::string& name, const std::function<Status(const WritePiece&)>& write);
  void RemoveOwn(const std::string& name);
  // Removes all staged files.
  void Clear();

 private:
  friend class StagedFile;
  explicit Staging(std::string target) : target_(std::move(target)) {}
  StatusOr<std::unique_ptr<StagedFile>> OpenPart(const std::string& name, uint64_t size, bool direct);
  Status OpenHashes();
  Status CopyStaged(const std::string& name, const std::string& other);
  Status SyncEach();
  StatusOr<int> FolderOf(const std::string& path);  // opens or makes the folder that contains `path`; it stays open

  const std::string target_;
  Descriptor root_, own_, folder_, hashes_;
  bool in_memory_ = false;
  Leftovers earlier_;
  std::unordered_set<std::string> adopted_;
  std::unordered_map<dev_t, bool> clones_;               // results of CanClone
  std::unordered_map<std::string, StagedHash> hash_of_;  // of files that an earlier start left whole
  std::string last_folder_path_, checked_path_;
  Descriptor last_folder_, checked_;  // last_folder_ not open: none yet; checked_ not open: no such folder
};

}  // namespace muster::initializers
