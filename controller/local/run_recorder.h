// Keeps run.json of one run up to date. Loop thread only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controller/local/local_job.h"
#include "controller/local/run_record.h"

namespace muster::controller {

class RunRecorder {
 public:
  // `first`: files, detached and begun; the rest comes from this process. `trouble`: run.json cannot be written, said
  // once.
  RunRecorder(std::string folder, RunRecord first, std::function<void(const std::string&)> trouble);

  // Writes if something is another than before.
  void Note(const LocalJobState& job, const std::vector<PodRecord>& pods);
  // The run is over. Where the job has not finished, it was stopped.
  void End(const LocalJobState& job, const std::vector<PodRecord>& pods, int exit_code, WallTime now);

 private:
  void Fill(const LocalJobState& job, const std::vector<PodRecord>& pods);
  void Write();

  const std::string folder_;
  RunRecord record_, written_;
  const std::function<void(const std::string&)> trouble_;
  bool failed_ = false;
};

}  // namespace muster::controller
