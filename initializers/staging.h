// Files on their way: below TARGET/.muster/staging until all are whole and verified, then renamed to where they belong.
//
// The folder is the journal; a kill at any byte leaves it such that the next start understands it:
//   NAME           whole and verified
//   .hashes        a line for each NAME, from before it takes that name: the hash of its bytes
//   NAME.part      being written, of its full length from the beginning
//   NAME.ranges    what of NAME.part is there: a line for each range, with the hash of its bytes and of the line itself
// NAME comes from the source, the path, the size and the version, so that a file of another version is never gone on
// with. A range, and what is whole since an earlier start, counts after its bytes have been read back and hashed
// (recheck.h): a machine that lost power may have kept the line or the name and not the bytes.
//
// What earlier starts left and this one does not want is a leftover (leftovers.h): whoever asks for a NAME wants it.
//
// No step follows a symbolic link below the target, whoever laid it. Staging is not thread-safe but for what says so; a
// StagedFile's Write and Read may be called from any thread at once, for different ranges.
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
#include "initializers/leftovers.h"
#include "initializers/provider.h"
#include "initializers/staging_lines.h"

namespace muster::initializers {

class Staging;

class StagedFile {
 public:
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  // Where writes go past the page cache both begin at a multiple of kBlockAlignment, and so does whatever follows.
  Status Write(uint64_t offset, std::string_view bytes);
  StatusOr<size_t> Read(uint64_t offset, char* bytes, size_t length);
  // Writes go past the page cache, and those of several threads side by side; else the kernel lets one in at a time.
  bool direct() const { return direct_; }
  // Room for all of it at once: a disk that is too small says so before anything is fetched. In memory it only gets its
  // length: taking the pages beforehand, out of every cache, costs a tenth of the time that filling them does.
  Status Reserve();
  // All of `source` as a reflink; false: the file systems do not share blocks.
  bool CloneFrom(int source);
  // Within the kernel, or by the file server itself; may be fewer bytes, 0 at the source's end. Unimplemented: not
  // between these two.
  StatusOr<size_t> CopyFrom(int source, uint64_t offset, size_t length);
  Status Note(const StagedRange& staged);                    // its bytes are written
  std::vector<StagedRange> noted() const { return noted_; }  // by an earlier start; to be read back
  // Whole and verified: takes its name in the staging folder. `sync`: its bytes are on the disk when this returns.
  Status Finish(const StagedHash& hash, bool sync);
  // Nothing of what is there counts any more.
  Status Forget();
  // The same, and it takes no room any more: another version is wanted. Nothing is written afterwards.
  void Discard();

 private:
  friend class Staging;
  StagedFile(const Staging& staging, std::string name, uint64_t size);

  const int folder_, hashes_;  // Staging's
  const std::string target_;
  const std::string name_;
  const uint64_t size_;
  Descriptor file_;
  Descriptor ranges_;
  const bool in_memory_;
  bool direct_ = false;
  std::vector<StagedRange> noted_;
};

// Opens or makes TARGET and the folder in it that is ours (kOwnFolder). FailedPrecondition: the target is a file, a
// link stands in the way, the file system is read-only or full; says which and what to do.
StatusOr<Descriptor> OpenOwnFolder(const std::string& target);

class Staging {
 public:
  // Errors as OpenOwnFolder's.
  static StatusOr<std::unique_ptr<Staging>> Open(const std::string& target);

  // NAME of an entry.
  static std::string NameOf(std::string_view source, const Entry& entry);

  // What fits, and an unprivileged user may take.
  StatusOr<DiskRoom> room() const;

  bool IsWhole(const std::string& name);  // any thread
  // Bytes on the disk that an earlier start has taken for NAME, whole or not: they are not needed once more.
  uint64_t Held(const std::string& name);
  // What their removal gives; and removes them.
  DiskRoom leftovers() const { return earlier_.room(); }
  DiskRoom DropLeftovers() { return earlier_.Drop(); }
  // `direct`: past the page cache, where the file system takes it. Room is reserved (Reserve).
  StatusOr<std::unique_ptr<StagedFile>> OpenFile(const std::string& name, uint64_t size, bool direct);
  // The same through the page cache, and no room is reserved yet.
  StatusOr<std::unique_ptr<StagedFile>> OpenUnreserved(const std::string& name, uint64_t size);
  // Whether a reflink of the file `path` can be laid here: tried, once for each file system that files come from.
  bool CanClone(const std::string& path);
  // A small file at once, whole. Any thread.
  Status WriteWhole(const std::string& name, std::string_view bytes, const StagedHash& hash, bool sync);
  // A file of the same file system, whole at once. FailedPrecondition: it is on another one, or no link can be made.
  Status LinkWhole(const std::string& name, const std::string& path);
  // Of what is whole: by everybody who may read it. Unimplemented: the file system keeps no modes. Any thread.
  Status MakeExecutable(const std::string& name);
  // The same bytes once more: `name` and the whole `other` are one file; two, where the file system has no hard links.
  Status LinkStaged(const std::string& name, const std::string& other);
  // The same on Staging's own thread: IsWhole says so from then on.
  Status AdoptWhole(const std::string& name, const std::string& path);
  // It was adopted by this process: the file it is linked to counts as it was written (earlier_run.h).
  bool IsAdopted(const std::string& name) const { return adopted_.contains(name); }
  // Its facts on the disk.
  StatusOr<struct stat> FactsOf(const std::string& name) const;
  // For reading what is whole.
  StatusOr<Descriptor> OpenWhole(const std::string& name) const;
  // What an earlier start noted of what is whole; nullptr: nothing.
  const StagedHash* HashOf(const std::string& name) const;
  // All of NAME, whole or not, is removed. Any thread.
  void Drop(const std::string& name) { earlier_.Remove(name); }

  // Called between the steps of what may take minutes on a slow volume; an error ends it there.
  using Meanwhile = std::function<Status()>;

  struct Place {
    std::string name;  // in the staging folder; empty: a folder to be made
    std::string path;  // below the target
  };
  // FailedPrecondition: something stands where `path` has to be (a folder's ends with '/'), or a link or a file where a
  // folder above it has to be; says which and what to do. What it finds of folders is remembered for the next call.
  Status CheckPath(const std::string& path);
  // The same of all of them, as it is now.
  Status CheckPlaces(const std::vector<Place>& places, const Meanwhile& meanwhile);
  // What is staged is on the disk, bytes and names. Any thread.
  Status Sync();
  // Renames all into place. Stops at the first that cannot be.
  Status Publish(const std::vector<Place>& places, const Meanwhile& meanwhile);
  // A file of ours below .muster: written beside, synced, renamed.
  Status WriteOwn(const std::string& name, std::string_view text);
  // `write` gives it in pieces.
  Status WriteOwn(const std::string& name, const std::function<Status(const WritePiece&)>& write);
  void RemoveOwn(const std::string& name);
  // What was staged and is not wanted any more.
  void Clear();

 private:
  friend class StagedFile;
  explicit Staging(std::string target) : target_(std::move(target)) {}
  StatusOr<std::unique_ptr<StagedFile>> OpenPart(const std::string& name, uint64_t size, bool direct);
  Status OpenHashes();
  Status CopyStaged(const std::string& name, const std::string& other);
  Status SyncEach();
  StatusOr<int> FolderOf(const std::string& path);  // opens or makes the folder that `path` lies in; kept open

  const std::string target_;
  Descriptor root_, own_, folder_, hashes_;
  bool in_memory_ = false;
  Leftovers earlier_;
  std::unordered_set<std::string> adopted_;
  std::unordered_map<dev_t, bool> clones_;               // CanClone's
  std::unordered_map<std::string, StagedHash> hash_of_;  // of what an earlier start left whole
  std::string last_folder_path_, checked_path_;
  Descriptor last_folder_, checked_;  // not open: none yet; there is no such folder
};

}  // namespace muster::initializers
