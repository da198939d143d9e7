// SPDX-License-Identifier: Apache-2.0
// Reads a tar, tar.gz, tar.zst or zip member by member through libarchive, in bounded memory (decompress.h). All
// checksums in it are checked. The memory for the windows of zip members is bounded like that of zstd.
//
// An archive is untrusted input. A member's path must pass CheckEntryPath, after a leading "./" is dropped (a tar of
// "." has it); else it is InvalidArgument. So must a link's target, relative to the folder of the link (symbolic) or to
// the top of the archive (hard). The content decides the kind of archive, not the name.
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

// True if the name ends, in any case, with .tar .tar.gz .tgz .tar.zst .tzst .zip.
bool IsArchiveName(std::string_view path);
// True if, by its name, the archive needs memory for zstd's window (decompress.h).
bool IsZstdName(std::string_view path);

struct Member {
  enum class Kind { kFile, kFolder, kLink };
  Kind kind = Kind::kFile;
  std::string path;    // of a folder: without a trailing '/'
  uint64_t size = 0;   // bytes of a file
  std::string target;  // path of the member that a link leads to
};

// One thread at a time.
class ArchiveReader {
 public:
  // `file` is read from its start; `name` is for messages. `windows` outlives the reader.
  static StatusOr<std::unique_ptr<ArchiveReader>> Open(Descriptor file, std::string name, WindowLimits& windows);
  ~ArchiveReader();
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  // Returns the next wanted member; nullopt: there are no more. An unwanted member may have any name and be of any
  // kind. `wanted` gets the path as it is in the archive, without a leading "./" and a trailing '/'. InvalidArgument: a
  // bad path (see above), a device or pipe, an encrypted member, a member without a length. DataLoss: the archive is
  // damaged or cut short, or is not an archive. ResourceExhausted: a window is too large.
  StatusOr<std::optional<Member>> Next(const std::function<bool(std::string_view path)>& wanted);
  // Reads the member's content in order, holes as zeros. 0 bytes: the member has ended, and its checksum is right.
  StatusOr<size_t> Read(char* bytes, size_t length);

 private:
  class Impl;
  explicit ArchiveReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::initializers
