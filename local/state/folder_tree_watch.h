// SPDX-License-Identifier: Apache-2.0
// Watches a job's folder and its subfolders by inotify. For code that has no event loop.
#pragma once

#include <set>
#include <string>

#include "base/descriptors.h"
#include "base/status.h"

namespace muster::local {

class FolderTreeWatch {
 public:
  // Watches `folder` and its present subfolders, at most `levels` levels below it. Errors name a folder.
  static StatusOr<FolderTreeWatch> Begin(const std::string& folder, int levels);

  // Readable once a file or folder has been changed, created or moved in.
  int descriptor() const { return inotify_.get(); }
  // Drops the events so far, and watches new subfolders. Read the files after this call, so that no change is missed.
  Status Next();

 private:
  FolderTreeWatch(std::string folder, int levels, Descriptor inotify)
      : folder_(std::move(folder)), levels_(levels), inotify_(std::move(inotify)) {}
  Status Add(const std::string& folder, int levels);

  std::string folder_;
  int levels_;
  Descriptor inotify_;
  std::set<std::string> watched_;
};

}  // namespace muster::local
