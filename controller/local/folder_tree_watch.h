// What happens in a job's folder and below it, by inotify. For what has no loop.
#pragma once

#include <set>
#include <string>

#include "base/descriptors.h"
#include "base/status.h"

namespace muster::controller {

class FolderTreeWatch {
 public:
  // Watches `folder` and the folders that are in it now, at most `levels` below it. Errors name a folder.
  static StatusOr<FolderTreeWatch> Begin(const std::string& folder, int levels);

  // Readable once something has happened.
  int descriptor() const { return inotify_.get(); }
  // Forgets what has happened, and watches folders that have come. Look at the files after it.
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

}  // namespace muster::controller
