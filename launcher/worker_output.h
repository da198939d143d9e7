// The output of one worker while it lives: what its descriptors 1 and 2 are, and the pumps that carry pipes to files,
// console and tail. Internal to the launcher. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "launcher/console.h"
#include "launcher/log_files.h"
#include "launcher/output_spec.h"

namespace muster::launcher {

// Files that several workers of a group write to, by path.
using SharedFiles = std::map<std::string, std::shared_ptr<LogFile>>;

class WorkerOutput {
 public:
  // Opens files and pipes. Errors name the file or the limit.
  static StatusOr<std::unique_ptr<WorkerOutput>> Open(boost::asio::io_context& loop, Console& console, LogFiles& files,
                                                      const OutputSpec& spec, SharedFiles& shared);
  ~WorkerOutput();

  // For the worker; -1: it inherits ours.
  int out() const;
  int err() const;

  // The worker has its descriptors: closes ours and starts to read.
  void Started();
  // The worker has been reaped: reads what is in the pipes now, without waiting for others that still hold them, and
  // ends the last line. Reading goes on for those others.
  void WorkerEnded();
  // No process of the worker's is left: reads what is there and closes all; LogFiles::WhenWritten says when the files
  // have it.
  void Finish();

  // The last lines, where kept.
  std::vector<std::string> StdoutTail() const;
  std::vector<std::string> StderrTail() const;
  // Where stderr's are kept: the line of it that explains the end of a worker that ended `now` (base/reason_line.h).
  // `suddenly`: it was killed from outside, so that only a line that tells an end counts, not just a fresh one.
  std::string StderrReason(TimePoint now, bool suddenly) const;
  // When the last byte was read, of what goes through a pipe.
  std::optional<TimePoint> LastByte() const;

 private:
  class Stream;
  WorkerOutput();
  std::shared_ptr<Stream> out_;
  std::shared_ptr<Stream> err_;
};

}  // namespace muster::launcher
