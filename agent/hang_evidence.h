// SPDX-License-Identifier: Apache-2.0
// Records in files what the workers of a hanging job are doing, before they are stopped.
//
//   attempt_N/<local rank>/hang.txt          every process of the worker: state, kernel stack, system call of each
//                                            thread (process_stacks.h); what could not be read, and why
//   attempt_N/<local rank>/python_<pid>.txt  Python's stacks by py-spy, if it is on PATH
//   attempt_N/<local rank>/stderr.log        or the console: what --hang-signal's handler writes (faulthandler)
//   attempt_N/flight_recorder/               PyTorch's collectives, one dump per rank (flight_recorder.h)
//
// The order: ask the flight recorders for dumps, by their pipes; read /proc, before a signal changes what it shows; run
// py-spy and send the signal; wait for the dumps. Helper processes read /proc and run py-spy, at most eight at once,
// each with its output in a file. A helper that exceeds its time is killed, and hang.txt says so. Nothing here blocks
// the loop: the agent reads no file of a worker's memory itself, opens pipes with O_NONBLOCK and sees dumps by inotify.
//
// Loop thread only. The Reaper must outlive it.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/workers/flight_recorder.h"
#include "base/clock.h"
#include "launcher/reaper.h"

namespace muster::agent {

// One worker to examine.
struct EvidenceTarget {
  int local_rank = 0;
  pid_t pid = 0;
  std::string folder;  // the worker's own, in this attempt's folder
  std::optional<FlightRecorder> recorder;
};

struct EvidenceOptions {
  int signal = 0;                                   // --hang-signal; 0: none
  Duration limit = std::chrono::seconds(15);        // for everything
  Duration after_signal = std::chrono::seconds(1);  // how long its handler may write
  std::vector<std::string> environment;             // of the helpers; py-spy is looked up on its PATH
  std::vector<std::string> stacks_command = {"/proc/self/exe", "stacks"};  // a pid is appended
};

struct EvidenceCount {
  int stacks = 0;          // workers whose threads were read
  int python = 0;          // processes whose Python stacks were read
  int dumps = 0;           // flight recorder dumps that came
  int dumps_missing = 0;   // dumps that were asked for and did not come
  bool no_py_spy = false;  // a process runs Python, but py-spy is not on PATH
};

class HangEvidence {
 public:
  // Calls `done` once, on the loop, within options.limit; never from inside the constructor.
  HangEvidence(boost::asio::io_context& loop, launcher::Reaper& reaper, std::vector<EvidenceTarget> targets,
               EvidenceOptions options, std::function<void(const EvidenceCount&)> done);
  ~HangEvidence();  // kills the running helpers; `done` is not called after it
  HangEvidence(const HangEvidence&) = delete;
  HangEvidence& operator=(const HangEvidence&) = delete;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent
