// The log files of one attempt's workers, written by a thread of their own: a log disk that hangs (a network volume
// whose server is gone) stops neither heartbeats nor signals. Nothing is lost by it but what the disk refuses, and that
// is said.
//
// Opening is done on the loop, so that a bad path is told at once; only writing and closing are the thread's, which
// starts with the first file.
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
  // Waits a second for what is queued; a thread that hangs in a write then is left behind, and what it did not write is
  // lost. WhenWritten first.
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
  // Calls `done` once: all that was given is in the files and those without holders are closed, or `limit` has passed,
  // which the log says with the number of bytes that are not written. From inside the call where nothing is queued. One
  // at a time.
  void WhenWritten(Duration limit, std::function<void()> done);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::launcher
