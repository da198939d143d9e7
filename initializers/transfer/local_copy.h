// SPDX-License-Identifier: Apache-2.0
// Brings files of this machine into the staging folder: as reflinks, else as copies; with `hard_links` as hard links.
//
//   reflink -> [read, for the hash] -> whole
//   read, hash and write in chunks, each noted in the journal (staging.h): after a kill the next start continues there
//   verify off: copy_file_range, which a file server may do by itself
//
// A file that changes while it is copied is copied again, a few times; then the run fails (Aborted). The run also fails
// if a listed file has become a link, or is not a file any more: its target may now be outside the claim. A file whose
// hash is known (local_folder.h) and wrong is copied once more; then the run fails and nothing is published.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "initializers/disk/disk_pool.h"
#include "initializers/target/staging.h"
#include "initializers/transfer/mover.h"

namespace muster::initializers {

struct LocalCopyOptions {
  std::string source;       // identity of what is brought in, for the names of staged files
  bool verify = true;       // false: sizes only
  bool hard_links = false;  // FailedPrecondition where the target is on another file system
};

// True if the entry needs no space of its own in the target: it comes as a hard link, or as a reflink, which shares the
// source's blocks. Call it on the thread that owns `staging`.
bool ComesWithoutRoom(Staging& staging, const Entry& entry, bool hard_links);

// The entries come from local_folder.h: a key is a path without links.
std::unique_ptr<Mover> MakeLocalCopy(boost::asio::io_context& loop, Staging& staging, DiskPool& pool,
                                     LocalCopyOptions options, MoveEvents events);

}  // namespace muster::initializers
