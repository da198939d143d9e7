// SPDX-License-Identifier: Apache-2.0
// Unpacks archives of a source (--extract) into the folder in which they would have been stored.
//
//   archive, whole and verified in the staging folder -> its members, each hashed and whole in the staging folder ->
//   published with all other files; the archive itself is not published
//
// A link becomes a second name (a hard link, else a copy) of the file of the archive that it leads to. If a member
// occurs twice, the last one counts, as in tar. Owners, modes and times are not kept. The volume must have space for
// the archive and for its content. After a kill the next start unpacks again what was not published.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "initializers/archives/decompress.h"
#include "initializers/target/staging.h"
#include "initializers/transfer/mover.h"

namespace muster::initializers {

// Limits against small archives that unpack to a full disk (archive bombs).
struct UnpackLimits {
  uint64_t free = uint64_t{1} << 30;  // bytes that any archive may unpack to; each member counts 1 KiB extra
  uint64_t ratio = 100;               // beyond `free`: bytes for each byte of the archive
  uint64_t members = 10'000'000;
};

struct UnpackOptions {
  std::string source;               // identity of what is brought in, for the names of staged files
  std::vector<std::string> ignore;  // patterns on a member's path below the source; matching members are left out
  UnpackLimits limits;
  std::shared_ptr<WindowLimits> windows = std::make_shared<WindowLimits>();  // shared by all parallel archives
};

struct Unpacked {
  std::vector<MovedFile> files;  // a folder's path ends with '/', and it has no staged name
  uint64_t bytes = 0;
};

// Blocking; any thread. An archive with a large window may wait for another. Errors name archive and member:
// ArchiveReader's; ResourceExhausted: a limit; NotFound: a link to no file of the archive; Cancelled: `stop` was set.
StatusOr<Unpacked> Unpack(Staging& staging, const MovedFile& archive, const UnpackOptions& options,
                          const std::atomic<bool>& stop);

}  // namespace muster::initializers
