// The folders of jobs in the state directory, on disk: who runs, what became of the others.
//
//   STATE/jobs/JOB/lock         held by the process that runs the job, as long as it lives
//   STATE/jobs/JOB/run.json     run_record.h, replaced as a whole at each change
//   STATE/jobs/JOB/output.log   what a detached run has said
//   STATE/jobs/JOB/pods/POD     logs and volumes
//   STATE/jobs/JOB/attempts/POD records of the pod's agent
//   STATE/jobs/JOB/report.html  the page made from them
//   STATE/jobs/JOB/previous     all that, without volumes, of the run before
//   STATE/claims/NAME           PersistentVolumeClaims
//
// A run whose lock is free and whose record has no end was killed: it is lost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/descriptors.h"
#include "base/status.h"
#include "controller/local/run_record.h"

namespace muster::controller {

struct FoundJob {
  std::string name, folder;
  bool runs = false;
  StatusOr<RunRecord> record;  // NotFound: it has none yet; other errors name the file

  bool lost() const { return !runs && record.ok() && !record->ended; }
};

// In the order of their names; none where there is no such folder. Unavailable: it cannot be read.
StatusOr<std::vector<FoundJob>> FindJobs(const std::string& state);
// NotFound: no job has that name; says which ones may be meant, else which ones there are.
StatusOr<FoundJob> FindJob(const std::string& state, const std::string& name);

// The run of the job before the one that FindJob() gives. NotFound: there was none.
StatusOr<FoundJob> PreviousRun(const FoundJob& job);

std::string OutputPath(const std::string& job_folder);  // of a detached run

struct TakenFolder {
  std::string path;
  Descriptor lock;                // the job is this process's until it is closed, in all copies that a fork makes
  std::optional<RunRecord> lost;  // the run before was killed
};

// Makes the job's folder, locks it, moves what is worth keeping of the run before to `previous`, and removes the rest,
// also what a kill -9 has left. FailedPrecondition: the job runs already. Unavailable: the folder cannot be made.
StatusOr<TakenFolder> TakeJobFolder(const std::string& state, const std::string& job);

// Removes what only a run needs: of the pods' folders all but the logs, so volumes, and with them copies of Secrets.
void RemoveVolumes(const std::string& job_folder);

Status WriteRunRecord(const std::string& job_folder, const RunRecord& record);

}  // namespace muster::controller
