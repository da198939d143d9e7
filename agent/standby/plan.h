// SPDX-License-Identifier: Apache-2.0
// When a node makes a standby worker, and when it does not. Pure.
//
// A standby is a Python process that has imported what the script imports, and becomes the worker of its local rank in
// the next round. It is made while a round runs, one at a time, or while this node waits for one, one for each CPU: not
// while a start is under way, which needs the CPUs and the memory.
//
// Before the first standby of a local rank comes a probe: the same command line without the script. It shows that this
// Python runs sitecustomize.py. One that does not would run the script at once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/workers/run_options.h"
#include "base/clock.h"

namespace muster::agent::standby {

inline constexpr Duration kImportLimit = std::chrono::seconds(120);  // for one standby
inline constexpr Duration kProbeLimit = std::chrono::seconds(60);    // for one probe: a file system may be slow
// How long a node waits for a round before it begins: a start that follows at once is not slowed down.
inline constexpr Duration kWaitDelay = std::chrono::milliseconds(200);
// After a standby that ended by itself or took too long: the pause before the next, doubled each time.
inline constexpr Duration kFirstPause = std::chrono::seconds(10), kLongestPause = std::chrono::minutes(10);
// Memory that a standby needs if none has been measured yet: torch 2.15 with DDP takes 245 MB.
inline constexpr int64_t kUnknownMemory = int64_t{512} << 20;

struct Seat {
  // kMore: was ready, and imports what has become known since.
  enum class Standby { kNone, kProbing, kImporting, kReady, kMore };
  Standby standby = Standby::kNone;
  bool proven = false;  // by a probe
  TimePoint limit{};    // until when it may probe or import
  size_t imports = 0;   // how many names it was told
  int failures = 0;     // in a row
  TimePoint failed{};   // the last one
  // Whether a worker can begin in it.
  bool ready() const { return standby == Standby::kReady || standby == Standby::kMore; }
  // A process of it probes or imports.
  bool busy() const {
    return standby == Standby::kProbing || standby == Standby::kImporting || standby == Standby::kMore;
  }
  bool operator==(const Seat&) const = default;
};

struct View {
  bool on = true;                  // standbys are wanted and possible; false for good after kUnfit
  std::optional<TimePoint> quiet;  // since when no start is under way; nullopt: one is
  size_t imports = 0;              // names that are known
  std::vector<Seat> seats;         // by local rank
  int at_once = 1;                 // how many may probe or import at a time
  // Bytes that are free for this container; nullopt: unknown, so enough. Called only if a process is to be made, since
  // the kernel's answer takes several files.
  std::function<std::optional<int64_t>()> memory = [] { return std::nullopt; };
  int64_t standby_memory = kUnknownMemory;  // what one takes
};

// What to do at `now`. kProbe: probe the Python of `local_rank`. kStart: make its standby. kMore: name the modules that
// it has not been told. kEnd: give it up, it takes too long. kLater: nothing before `at`. kNothing: nothing until an
// event comes.
struct Step {
  enum class Kind { kNothing, kLater, kProbe, kStart, kMore, kEnd };
  Kind kind = Kind::kNothing;
  int local_rank = 0;
  TimePoint at{};
  bool operator==(const Step&) const = default;
};
Step NextStep(const View& view, Duration delay, TimePoint now);

// Whether nothing is left to import, or nothing can be imported now. `step`: NextStep() of the same.
bool IsPrepared(const View& view, const Step& step, Duration delay, TimePoint now);

// The pause after so many failures in a row, at least 1.
Duration PauseAfter(int failures);

// Whether `auto` means standbys for this run. Else a phrase that says why not: "restarts are not allowed".
std::optional<std::string> WhyNone(const RunOptions& options);

// The entries of a worker's environment that are the same in every round.
std::vector<std::string> LocalPart(const std::vector<std::string>& environment);
// The names of the others.
std::vector<std::string> NamesOfRound(const std::vector<std::string>& environment);

// The modules that a worker has imported and that standbys import, in order, with the entries of learner.py. The
// worker's script may have sent anything. Memory: 10 MB at most.
class Imports {
 public:
  // A name counts once; not if it is not a name, is left out, or comes after "=end:".
  void Add(const std::string& entry);
  // Leaves out `module` and all that comes after it. `what`: as end().
  void EndAt(const std::string& module, const std::string& what);
  // Forgets all entries, not what is left out.
  void Clear();
  // Leaves out `module` and all below it from now on. False: that were too many.
  bool LeaveOut(const std::string& module);
  const std::vector<std::string>& names() const { return names_; }
  // What the script changes, so that nothing imported later counts; empty: nothing.
  const std::string& end() const { return end_; }

 private:
  std::vector<std::string> names_;
  std::set<std::string> known_;     // the same
  std::set<std::string> left_out_;  // modules, with all below them
  std::string end_;
};

// The command line of a worker, `PYTHON -u [-m] script args`, with `-c pass` in place of the script.
std::vector<std::string> ProbeCommand(const std::vector<std::string>& worker);

// The folder that Python puts at the front of sys.path for this command: that of the script, or the working directory.
std::string ScriptFolder(const RunOptions::Command& command);

}  // namespace muster::agent::standby
