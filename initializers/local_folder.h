// A folder of this machine as a source: file:///PATH, and pvc://CLAIM/PATH where the claim is mounted.
//
// Lists what is below it, or the one file. A symbolic link counts as what it leads to; of a claim it must not lead out
// of the claim's mount, and nowhere into a loop. What is neither file nor folder is left out and said.
//
// What the patterns leave out is not looked into: a folder in which nothing can be wanted is not read, and a link that
// leads nowhere counts as a file. A folder that cannot be read, and a link to one, or out of the claim, or in a circle,
// is also left out, and said, where --ignore has its very name; so is an unreadable "lost+found" at the top, which is
// the file system's own. Any other one is an error that says so. A wanted file that may not be read is one, too: when it
// is listed, not when its turn to be copied comes.
//
// A folder named ".muster" at the top is left out: it is an initializer's own; where its manifest still fits a file
// (size and time of change), the file's hash is taken from it, so that the copy is verified against what the store had.
// For users: docs/initializers.md, "Folders of this machine".
#pragma once

#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "initializers/disk_pool.h"
#include "initializers/provider.h"
#include "initializers/settings.h"
#include "initializers/source.h"

namespace muster::initializers {

struct LocalPlace {
  std::string path;  // absolute; the folder or the file
  std::string root;  // what links must not leave; empty: they may lead anywhere
};

// Where a pvc:// or file:// source is. `claims`: "NAME=DIR"; then MUSTER_CLAIMS, the same with commas between; then
// /mnt/pvc/NAME. InvalidArgument: a claim that is said in no such form; a path that leaves the claim by "..".
StatusOr<LocalPlace> FindLocalPlace(const Source& source, const std::vector<std::string>& claims,
                                    const Environment& environment);

// The source is the target itself (a claim that is mounted where it has to be), which need not be there yet.
// InvalidArgument: one is in the other.
StatusOr<bool> IsTarget(const LocalPlace& place, const std::string& target);

struct Patterns {  // entry_path.h's
  std::vector<std::string> include, ignore;
};

// An entry's key is its absolute path, its version the file's time of change, inode and size. NotFound: there is no
// such folder or file, or nothing is mounted there.
std::unique_ptr<Catalogue> MakeLocalFolder(DiskPool& pool, LocalPlace place, Patterns patterns,
                                           std::function<void(const std::string&)> say);

// What pins a file: changes with its content, as far as its file system tells.
std::string LocalVersion(const struct stat& facts);

}  // namespace muster::initializers
