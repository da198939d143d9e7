// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/print.h"
#include "base/state_folder.h"
#include "base/text.h"
#include "local/commands.h"
#include "local/progress_inquiry.h"
#include "local/state/job_table.h"
#include "local/state/left_processes.h"

namespace muster::local {
namespace {

constexpr Duration kAgentsLimit = std::chrono::seconds(1);

struct Flags {
  bool json = false;
};

int Fail(const Status& why) {
  PrintTo(stderr, "muster ps: {}\n", Message(why));
  return kExitBadConfiguration;
}

int Ps(const Flags& flags) {
  const auto state = StateFolder(Environment::OfProcess());
  if (!state.ok()) return Fail(state.status());
  const auto jobs = FindJobs(*state);
  if (!jobs.ok()) return Fail(jobs.status());
  const ProgressByJob progress = AskProgress(*jobs, kAgentsLimit);
  if (flags.json) {
    PrintTo(stdout, "{}\n", WriteJson(JobsAsJson(*jobs, progress), 1));
    return 0;
  }
  PrintTo(stdout, "{}", JobTable(*jobs, progress, WallNow()));
  for (const FoundJob& job : *jobs) {
    if (!job.lost()) continue;
    const std::vector<pid_t> left = ProcessesOfRun(job.record->id);
    PrintTo(stderr, "muster ps: {}: `muster local` was killed; {}. The logs are in {}\n", job.name,
            left.empty() ? "none of its processes is left"
                         : fmt::format("these of its processes are left: {}; `muster stop {}` ends them",
                                       fmt::join(left, ", "), job.name),
            job.folder);
  }
  return 0;
}

}  // namespace

void AddPsFlags(CLI::App* app, std::function<int()>* run) {
  auto flags = std::make_shared<Flags>();
  app->add_flag("--json", flags->json, "print the records of the jobs as JSON");
  app->callback([flags, run] { *run = [flags] { return Ps(*flags); }; });
}

}  // namespace muster::local
