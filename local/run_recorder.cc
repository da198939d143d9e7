// SPDX-License-Identifier: Apache-2.0
#include "local/run_recorder.h"

#include <unistd.h>

#include "base/text.h"
#include "local/state/job_folders.h"
#include "local/state/process_handle.h"

namespace muster::local {

RunRecorder::RunRecorder(std::string folder, RunRecord first, std::function<void(const std::string&)> trouble)
    : folder_(std::move(folder)), record_(std::move(first)), trouble_(std::move(trouble)) {
  record_.pid = getpid();
  record_.pid_started = ProcessStart(getpid()).value_or(0);
}

void RunRecorder::Note(const LocalJobState& job, const LocalRun& run) {
  Fill(job, run);
  Write();
}

void RunRecorder::End(const LocalJobState& job, const LocalRun& run, const RunVerdict& verdict, WallTime now) {
  Fill(job, run);
  record_.state = verdict.state;
  record_.message = verdict.message;
  record_.ended = now;
  record_.exit_code = verdict.exit_code;
  Write();
}

void RunRecorder::Fill(const LocalJobState& job, const LocalRun& run) {
  record_.kind = job.kind;
  record_.name = job.name;
  record_.state = job.state;
  record_.message = job.message;
  record_.restarts = job.restarts;
  record_.budget = job.budget;
  record_.pods = run.pods();
  record_.drills = run.drills();
}

void RunRecorder::Write() {
  if (record_ == written_) return;
  const Status written = WriteRunRecord(folder_, record_);
  if (!written.ok() && !failed_) trouble_(std::string(Message(written)));
  failed_ = !written.ok();
  if (written.ok()) written_ = record_;
}

}  // namespace muster::local
