// SPDX-License-Identifier: Apache-2.0
// Where a worker's output goes: files, the console or both, with prefixes and filters. Passive data.
//
// Rules of torchrun (DefaultLogsSpecs): a stream is inherited, redirected to a file, or tee'd to both. Muster moves
// output for a file through a pipe. So whole lines get the prefix, the last line before _exit is kept, and a disk that
// is full or hangs costs lines but does not harm the worker.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// One stream of one worker.
struct StreamSpec {
  std::string file;                  // "": no file
  bool console = true;               // lines also go to the agent's stream
  std::string prefix;                // before each line on the console and in filter_file; not in file
  std::vector<std::string> filters;  // lines that contain any of these are also copied to filter_file
  std::string filter_file;           // shared by the node's workers, appended to
  bool keep_tail = false;            // keep the last 20 lines for the exit record
  bool observed = false;             // always use a pipe, so that the time of the last byte is known
  // A line ends at \n. The file gets every byte unchanged. The console gets whole lines, but the updates of a progress
  // bar, each with its \r, are one line, which it gets as it grows; for filters and tail each update is a line. Outside
  // the file, a line of 64 KiB is ended: a progress bar after its current update, another line in the middle. Without
  // file, tail and filters the worker inherits the agent's descriptor (console, no prefix) or gets /dev/null (no
  // console). Everything else, and every observed stream, goes through a pipe. A stream that is only observed reaches
  // the console as it would without the pipe: each byte at once, and a worker waits for the console's reader.

  // Whether it goes through a pipe, so that the agent sees what the worker writes.
  bool piped() const {
    const bool filtered = !filters.empty() && !filter_file.empty();
    return observed || keep_tail || filtered || !file.empty() || (console && !prefix.empty());
  }
};
struct OutputSpec {
  StreamSpec out;
  StreamSpec err;
};

}  // namespace muster::launcher
