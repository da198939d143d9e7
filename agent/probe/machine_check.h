// SPDX-License-Identifier: Apache-2.0
// Measures memory, loopback, disk and the round trip to peers. Blocks, with threads: for a process that does nothing
// else.
//
// One deadline covers everything. Each part stops when its share of the time is over, so on a slow machine the figures
// come from less work. A thread whose disk does not answer is left behind, so the process must end by _exit. Memory: at
// most 256 MiB, and a quarter of the machine's memory and of what the cgroup has left.
//
//   memory               GB/s  bytes copied (counted once) by the CPUs that this container may use, together. The
//                              buffers are at least twice the last-level caches of the CPUs that copy: if 256 MiB are
//                              too few for all of them, fewer CPUs copy
//   loopback             GB/s  one TCP stream over 127.0.0.1
//   loopback round trip  ms    one byte there and back on that stream, median
//   disk                 MB/s  written and on disk (fdatasync after every 4 MiB), at most 64 MiB, in a file without
//                              a name; 0 if the disk was still busy with the first 4 MiB at the end
//   round trip           ms    TCP connect to a peer, the best of 3; a refused connect counts, since it is an answer
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
  Duration limit = std::chrono::milliseconds(1900);  // the rest of the 2 s is for starting and printing
};

struct MachineFigure {
  std::string name;             // of the list above
  std::string where;            // the folder, the peer; empty for the others
  std::optional<double> value;  // nullopt: it could not be measured
  std::string why;              // why not; or what limits the value
};

std::vector<MachineFigure> MeasureMachine(const MachineCheckOptions& options);

// The parts. Each stops at its deadline.
MachineFigure MeasureMemory(TimePoint until);
std::vector<MachineFigure> MeasureLoopback(TimePoint until);  // both figures
MachineFigure MeasureDisk(const std::string& folder, TimePoint until);

// The CPUs that copy: at most `at_most`, at least one, spread over at most `buffer_bytes` / (2 * `cache_bytes`) caches.
// `caches`: each usable CPU with the list of CPUs (as the kernel writes it) that share its last-level cache; one such
// cache has `cache_bytes`. `buffer_bytes`: of all buffers together. Pure.
std::vector<int> CopyingCpus(const std::vector<std::pair<int, std::string>>& caches, int64_t cache_bytes,
                             int64_t buffer_bytes, int at_most);

}  // namespace muster::agent
