// The folders that runs without --log-dir made for themselves below TMPDIR: marked while their run lives, and bounded.
//
// A folder of a run that ended more than a week ago goes with the next run of the same user, but for the newest five.
// Nothing else is touched: the name is the one that FindLogPlace() gives, the folder and the mark in it are this user's
// and no links, and nobody holds the mark's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptors.h"

namespace muster::agent {

inline constexpr char kLogFolderPrefix[] = "muster_";  // six letters and digits follow

// Holds the mark's lock (flock): the run lives. Its file's time is when the run ended.
class LogMark {
 public:
  // Lays the mark into `folder`. Where that cannot be done the folder has none, and stays for ever.
  explicit LogMark(const std::string& folder);
  // The run has ended: notes the time. Where `forget`, takes the mark away, so that an empty folder can be removed.
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

// Those that go, of all this user has, `now` being a time of the same clock. Pure.
std::vector<LogFolder> SuperfluousLogs(std::vector<LogFolder> folders, int64_t now);

// Removes those below `above`, at most 16. `own` tells the time of that file system, whatever our clock says.
void RemoveOldLogs(const std::string& above, const LogMark& own);

}  // namespace muster::agent
