// The agent's own stdout and stderr, where many write and nobody may have to wait for who reads.
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
  // Queues `text` for the stream: whole lines, or part of one that its writer goes on with. What starts a line of its
  // writer starts one of the stream: where another writer's is open, a newline comes first.
  void Write(Stream stream, std::string text, bool starts_line = true);
  // False while the queue is full and the stall limit has not passed: whoever can hold back, should.
  bool HasRoom(Stream stream) const;
  // Calls `resume` once, on the loop, as soon as there is room (again).
  void WhenRoom(Stream stream, std::function<void()> resume);
  // A line without its end that stays below all that is written, for a stderr that is a terminal: it is erased before
  // other text and drawn again after it, but not below a line that is still open. Where stdout is the same terminal, it
  // goes through stderr from now on, so that both keep their order. Only text that shows, shorter than the terminal is
  // wide. Empty: none. The last one must be empty: nothing else erases it.
  void SetFooter(std::string line);
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

}  // namespace muster::launcher
