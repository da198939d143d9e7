// What the workers of a hanging job are doing, kept in files before anybody stops them.
//
//   attempt_N/<local rank>/hang.txt          every process of the worker: state, kernel stack, system call of each
//                                            thread (process_stacks.h); what could not be had, and why
//   attempt_N/<local rank>/python_<pid>.txt  Python's stacks by py-spy, where it is on PATH
//   attempt_N/<local rank>/stderr.log        or the console: what --hang-signal's handler writes (faulthandler)
//   attempt_N/flight_recorder/               PyTorch's collectives, one dump per rank (flight_recorder.h)
//
// In this order: the pipes of the flight recorder are asked; /proc is read before a signal changes what it shows; then
// py-spy and the signal; at last the dumps are waited for. Helpers are processes of their own, at most eight at once,
// each with its output in a file; what is not done when its time is over is killed and noted. Nothing here blocks the
// loop: no file of a worker's memory is read, pipes are opened O_NONBLOCK, dumps are seen by inotify.
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

#include "agent/torch/flight_recorder.h"
#include "base/clock.h"
#include "launcher/reaper.h"

namespace muster::agent {

// One worker that is asked.
struct EvidenceTarget {
  int local_rank = 0;
  pid_t pid = 0;
  std::string folder;  // its own, of this attempt
  std::optional<FlightRecorder> recorder;
};

struct EvidenceOptions {
  int signal = 0;                                                          // 0: none is sent
  Duration limit = std::chrono::seconds(15);                               // for everything
  Duration after_signal = std::chrono::seconds(1);                         // for what its handler writes
  std::vector<std::string> environment;                                    // PATH leads to py-spy; the helpers get it
  std::vector<std::string> stacks_command = {"/proc/self/exe", "stacks"};  // a pid is added
};

struct EvidenceCount {
  int stacks = 0;          // workers whose threads were read
  int python = 0;          // processes whose Python stacks were read
  int dumps = 0;           // of the flight recorder
  int dumps_missing = 0;   // asked for, and not come
  bool no_py_spy = false;  // some process is Python's, and py-spy is not on PATH
};

class HangEvidence {
 public:
  // Calls `done` once, on the loop, within options.limit; never from inside the constructor.
  HangEvidence(boost::asio::io_context& loop, launcher::Reaper& reaper, std::vector<EvidenceTarget> targets,
               EvidenceOptions options, std::function<void(const EvidenceCount&)> done);
  ~HangEvidence();  // kills what is under way; `done` is not called any more
  HangEvidence(const HangEvidence&) = delete;
  HangEvidence& operator=(const HangEvidence&) = delete;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent
