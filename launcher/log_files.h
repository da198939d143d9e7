// Where a worker's output goes: files, the console, both; with prefixes and filters. No thread per pipe, nothing lost.
//
// Rules of torchrun (reference/torchrun.md 3.8): a stream is inherited, redirected to a file, or tee'd to both. Muster
// carries tee'd output through a pipe, so that whole lines get the prefix and the last line before _exit is kept.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace muster::launcher {

// One stream of one worker.
struct StreamSpec {
  std::string file;                  // "" : no file
  bool console = true;               // lines also go to the agent's own stream
  std::string prefix;                // before each console line (console lines only)
  std::vector<std::string> filters;  // lines holding any of these are copied to filter_file too
  std::string filter_file;           // shared by the node's workers, appended to
  bool keep_tail = false;            // keep the last 20 lines for the exit record
  // file empty, console, no prefix, no tail: the worker inherits the agent's descriptor; neither file nor console: /dev/null;
  // file only and no tail: the worker writes to the file itself. Everything else goes through a pipe.
};
struct OutputSpec {
  StreamSpec out;
  StreamSpec err;
};

// The agent's own stdout and stderr, written without ever blocking the loop: a reader that stalls for longer than
// `stall_limit` or a full disk loses lines, and one line says how many lines and bytes were dropped. Loop thread only.
class Console {
 public:
  explicit Console(boost::asio::io_context& loop);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  enum class Stream { kOut, kErr };
  // Queues `text` (whole lines) for the stream.
  void Write(Stream stream, std::string text);
  // Writes what is queued, waiting at most `limit` in all (used once, at the very end; blocks).
  void Drain(std::chrono::milliseconds limit);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::launcher
