// The log files of one attempt's workers, written by a thread of their own: what the workers say stops neither
// heartbeats nor signals where the disk hangs (a network volume whose server is gone). Nothing is lost by it but what
// the disk refuses, and that is said.
//
// Only writing and closing are the thread's, which starts with the first file. Opening is done on the loop, so that a
// bad path is told at once, and so are the records beside the logs: a disk that hangs where an attempt begins or ends
// does stop the agent.
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

// A log file, appended to. Never fails and never waits: what a full disk refuses, and what comes while a hanging one
// has been waited for long enough, is dropped, counted, and said once when the disk takes lines again or at the end.
// Loop thread only. When the last holder goes the file is closed, after all that was written.
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
  // A full queue that does not move for so long costs lines. Longer than the console's: a network volume that fails
  // over takes this long, and workers can wait for it as they would if they wrote themselves.
  Duration stall_limit = std::chrono::seconds(60);
};

// Loop thread only.
class LogFiles {
 public:
  explicit LogFiles(boost::asio::io_context& loop, LogFilesOptions options = {});
  // Waits a second for what is queued; a thread that hangs in a write goes on by itself after that, as long as the
  // process lives. WhenWritten first.
  ~LogFiles();
  LogFiles(const LogFiles&) = delete;
  LogFiles& operator=(const LogFiles&) = delete;

  // Makes missing folders. `truncate`: starts empty. ErrnoStatus naming the path; on a full disk it opens all the same,
  // as a file that drops everything.
  StatusOr<std::shared_ptr<LogFile>> Open(const std::string& path, bool truncate);

  // False while the queue is full and the stall limit has not passed: whoever can hold back, should.
  bool HasRoom() const;
  // Calls `resume` once, on the loop, as soon as there is room (again).
  void WhenRoom(std::function<void()> resume);
  struct Patience {
    Duration stall = std::chrono::seconds(5);   // with a disk that takes nothing
    Duration limit = std::chrono::seconds(60);  // in all
  };
  // Calls `done` once: all that was given is in the files and those without holders are closed, or patience is over,
  // which the log says with the number of bytes that are not written. From inside the call where nothing is queued. One
  // at a time.
  void WhenWritten(Patience patience, std::function<void()> done);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::launcher
