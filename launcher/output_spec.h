// Where a worker's output goes: files, the console, both; with prefixes and filters. Passive data.
//
// Rules of torchrun (DefaultLogsSpecs): a stream is inherited, redirected to a file, or tee'd to both. Muster
// carries what goes to a file through a pipe, so that whole lines get the prefix, the last line before _exit is kept,
// and a disk that is full or hangs costs lines and not the worker.
#pragma once

#include <string>
#include <vector>

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
  // A line ends at \n. The file has every byte as it came. So has the console, where the updates of a progress bar,
  // each with its \r, make one line, which is passed on as it grows; other lines are passed on whole. A line of 64 KiB
  // is ended there: after the update that is longer, else in its midst. For filters and tail an update is a line. file
  // empty, console, no prefix, no tail, no filters: the worker inherits the agent's descriptor; neither file nor
  // console: /dev/null. Everything else, and everything observed, goes through a pipe.
};
struct OutputSpec {
  StreamSpec out;
  StreamSpec err;
};

}  // namespace muster::launcher
