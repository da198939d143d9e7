// SPDX-License-Identifier: Apache-2.0
// The log files of one attempt's workers. A thread writes them, so that a disk that hangs (a network volume whose
// server is gone) stops neither heartbeats nor signals. Lines are lost only if the disk refuses them or hangs for too
// long, and the log says so.
//
// The thread only writes and closes; it starts with the first file. The loop opens the files, so that a bad path is
// reported at once, and it writes the records beside the logs. So a disk that hangs at the start or end of an attempt
// does block the agent.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace muster::launcher {

class LogWriter;  // queue and thread

// A log file opened for appending. Write never fails and never blocks. Lines that a full disk refuses, or that come
// after a hanging disk has used up the stall limit, are dropped and counted; the log says so once, when the disk takes
// lines again or at the end. Loop thread only. Closed when its last owner is destroyed, after all bytes are written.
class LogFile {
 public:
  struct Target;
  LogFile(std::shared_ptr<LogWriter> writer, std::shared_ptr<Target> target);  // LogFiles::Open makes them
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  void Write(std::string_view bytes);

 private:
  std::shared_ptr<LogWriter> writer_;
  std::shared_ptr<Target> target_;
};

struct LogFilesOptions {
  size_t queue_bytes = 8 << 20;  // of all files together
  // Lines are dropped if the queue is full and the disk has taken nothing for so long. It is longer than the console's
  // limit, since a network volume may need so long to fail over. Workers wait meanwhile, as if they wrote themselves.
  Duration stall_limit = std::chrono::seconds(60);
};

// Loop thread only.
class LogFiles {
 public:
  explicit LogFiles(boost::asio::io_context& loop, LogFilesOptions options = {});
  // Waits up to a second for the queue. A thread that still hangs in a write then goes on by itself while the process
  // lives. Use WhenWritten first.
  ~LogFiles();
  LogFiles(const LogFiles&) = delete;
  LogFiles& operator=(const LogFiles&) = delete;

  // Opens a file and makes missing folders. `truncate`: start with an empty file. An error names the path, or says that
  // the thread cannot start. On a full disk it succeeds with a file that drops all lines.
  StatusOr<std::shared_ptr<LogFile>> Open(const std::string& path, bool truncate);

  // False while the queue is full and the stall limit has not passed. A caller that can wait should do so then.
  bool HasRoom() const;
  // Calls `resume` once, on the loop, as soon as there is room (again).
  void WhenRoom(std::function<void()> resume);
  struct Patience {
    Duration stall = std::chrono::seconds(5);   // while the disk takes nothing
    Duration limit = std::chrono::seconds(60);  // in total
  };
  // Calls `done` once, when all bytes are in the files and files without owner are closed, or when the patience is
  // over. In the second case the log gives the number of unwritten bytes. If nothing is queued, calls `done` before it
  // returns. One call at a time.
  void WhenWritten(Patience patience, std::function<void()> done);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::launcher
