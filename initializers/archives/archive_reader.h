// A tar, tar.gz, tar.zst or zip, read member by member through libarchive, in fixed memory (decompress.h); all
// checksums that it has are checked. Memory for the windows of a zip's members is bounded as that of zstd's is.
//
// What it says is outside bytes. A member's path is one that CheckEntryPath takes, "./" before it dropped as every tar
// of "." has it; InvalidArgument names one that is not. So is a link's target, taken from the folder the link lies in
// (symbolic) or from the archive's top (hard). The content decides what kind of archive it is, not its name.
//
// Sources: libarchive 3.6, archive_read_data(3), archive_entry_paths(3); POSIX pax; APPNOTE 6.3 (zip).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptors.h"
#include "base/status.h"
#include "initializers/archives/decompress.h"

namespace muster::initializers {

// By its name's end, in any case: .tar .tar.gz .tgz .tar.zst .tzst .zip
bool IsArchiveName(std::string_view path);
// One of them that takes zstd's window of memory (decompress.h), if it is what its name says.
bool IsZstdName(std::string_view path);

struct Member {
  enum class Kind { kFile, kFolder, kLink };
  Kind kind = Kind::kFile;
  std::string path;    // a folder's without '/' at its end
  uint64_t size = 0;   // bytes of a file
  std::string target;  // the member that a link leads to
};

// One thread at a time.
class ArchiveReader {
 public:
  // `file` stays open and is read from its start; `name` is for people. `windows` outlives it.
  static StatusOr<std::unique_ptr<ArchiveReader>> Open(Descriptor file, std::string name, WindowLimits& windows);
  ~ArchiveReader();
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  // The next one that is wanted; nothing: there are no more. What is not wanted may have any name and be of any kind;
  // `wanted` is asked with the path as the archive has it, without "./" and a '/' at the end. InvalidArgument: a path
  // as above, a device or pipe, an encrypted member, one that does not say how long it is. DataLoss: the archive is
  // broken or cut short, or is none. ResourceExhausted: a window is too wide.
  StatusOr<std::optional<Member>> Next(const std::function<bool(std::string_view path)>& wanted);
  // The content of the member, in order, holes as zeros; 0 bytes: it has ended, and its checksum is right.
  StatusOr<size_t> Read(char* bytes, size_t length);

 private:
  class Impl;
  explicit ArchiveReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::initializers
