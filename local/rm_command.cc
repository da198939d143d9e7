// SPDX-License-Identifier: Apache-2.0
// `muster rm` and `muster prune`: remove what jobs of this machine have left.
#include <memory>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/print.h"
#include "base/state_folder.h"
#include "base/text.h"
#include "local/commands.h"
#include "local/state/job_folders.h"

namespace muster::local {
namespace {

// Goes on after an error, and returns the exit code of the command `word`.
int Remove(const char* word, const std::vector<FoundJob>& jobs) {
  int code = 0;
  for (const FoundJob& job : jobs) {
    const Status removed = RemoveJob(job);
    PrintTo(stderr, "muster {}: {}\n", word,
            removed.ok() ? fmt::format("{}: its logs, records and volumes are removed", job.name)
                         : std::string(Message(removed)));
    if (!removed.ok()) code = kExitBadConfiguration;
  }
  return code;
}

StatusOr<int> RemoveNamed(const std::vector<std::string>& names) {
  MUSTER_ASSIGN_OR_RETURN(const std::string state, StateFolder(Environment::OfProcess()));
  std::vector<FoundJob> jobs;
  for (const std::string& name : names) {
    MUSTER_ASSIGN_OR_RETURN(FoundJob job, FindJob(state, name));
    jobs.push_back(std::move(job));
  }
  return Remove("rm", jobs);
}

StatusOr<int> RemoveEnded() {
  MUSTER_ASSIGN_OR_RETURN(const std::string state, StateFolder(Environment::OfProcess()));
  MUSTER_ASSIGN_OR_RETURN(std::vector<FoundJob> jobs, FindJobs(state));
  std::erase_if(jobs, [](const FoundJob& job) { return job.runs; });
  if (jobs.empty()) PrintTo(stderr, "muster prune: no job has ended\n");
  return Remove("prune", jobs);
}

int CodeOf(const char* word, const StatusOr<int>& code) {
  if (code.ok()) return *code;
  PrintTo(stderr, "muster {}: {}\n", word, Message(code.status()));
  return kExitBadConfiguration;
}

}  // namespace

void AddRmFlags(CLI::App* app, std::function<int()>* run) {
  auto names = std::make_shared<std::vector<std::string>>();
  app->add_option("JOB", *names, "names of jobs, as `muster ps` shows them")->required();
  app->callback([names, run] { *run = [names] { return CodeOf("rm", RemoveNamed(*names)); }; });
}

void AddPruneFlags(CLI::App* app, std::function<int()>* run) {
  app->callback([run] { *run = [] { return CodeOf("prune", RemoveEnded()); }; });
}

}  // namespace muster::local
