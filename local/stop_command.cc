// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/print.h"
#include "base/state_folder.h"
#include "local/commands.h"
#include "local/state/job_folders.h"
#include "local/state/process_handle.h"

namespace muster::local {
namespace {

struct Flags {
  std::vector<std::string> jobs;
  bool all = false, now = false;
  int timeout = 300;  // seconds
};

void Say(std::string_view text) { PrintTo(stderr, "muster stop: {}\n", text); }

// A job that has been asked to stop.
struct Stopped {
  FoundJob job;
  ProcessHandle process;
};

// Returns nullopt if the job does not run, after printing that.
StatusOr<std::optional<Stopped>> Ask(const FoundJob& job, bool now) {
  MUSTER_RETURN_IF_ERROR(job.runs || absl::IsNotFound(job.record.status()) ? absl::OkStatus() : job.record.status());
  if (job.lost()) {
    MUSTER_RETURN_IF_ERROR(ClearLost(job));
    Say(fmt::format("{} does not run; `muster local` was killed, and none of its processes is left", job.name));
    return std::nullopt;
  }
  if (!job.runs) {
    Say(job.record.ok() ? fmt::format("{} has ended: {}", job.name, job.record->state)
                        : fmt::format("{} has not begun", job.name));
    return std::nullopt;
  }
  if (absl::IsNotFound(job.record.status())) {
    return absl::UnavailableError(fmt::format("{} is still starting; try again", job.name));
  }
  MUSTER_RETURN_IF_ERROR(job.record.status());
  auto process = ProcessHandle::Open(static_cast<pid_t>(job.record->pid), job.record->pid_started);
  if (absl::IsNotFound(process.status())) {
    return absl::FailedPreconditionError(
        fmt::format("{}: its lock is held, and process {} of {}/run.json is gone: another machine or container runs "
                    "it; stop it there",
                    job.name, job.record->pid, job.folder));
  }
  MUSTER_RETURN_IF_ERROR(process.status());
  const Status sent = process->Signal(now ? SIGUSR1 : SIGTERM);  // stop_request.h
  if (!sent.ok() && !absl::IsNotFound(sent)) return Annotate(sent, job.name);
  return Stopped{job, *std::move(process)};
}

Status AwaitStop(const std::string& state, const Stopped& stopped, const Flags& flags, TimePoint deadline) {
  if (!stopped.process.AwaitEnd(deadline)) {
    const std::string remedy =
        flags.now ? fmt::format("`kill -9 {}` ends it, and the job's next start removes what is left",
                                stopped.job.record->pid)
                  : fmt::format("`muster stop --now {}` does not wait for its pods' grace", stopped.job.name);
    return absl::DeadlineExceededError(
        fmt::format("{} has been told to stop and still runs after {} s; {}", stopped.job.name, flags.timeout, remedy));
  }
  MUSTER_ASSIGN_OR_RETURN(const FoundJob job, FindJob(state, stopped.job.name));
  MUSTER_RETURN_IF_ERROR(job.record.status());
  if (!job.record->ended)
    return absl::UnavailableError(fmt::format("{} was killed before it recorded its end", job.name));
  Say(fmt::format("{}: {}, {}", job.name, job.record->state, DescribeExit(job.record->exit_code)));
  return absl::OkStatus();
}

StatusOr<int> Stop(const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::string state, StateFolder(Environment::OfProcess()));
  std::vector<FoundJob> jobs;
  for (const std::string& name : flags.jobs) {
    MUSTER_ASSIGN_OR_RETURN(FoundJob job, FindJob(state, name));
    jobs.push_back(std::move(job));
  }
  if (flags.all) {
    MUSTER_ASSIGN_OR_RETURN(std::vector<FoundJob> found, FindJobs(state));
    for (FoundJob& job : found) {
      if (job.runs) jobs.push_back(std::move(job));
    }
    if (jobs.empty()) Say("no job runs");
  }
  std::vector<Stopped> stopped;
  int code = 0;
  const auto note = [&code](const Status& status) {
    if (status.ok()) return;
    Say(Message(status));
    code = kExitBadConfiguration;
  };
  for (const FoundJob& job : jobs) {
    auto one = Ask(job, flags.now);
    note(one.status());
    if (one.ok() && *one) stopped.push_back(**std::move(one));
  }
  const TimePoint deadline = MonotonicClock::now() + std::chrono::seconds(flags.timeout);
  for (const Stopped& one : stopped) note(AwaitStop(state, one, flags, deadline));
  return code;
}

int Run(const Flags& flags) {
  const auto code = Stop(flags);
  if (code.ok()) return *code;
  Say(Message(code.status()));
  return kExitBadConfiguration;
}

}  // namespace

void AddStopFlags(CLI::App* app, std::function<int()>* run) {
  auto flags = std::make_shared<Flags>();
  CLI::Option* jobs = app->add_option("JOB", flags->jobs, "names of jobs, as `muster ps` shows them");
  CLI::Option* all = app->add_flag("--all", flags->all, "every job that runs here");
  jobs->excludes(all);
  app->add_flag("--now", flags->now, "kill at once, without the pods' grace");
  app->add_option("--timeout", flags->timeout, "seconds to wait for the end")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app->callback([flags, run, jobs, all] {
    if (jobs->count() + all->count() == 0) throw CLI::RequiredError("JOB, or --all,");
    *run = [flags] { return Run(*flags); };
  });
}

}  // namespace muster::local
