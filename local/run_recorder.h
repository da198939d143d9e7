// SPDX-License-Identifier: Apache-2.0
// Keeps run.json of one run up to date. Loop thread only.
#pragma once

#include <functional>
#include <string>

#include "local/cluster/local_job.h"
#include "local/run.h"
#include "local/state/run_record.h"
#include "local/verdict.h"

namespace muster::local {

class RunRecorder {
 public:
  // `first`: with files, detached and begun; pid and pid_started are set to this process'. `trouble` is called if
  // run.json cannot be written: once, and again after a write that succeeded.
  RunRecorder(std::string folder, RunRecord first, std::function<void(const std::string&)> trouble);

  // Writes run.json if the record has changed.
  void Note(const LocalJobState& job, const LocalRun& run);
  // Call it at the end of the run.
  void End(const LocalJobState& job, const LocalRun& run, const RunVerdict& verdict, WallTime now);

 private:
  void Fill(const LocalJobState& job, const LocalRun& run);
  void Write();

  const std::string folder_;
  RunRecord record_, written_;
  const std::function<void(const std::string&)> trouble_;
  bool failed_ = false;
};

}  // namespace muster::local
