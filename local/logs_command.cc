// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/print.h"
#include "base/replace_file.h"
#include "base/state_folder.h"
#include "local/commands.h"
#include "local/state/folder_tree_watch.h"
#include "local/state/job_folders.h"
#include "local/state/job_logs.h"
#include "local/state/process_handle.h"

namespace muster::local {
namespace {

constexpr int kLevels = 3;  // JOB/pods/POD/logs

struct Flags {
  std::string job;
  LogChoice choice;
  bool follow = false, previous = false;
};

constexpr int kAskAgain = 500;  // ms

// Prints the new lines. Aborted: the reader of stdout has closed it.
Status Print(const std::vector<LogSource>& sources, bool all, LogReader* reader, bool* said) {
  for (const LogSource& source : sources) {
    for (std::string text; !(text = reader->Read(source, all)).empty();) {
      *said = true;
      MUSTER_RETURN_IF_ERROR(WriteAll(STDOUT_FILENO, text, "stdout", [](int error, std::string_view what) {
        return error == EPIPE ? absl::AbortedError("") : ErrnoStatus(error, what);
      }));
    }
  }
  return absl::OkStatus();
}

// A detached run has one file with all its output, in the order in which it came.
std::vector<LogSource> SourcesOf(const Flags& flags, const std::string& folder, const RunRecord& record) {
  if (record.detached && !flags.choice.rank && !flags.choice.node) return {{.path = OutputPath(folder)}};
  return LogSources(folder, record, flags.choice);
}

// A run that has just begun has no record yet. Its logs are printed all the same.
RunRecord RecordOf(const FoundJob& job) { return job.record.value_or(RunRecord()); }

Status Follow(const Flags& flags, const std::string& state, FoundJob job, LogReader* reader, bool* said) {
  MUSTER_ASSIGN_OR_RETURN(FolderTreeWatch watch, FolderTreeWatch::Begin(job.folder, kLevels));
  while (true) {
    MUSTER_RETURN_IF_ERROR(watch.Next());
    // Looks for the end before it reads: an ended run writes nothing more, so the last read is complete.
    MUSTER_ASSIGN_OR_RETURN(job, FindJob(state, flags.job));
    const bool over = !job.runs;
    MUSTER_RETURN_IF_ERROR(Print(SourcesOf(flags, job.folder, RecordOf(job)), over, reader, said));
    if (over) return absl::OkStatus();
    // If the process cannot be found, it is in another container, or it has ended and a child that it had just forked
    // still holds the lock. Then only the record and the lock tell the end, and the lock has to be polled.
    auto process = ProcessHandle::Open(static_cast<pid_t>(RecordOf(job).pid), RecordOf(job).pid_started);
    pollfd events[] = {{watch.descriptor(), POLLIN, 0}, {process.ok() ? process->descriptor() : -1, POLLIN, 0}};
    if (poll(events, 2, process.ok() ? -1 : kAskAgain) < 0 && errno != EINTR) return ErrnoStatus(errno, "poll");
  }
}

Status Logs(const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::string state, StateFolder(Environment::OfProcess()));
  MUSTER_ASSIGN_OR_RETURN(FoundJob job, FindJob(state, flags.job));
  if (flags.previous) {
    MUSTER_ASSIGN_OR_RETURN(job, PreviousRun(job));
  }
  const bool chosen = flags.choice.rank || flags.choice.node;
  if (chosen && !job.record.ok()) return job.record.status();
  LogReader reader;
  bool said = false;
  if (flags.follow && job.runs) {
    MUSTER_RETURN_IF_ERROR(Follow(flags, state, job, &reader, &said));
  } else {
    MUSTER_RETURN_IF_ERROR(Print(SourcesOf(flags, job.folder, RecordOf(job)), true, &reader, &said));
  }
  if (!said && chosen) {
    return absl::NotFoundError(fmt::format("{}: no line of {} {}", job.name, flags.choice.rank ? "rank" : "node",
                                           flags.choice.rank.value_or(flags.choice.node.value_or(0))));
  }
  return absl::OkStatus();
}

int Run(const Flags& flags) {
  const Status status = Logs(flags);
  if (status.ok() || absl::IsAborted(status)) return 0;
  PrintTo(stderr, "muster logs: {}\n", Message(status));
  return kExitBadConfiguration;
}

}  // namespace

void AddLogsFlags(CLI::App* app, std::function<int()>* run) {
  auto flags = std::make_shared<Flags>();
  app->add_option("JOB", flags->job, "the name of a job, as `muster ps` shows it")->required();
  app->add_option("--rank", flags->choice.rank, "print only lines of this rank")->check(CLI::NonNegativeNumber);
  app->add_option("--node", flags->choice.node, "print only lines of this node")->check(CLI::NonNegativeNumber);
  app->add_flag("-f,--follow", flags->follow, "follow the output until the job has ended");
  app->add_flag("--previous", flags->previous, "print the logs of the previous run")->excludes("--follow");
  app->callback([flags, run] { *run = [flags] { return Run(*flags); }; });
}

}  // namespace muster::local
