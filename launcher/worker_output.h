// SPDX-License-Identifier: Apache-2.0
// The output of one running worker: opens its descriptors 1 and 2, and copies its pipes to files, console and tail.
// Internal to the launcher. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "launcher/console.h"
#include "launcher/log_files.h"
#include "launcher/output_spec.h"

namespace muster::launcher {

// Files to which several workers of a group write, by path.
using SharedFiles = std::map<std::string, std::shared_ptr<LogFile>>;

class WorkerOutput {
 public:
  // Opens files and pipes. Errors name the file or the limit.
  static StatusOr<std::unique_ptr<WorkerOutput>> Open(boost::asio::io_context& loop, Console& console, LogFiles& files,
                                                      const OutputSpec& spec, SharedFiles& shared);
  ~WorkerOutput();

  // Descriptors for the worker; -1: the worker inherits this process's.
  int out() const;
  int err() const;

  // Call it when the worker has its descriptors. Closes this process's copies and starts to read. `read` gets what
  // comes through a pipe, in the pieces in which it comes, before they are copied; it must not destroy this object.
  using Read = std::function<void(Console::Stream, std::string_view bytes)>;
  void Started(const Read& read);
  // Call it when the worker has been reaped. Reads what is in the pipes now and ends the last line. Does not wait for
  // other processes that still hold the pipes, but goes on reading for them.
  void WorkerEnded();
  // Call it when no process of the worker is left. Reads the rest and closes everything. LogFiles::WhenWritten says
  // when the files have all of it.
  void Finish();

  // The last lines; empty unless StreamSpec::keep_tail.
  std::vector<std::string> StdoutTail() const;
  std::vector<std::string> StderrTail() const;
  // The line of stderr that explains the end of a worker that ended `now` (base/reason_line.h); empty unless
  // StreamSpec::keep_tail. `suddenly`: it was killed from outside, so kinds 3 and 4 of lines do not count.
  std::string StderrReason(TimePoint now, bool suddenly) const;
  // The same of a worker that still runs: the error that it has written within kReasonFreshAge, of kinds 1 and 2.
  // Reads what is in the pipe first.
  std::string ErrorSoFar();
  // When the last byte was read from a pipe.
  std::optional<TimePoint> LastByte() const;

 private:
  class Stream;
  WorkerOutput();
  std::shared_ptr<Stream> out_;
  std::shared_ptr<Stream> err_;
};

}  // namespace muster::launcher
