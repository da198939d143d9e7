// SPDX-License-Identifier: Apache-2.0
// The agent's own stdout and stderr: many writers, and none waits for a slow reader.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace muster::launcher {

struct ConsoleOptions {
  int out = 1;  // borrowed descriptors
  int err = 2;
  size_t queue_bytes = 8 << 20;  // per stream
  std::chrono::milliseconds stall_limit{5000};
};

// Never blocks the loop. If a reader stalls for longer than `stall_limit`, or a disk is full, lines are dropped; one
// line then says how many lines and bytes. Loop thread only.
//
// The workers and the parent process share the descriptors, so their flags are never changed. A pipe or a terminal is
// opened again, which gives an open file description of its own. A socket is written with MSG_DONTWAIT. If neither is
// possible, small pieces are written when poll says that there is room. Ignores SIGPIPE in this process.
class Console {
 public:
  explicit Console(boost::asio::io_context& loop, ConsoleOptions options = {});
  ~Console();  // loses queued text, so Drain first; with RouteLog() it drains itself, for at most kStderrPatience
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  enum class Stream { kOut, kErr };
  // Queues `text` for the stream: whole lines, or a part of a line that its writer continues later. `starts_line`:
  // `text` starts a new line; if the stream's last line is not ended, a newline is put before it.
  void Write(Stream stream, std::string text, bool starts_line = true);
  // False while the queue is full and the stall limit has not passed. A caller that can wait should do so then.
  bool HasRoom(Stream stream) const;
  // From now on nothing of `stream` is dropped because its reader stalls: there is no room until it reads. For writers
  // that would have the descriptor itself without this process.
  void WaitForReader(Stream stream);
  // Calls `resume` once, on the loop, as soon as there is room (again).
  void WhenRoom(Stream stream, std::function<void()> resume);
  // Keeps `line`, without newline, below all other text on a stderr that is a terminal. It is erased before other text
  // and drawn again when that text has ended its line. If stdout is the same terminal, stdout goes through stderr from
  // now on, so that both keep their order. `line` has only visible text and is shorter than the terminal is wide.
  // Empty: no footer. Set it to empty at the end, since nothing else erases it.
  void SetFooter(std::string line);
  // Sends this process's log, from any thread, through this stderr until the console is destroyed. So a stalled reader
  // does not block the loop. Only one console may do this at a time.
  void RouteLog();
  // Writes the queued text. Blocks for at most `limit` in total. Call it once, at the very end.
  void Drain(std::chrono::milliseconds limit);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
  bool carries_log_ = false;
};

}  // namespace muster::launcher
