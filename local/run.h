// SPDX-License-Identifier: Apache-2.0
// Runs a job on this machine, from its first pod to its end. Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "local/cluster/controllers.h"
#include "local/container/pod_run.h"
#include "local/drills.h"
#include "local/node_numbers.h"
#include "local/output_watch.h"
#include "local/state/run_record.h"

namespace muster::local {

struct LocalRunOptions {
  std::string id;           // of the run, as in RunRecord
  std::string folder;       // absolute: this run's folder in the state directory
  std::string claims;       // absolute: with a folder for each PersistentVolumeClaim
  std::string work_folder;  // absolute: where containers without a workingDir run
  // The same as in PodPlace.
  std::map<std::string, std::vector<std::string>> entrypoints;
  ImageRoots images;
  std::string shown_folder;
  std::vector<std::string> environment;
  std::vector<Drill> drills;
  NodeNumbers nodes;
};

struct LocalRunEvents {
  std::function<void(const controller::EventText&)> event;  // an event, as `kubectl describe` shows it
  std::function<void(const std::string&)> trouble;          // an error; each text once
  std::function<void(const std::string& path)> ignored;     // a field without effect here, with the reason; once each
  std::function<void(const std::string& what)> drill;       // what a drill has done, or why nothing
  WantedLines lines;                                        // lines of output to report
  std::function<void()> changed;                            // the state of the job or of a pod may have changed
  std::function<void()> over;                               // the job has ended, and none of its processes is left
};

// A pod that has ended.
struct PodEnd {
  std::string host;              // the same for a pod and its replacement
  std::optional<int> exit_code;  // as of ExitCodeOf()
  Duration lived{};
};

class LocalRun {
 public:
  // `world` holds the objects of the user's files. `world` and `job` must outlive the run.
  LocalRun(const PodContext& context, World* world, LocalJob* job, LocalRunOptions options, LocalRunEvents events);
  ~LocalRun();

  // Starts the run. Unavailable: the output cannot be watched for drills.
  Status Begin();
  void Stop();  // SIGTERM to all pods, and SIGKILL after their grace
  void Kill();  // SIGKILL to all pods

  const std::vector<PodEnd>& ends() const;         // in the order of the ends
  const std::vector<PodRecord>& pods() const;      // all pods that have begun, in the order of their start
  const Status& refused() const;                   // an error: a pod cannot start here, which has ended the run
  const std::vector<DrillRecord>& drills() const;  // that have happened, in the order in which they did
  // The drills that have done nothing so far, each with the reason: "node:1@x: no line of output has its text".
  std::vector<std::string> MissedDrills() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::local
