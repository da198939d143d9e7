// SPDX-License-Identifier: Apache-2.0
// `muster report LOGDIR`: one page about the runs whose logs are in a folder, or about a job of `muster local`.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "agent/commands/arguments.h"
#include "agent/commands/commands.h"
#include "agent/page/file_link.h"
#include "agent/page/report_page.h"
#include "agent/report/attempt_history.h"
#include "agent/report/job_record.h"
#include "agent/report/run_summary.h"
#include "base/exit_codes.h"
#include "base/print.h"
#include "base/replace_file.h"
#include "base/settings_file.h"
#include "base/state_folder.h"
#include "base/text.h"

namespace muster::agent {
namespace {

// Writes into a pipe or a device; replaces a regular file.
Status WriteFile(const std::string& path, std::string_view text) {
  struct stat facts {};
  bool exists = stat(path.c_str(), &facts) == 0;
  if (exists && S_ISDIR(facts.st_mode))
    return absl::InvalidArgumentError(fmt::format("{} is a folder; name a file", path));
  if (!exists || S_ISREG(facts.st_mode)) return ReplaceFile(path, text);
  int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot write {}", path));
  Status status = WriteAll(fd, text, path);
  close(fd);
  return status;
}

bool IsFolder(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

// The folder of the local job that the user named, by its folder or by its name; empty: there is none, or it has left
// no records.
std::string FolderOfLocalJob(const std::string& name) {
  struct stat facts {};
  if (IsFolder(name)) {
    return IsFolder(AttemptsFolder(name)) && stat(RunRecordPath(name).c_str(), &facts) == 0 ? name : "";
  }
  const auto state = StateFolder(Environment::OfProcess());
  if (!state.ok() || name.find('/') != std::string::npos || name.starts_with('.')) return "";
  const std::string folder = JobFolder(*state, name);
  return IsFolder(AttemptsFolder(folder)) ? folder : "";
}

// NotFound: there is none, as of a run of an earlier version.
StatusOr<JobRecord> ReadJobRecord(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadSettingsFile(path));
  return ParseJobRecord(text);
}

}  // namespace

int ReportCommand(const Call& call) {
  Arguments arguments("Make an HTML page about the runs whose logs are in a folder", "muster report");
  std::string folder;
  std::string output;
  bool json = false;
  arguments.Text(
      "LOGDIR", &folder,
      "a --log-dir, the folder of one run in it, a folder with the log folders of several nodes, or the name "
      "of a job of `muster local`",
      {.required = true});
  arguments.Text("-o,--output", &output,
                 "file of the page; - is stdout; default: report.html in LOGDIR, or in the folder of the job",
                 {.metavar = "FILE"});
  arguments.Switch("--json", &json, "print the facts as JSON on stdout instead of the page");
  if (auto end = arguments.Parse(call)) return *end;
  if (json && !output.empty()) {
    PrintTo(stderr, "muster report: --json prints on stdout; leave -o out\n");
    return kExitUsage;
  }

  auto fail = [](std::string_view message) {
    PrintTo(stderr, "muster report: {}\n", message);
    return kExitBadConfiguration;
  };
  const std::string job = FolderOfLocalJob(folder);
  if (!job.empty()) {
    folder = AttemptsFolder(job);
    if (output.empty() && !json) output = ReportPath(job);
  }
  auto history = ReadAttemptHistory(folder);
  if (!history.ok()) {
    return fail(
        fmt::format("{}; give the --log-dir of `muster run`, a folder above it, or the name of a job of `muster local` "
                    "that has records",
                    Message(history.status())));
  }
  const auto record = job.empty() ? absl::NotFoundError("") : ReadJobRecord(RunRecordPath(job));
  if (!record.ok() && !absl::IsNotFound(record.status())) {
    history->problems.push_back({RunRecordPath(job), std::string(Message(record.status()))});
  }
  for (const HistoryProblem& problem : history->problems) {
    PrintTo(stderr, "muster report: {}: {}\n", problem.path, problem.what);
  }
  if (history->files.empty() && history->problems.empty()) {
    return fail(
        fmt::format("no attempt.json in {} or below: looked for <run id>/attempt_N/attempt.json, as `muster run "
                    "--log-dir` writes them",
                    folder));
  }
  std::vector<RunSummary> runs = Summarize(history->files);
  if (record.ok()) AddJob(*record, &runs);
  if (json || output == "-") {
    std::string text = json ? ToJson(runs, history->problems) + "\n" : ReportPage(folder, "", runs, history->problems);
    Status status = WriteAll(STDOUT_FILENO, text, "stdout");
    return status.ok() ? 0 : fail(Message(status));
  }
  if (output.empty()) output = folder + (folder.ends_with('/') ? "" : "/") + "report.html";
  const std::string page = ReportPage(folder, FolderOfFile(output), runs, history->problems);
  if (Status status = WriteFile(output, page); !status.ok()) {
    return fail(Message(WithRemedy(status, "-o FILE writes it elsewhere")));
  }
  PrintTo(stdout, "{}\n", output);
  return 0;
}

}  // namespace muster::agent
