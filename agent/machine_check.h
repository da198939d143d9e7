// Measures this machine for `muster check`: memory, loopback, disk, the way to peers. Blocks; uses threads of its own;
// for a process that does nothing else.
//
// One deadline for the whole. Each part has its share of it and stops by the clock, so that a slow machine gives
// figures from less work, not a late answer. A disk that does not answer at all is given up at its share's end: the
// thread that waits for it is left behind, so the process must end by _exit. Bounded memory: 256 MiB, and a quarter of
// what the cgroup has left.
//
//   memory               GB/s  bytes copied (counted once), on the CPUs this container may use, together. The buffers
//                              are twice the last-level caches of the CPUs that copy: where 256 MiB are too few for all
//                              of them, fewer CPUs copy
//   loopback             GB/s  one TCP stream over 127.0.0.1
//   loopback round trip  ms    one byte there and back on that stream, median
//   disk                 MB/s  written and on disk (fdatasync after every 4 MiB), at most 64 MiB, in a file without a
//   name round trip           ms    TCP connect to a peer, the best of 3; refused counts, its answer came as well
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/connect.h"

namespace muster::agent {

struct MachineCheckOptions {
  std::string disk;  // a folder
  std::vector<net::HostPort> peers;
  Duration limit = std::chrono::milliseconds(1900);  // of the 2 s, what is left for starting and telling
};

struct MachineFigure {
  std::string name;             // as above
  std::string where;            // the folder, the peer; empty for the others
  std::optional<double> value;  // empty: could not be measured
  std::string why;              // then; also what a figure leaves out
};

std::vector<MachineFigure> MeasureMachine(const MachineCheckOptions& options);

// The parts, each until its own deadline.
MachineFigure MeasureMemory(TimePoint until);
std::vector<MachineFigure> MeasureLoopback(TimePoint until);  // both figures
MachineFigure MeasureDisk(const std::string& folder, TimePoint until);

// Which CPUs copy. `caches`: for each usable CPU the CPUs that share its last-level cache, as the kernel's
// list; `cache_bytes` of one such cache; `buffer_bytes` for all. At most `at_most`, spread over as many caches as the
// buffers overflow twice; at least one. Pure.
std::vector<int> CopyingCpus(const std::vector<std::pair<int, std::string>>& caches, int64_t cache_bytes,
                             int64_t buffer_bytes, int at_most);

}  // namespace muster::agent
