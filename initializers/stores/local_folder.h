// SPDX-License-Identifier: Apache-2.0
// A folder of this machine as a source: file:///PATH, and pvc://CLAIM/PATH if the claim is mounted.
//
// Lists what is below the folder, or the one file. A symbolic link counts as its target; it must not lead out of a
// claim's mount, nor into a loop. What is neither file nor folder is left out and reported.
//
// Whatever the patterns exclude is not examined: a folder that can hold no wanted file is not read, and an excluded
// link may lead nowhere. A folder that cannot be read, a link to one, a link out of the claim and a link to a folder
// that it is in are left out and reported if an --ignore pattern matches their own path; else they are errors. An
// unreadable "lost+found" at the top is left out too: it is the file system's. A wanted file without read permission is
// an error when it is listed, not when it would be copied.
//
// A folder named ".muster" at the top is left out, because it belongs to an initializer. If its manifest still fits a
// file (size and time of change), the hash of the file is taken from the manifest. So the copy is verified against what
// the store had. For users: docs/initializers.md, "Folders of this machine".
#pragma once

#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "initializers/disk/disk_pool.h"
#include "initializers/facts/provider.h"
#include "initializers/facts/settings.h"
#include "initializers/facts/source.h"

namespace muster::initializers {

struct LocalPlace {
  std::string path;  // absolute; the folder or the file
  std::string root;  // links must not lead out of it; empty: they may lead anywhere
};

// The path of a pvc:// or file:// source. A claim: by `claims` ("NAME=DIR"), MUSTER_CLAIMS (the same, with commas
// between), else /mnt/pvc/NAME. InvalidArgument: another form; a path that leaves the claim by "..".
StatusOr<LocalPlace> FindLocalPlace(const Source& source, const std::vector<std::string>& claims,
                                    const Environment& environment);

// True if the source is the target itself (a claim that is mounted at the target), which need not exist yet.
// InvalidArgument: one of the two is inside the other.
StatusOr<bool> IsTarget(const LocalPlace& place, const std::string& target);

struct Patterns {  // by the rules of entry_path.h
  std::vector<std::string> include, ignore;
};

// An entry's key is its absolute path, its version LocalVersion. NotFound: no such folder or file, or no mount.
std::unique_ptr<Catalogue> MakeLocalFolder(DiskPool& pool, LocalPlace place, Patterns patterns,
                                           std::function<void(const std::string&)> say);

// The file's time of change (mtime) and inode: it changes with the content, as far as the file system shows that.
std::string LocalVersion(const struct stat& facts);

}  // namespace muster::initializers
