// Archives among what is brought in (--extract), unpacked into the folder that they would have landed in.
//
//   archive, whole and verified in the staging folder -> its members, each hashed and whole in the staging folder ->
//   published with everything else; the archive itself is not
//
// A link becomes the file of the archive that it leads to. Of a member that is there twice the last one counts, as tar
// has it. Owners, modes and times are not kept. The volume has to have room for the archive and for what is in it. A
// start after a kill unpacks again what was not published.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "initializers/archives/decompress.h"
#include "initializers/mover.h"
#include "initializers/staging.h"

namespace muster::initializers {

// Against archives that are small and unpack to a disk's worth (bombs).
struct UnpackLimits {
  uint64_t free = uint64_t{1} << 30;  // bytes that any archive may unpack to; each member counts as 1 KiB more
  uint64_t ratio = 100;               // beyond that: bytes for each byte of the archive
  uint64_t members = 10'000'000;
};

struct UnpackOptions {
  std::string source;               // identity of what is brought in, for the names of staged files
  std::vector<std::string> ignore;  // patterns on a member's path below the source; matches are left out
  UnpackLimits limits;
  std::shared_ptr<WindowLimits> windows = std::make_shared<WindowLimits>();  // of all that are unpacked side by side
};

struct Unpacked {
  std::vector<MovedFile> files;  // a folder's path ends with '/', and it has no staged name
  uint64_t bytes = 0;
};

// Blocking; any thread. Errors name archive and member: ArchiveReader's; ResourceExhausted: a limit; NotFound: a link's
// target is not in the archive; Cancelled: `stop` said so. One with a wide window may wait for another.
StatusOr<Unpacked> Unpack(Staging& staging, const MovedFile& archive, const UnpackOptions& options,
                          const std::atomic<bool>& stop);

}  // namespace muster::initializers
