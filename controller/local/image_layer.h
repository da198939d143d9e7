// Tars of an image, unpacked as container runtimes do it. Blocking; one thread at a time. Outside bytes.
//
// No member lands outside of the root: its path has no "..", and symbolic links on the way are followed inside of the
// root. Owners, setuid bits and extended attributes are not kept; devices, pipes and sockets are left out. The owner
// may read and write all of it. Sources: OCI image-spec 1.1, layer.md; libarchive 3.6.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::controller {

struct LayerLimits {
  uint64_t members = 2'000'000;         // of one tar
  uint64_t free = uint64_t{256} << 20;  // bytes that stay free on the file system
};

struct LayerOptions {
  bool whiteouts = false;  // ".wh.NAME" takes NAME out of what lies below, ".wh..wh..opq" all of its folder
  LayerLimits limits;
};

// The tar, also of gzip, zstd, xz or bzip2, at `file`, which is read from where it stands, into the folder `root`: both
// open. `name`: for messages. DataLoss: it is broken or cut short. InvalidArgument: a member's path leads out of the
// root, or its hard link to nothing. ResourceExhausted: a limit.
Status UnpackTar(int file, const std::string& name, int root, const LayerOptions& options, uint64_t* left_out);

// The file `wanted` of the tar at `file`, without what is not needed to find it. NotFound: it is not there.
// ResourceExhausted: it has more than `most` bytes. DataLoss as above.
StatusOr<std::string> FileInTar(int file, const std::string& name, std::string_view wanted, size_t most);

}  // namespace muster::controller
