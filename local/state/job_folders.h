// SPDX-License-Identifier: Apache-2.0
// The folders of jobs in the state directory: which jobs run, and how the others ended.
//
//   STATE/jobs/JOB/lock         held by the process that runs the job, as long as it lives
//   STATE/jobs/JOB/run.json     run_record.h, replaced as a whole at each change
//   STATE/jobs/JOB/output.log   the output of a detached run
//   STATE/jobs/JOB/pods/POD     logs and volumes; these are for the user alone (0700)
//   STATE/jobs/JOB/attempts/POD records of the pod's agent
//   STATE/jobs/JOB/report.html  the page of `muster report` about them
//   STATE/jobs/JOB/previous     the same of the previous run, without volumes
//   STATE/claims/NAME           PersistentVolumeClaims
//
// If the lock is free and the record has no end, the run was killed. Such a run is called lost. Its guard (run_guard.h)
// ends its processes and removes its volumes; if the guard was killed, too, the job's next start does, or ClearLost().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/descriptors.h"
#include "base/status.h"
#include "local/state/run_record.h"

namespace muster::local {

struct FoundJob {
  std::string name, folder;
  bool runs = false;
  StatusOr<RunRecord> record;  // NotFound: it has none yet; other errors name the file

  bool lost() const { return !runs && record.ok() && !record->ended; }
};

// All jobs, in the order of their names; empty if there is no such folder. Unavailable: it cannot be read.
StatusOr<std::vector<FoundJob>> FindJobs(const std::string& state);
// NotFound: no job has that name; says which ones may be meant, else which ones there are.
StatusOr<FoundJob> FindJob(const std::string& state, const std::string& name);

// The run of the job before the one that FindJob() gives. NotFound: there was none.
StatusOr<FoundJob> PreviousRun(const FoundJob& job);

std::string OutputPath(const std::string& job_folder);  // of a detached run

struct TakenFolder {
  std::string path;
  Descriptor lock;                // held until all copies of the descriptor, also those of forks, are closed
  std::optional<RunRecord> lost;  // the record of the previous run, if that was killed
};

// Creates and locks the job's folder. Moves logs and records of the previous run to `previous`, and removes the rest,
// also of a killed run, whose processes it ends. FailedPrecondition: the job runs already, or as of CheckStateFolder().
// Unavailable: no folder, or as of KillRun().
StatusOr<TakenFolder> TakeJobFolder(const std::string& state, const std::string& job);

// Makes the folder `pods` of a run that begins, and opens it.
StatusOr<Descriptor> MakePodsFolder(const std::string& job_folder);

// Ends what a killed run has left: processes and volumes. Errors: as of TakeJobFolder().
Status ClearLost(const FoundJob& job);

// Removes the job's folder, after ClearLost(). Errors: as of TakeJobFolder(), or a file cannot be removed.
Status RemoveJob(const FoundJob& job);

// Removes what only a run needs: all but the logs in the pods' folders. So no volume, and no copy of a Secret, is left.
void RemoveVolumes(const std::string& job_folder);
void RemoveVolumesBelow(const std::string& pods);  // `pods`: the path of the folder `pods`

Status WriteRunRecord(const std::string& job_folder, const RunRecord& record);

}  // namespace muster::local
