// Where a worker's output goes: files, the console, both; with prefixes and filters. No thread per pipe, nothing lost.
//
// Rules of torchrun (reference/torchrun.md 3.8): a stream is inherited, redirected to a file, or tee'd to both. Muster
// carries what goes to a file through a pipe, so that whole lines get the prefix, the last line before _exit is kept,
// and a full disk costs lines and not the worker.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::launcher {

// One stream of one worker.
struct StreamSpec {
  std::string file;                  // "" : no file
  bool console = true;               // lines also go to the agent's own stream
  std::string prefix;                // before each line on the console and in filter_file; not in file
  std::vector<std::string> filters;  // lines holding any of these are copied to filter_file too
  std::string filter_file;           // shared by the node's workers, appended to
  bool keep_tail = false;            // keep the last 20 lines for the exit record
  bool observed = false;             // through a pipe in any case, so that the moment of its last byte is known
  // A line ends at \n or, for progress bars, at \r; one longer than 64 KiB is passed on in pieces.
  // file empty, console, no prefix, no tail, no filters: the worker inherits the agent's descriptor; neither file nor
  // console: /dev/null. Everything else, and everything observed, goes through a pipe.
};
struct OutputSpec {
  StreamSpec out;
  StreamSpec err;
};

struct ConsoleOptions {
  int out = 1;  // borrowed descriptors
  int err = 2;
  size_t queue_bytes = 8 << 20;  // a stream
  std::chrono::milliseconds stall_limit{5000};
};

// The agent's own stdout and stderr, written without ever blocking the loop: a reader that stalls for longer than
// `stall_limit` or a full disk loses lines, and one line says how many lines and bytes were dropped. Loop thread only.
//
// The descriptors are shared with the workers and with whoever started us, so their flags are never touched: a pipe or
// a terminal is opened once more for a description of our own, a socket is written with MSG_DONTWAIT; where neither can
// be had, small pieces are written when poll says there is room. Ignores SIGPIPE in this process.
class Console {
 public:
  explicit Console(boost::asio::io_context& loop, ConsoleOptions options = {});
  ~Console();  // what is still queued is lost, but for log lines it carries: Drain first
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  enum class Stream { kOut, kErr };
  // Queues `text` (whole lines) for the stream.
  void Write(Stream stream, std::string text);
  // False while the queue is full and the stall limit has not passed: whoever can hold back, should.
  bool HasRoom(Stream stream) const;
  // Calls `resume` once, on the loop, as soon as there is room (again).
  void WhenRoom(Stream stream, std::function<void()> resume);
  // From now on the process's own log goes through this stderr, from whatever thread, until this is destroyed: a reader
  // that stops does not stop the loop. One console at a time.
  void CarryLog();
  // Writes what is queued, waiting at most `limit` in all (used once, at the very end; blocks).
  void Drain(std::chrono::milliseconds limit);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
  bool carries_log_ = false;
};

// A log file, appended to. Never fails for its writers: what a full disk refuses is dropped, counted, and said once
// when there is room again or at the end.
class LogFile {
 public:
  // Makes missing folders. `truncate`: starts empty. ErrnoStatus naming the path; on a full disk it opens all the same,
  // as a file that drops everything.
  static StatusOr<std::shared_ptr<LogFile>> Open(const std::string& path, bool truncate);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  void Write(std::string_view bytes);

 private:
  LogFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  void SayDropped();

  std::string path_;
  int descriptor_;  // -1 where it could not be opened for lack of space
  uint64_t dropped_bytes_ = 0;
  uint64_t dropped_lines_ = 0;
};

}  // namespace muster::launcher
