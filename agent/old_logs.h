// SPDX-License-Identifier: Apache-2.0
// The folders that runs without --log-dir make below TMPDIR: marked while the run lives, removed when old.
//
// The next run of the same user removes the folders of runs that ended more than a week ago, except the newest five. It
// removes a folder only if its name is one that FindLogPlace() gives, the folder and its mark belong to this user and
// are no links, and no process holds the mark's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptors.h"

namespace muster::agent {

inline constexpr char kLogFolderPrefix[] = "muster_";  // six letters and digits follow

// Holds the mark's lock (flock) while the run lives. The mark's modification time is when the run ended.
class LogMark {
 public:
  // Makes the mark in `folder`. If that fails, the folder has no mark and is never removed.
  explicit LogMark(const std::string& folder);
  // The run has ended: sets the mark's time or, if `forget`, removes the mark, so that an empty folder can be removed.
  void End(bool forget);

 private:
  friend void RemoveOldLogs(const std::string& above, const LogMark& own);
  std::string path_;
  Descriptor file_;
};

struct LogFolder {
  std::string name;
  int64_t ended = 0;  // seconds
  bool operator==(const LogFolder&) const = default;
};

// The folders to remove, of all that this user has. `now` is a time of the clock that gave `ended`. Pure.
std::vector<LogFolder> SuperfluousLogs(std::vector<LogFolder> folders, int64_t now);

// Removes these folders below `above`, at most 16. The time is that of the mark `own`, by its file system's clock.
void RemoveOldLogs(const std::string& above, const LogMark& own);

}  // namespace muster::agent
