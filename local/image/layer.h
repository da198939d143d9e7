// SPDX-License-Identifier: Apache-2.0
// Unpacks tars of an image as container runtimes do. Blocking; one thread at a time. Outside bytes.
//
// No member is written outside of the root: a path with ".." is refused, and symbolic links on the way are followed
// inside of the root. Owners, setuid bits and extended attributes are not kept. Devices, pipes and sockets are left
// out. The owner may read and write every file and folder. Sources: OCI image-spec 1.1, layer.md; libarchive 3.6.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::local {

struct LayerLimits {
  uint64_t members = 2'000'000;         // in one tar
  uint64_t free = uint64_t{256} << 20;  // bytes that stay free on the file system
};

struct LayerOptions {
  bool whiteouts = false;  // ".wh.NAME" removes NAME of lower layers, ".wh..wh..opq" all names of its folder
  LayerLimits limits;
};

// Unpacks a tar, also of gzip, zstd, xz or bzip2, from the offset of `file` into the folder `root`; both are open.
// `name`: for messages. Adds the number of members that are left out to `left_out`. DataLoss: it is broken or cut
// short. InvalidArgument: a member's path leads out of the root, or its hard link to nothing. ResourceExhausted: a
// limit.
Status UnpackTar(int file, const std::string& name, int root, const LayerOptions& options, uint64_t* left_out);

// The content of the file `wanted` in the tar at `file`. It reads no further than that file. NotFound: the tar has no
// such file. ResourceExhausted: it has more than `most` bytes. DataLoss: as of UnpackTar.
StatusOr<std::string> FileInTar(int file, const std::string& name, std::string_view wanted, size_t most);

}  // namespace muster::local
