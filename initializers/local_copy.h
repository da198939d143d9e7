// Files of this machine into the staging folder: as a reflink where the file system has them, else by copying; or, when
// asked for, as hard links.
//
//   reflink -> [read, for the hash] -> whole
//   read, hash, write in chunks, each noted in the journal (staging.h): a start after a kill goes on behind them
//   verify off: copy_file_range, which a server may do by itself
//
// A file that changes while it is copied is copied anew, a few times; then the run fails (Aborted). So it does where
// one that was listed has become a link, or no file: what it would lead to now may be out of the claim. A file whose
// hash is known (local_folder.h) and wrong is copied once more, then the run fails and nothing is published.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "initializers/disk_pool.h"
#include "initializers/mover.h"
#include "initializers/staging.h"

namespace muster::initializers {

struct LocalCopyOptions {
  std::string source;       // identity of what is brought in, for the names of staged files
  bool verify = true;       // false: sizes only
  bool hard_links = false;  // FailedPrecondition where the target is on another file system
};

// Whether it comes without room of its own in the target: as a hard link, or as one that shares the source's blocks.
// Staging's own thread.
bool ComesWithoutRoom(Staging& staging, const Entry& entry, bool hard_links);

// Entries are local_folder.h's: a key is a path without links.
std::unique_ptr<Mover> MakeLocalCopy(boost::asio::io_context& loop, Staging& staging, DiskPool& pool,
                                     LocalCopyOptions options, MoveEvents events);

}  // namespace muster::initializers
