// A job on this machine, from its first pod to its end. Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "controller/local/controllers.h"
#include "controller/local/drills.h"
#include "controller/local/output_watch.h"
#include "controller/local/pod_run.h"
#include "controller/local/run_record.h"

namespace muster::controller {

struct LocalRunOptions {
  std::string folder;       // absolute: of this run, in the state directory
  std::string claims;       // absolute: has a folder for each PersistentVolumeClaim
  std::string work_folder;  // absolute: where containers without a workingDir run
  // As PodPlace has them.
  std::map<std::string, std::vector<std::string>> entrypoints;
  ImageRoots images;
  std::string shown_folder;
  std::vector<std::string> environment;
  std::vector<Drill> drills;
};

struct LocalRunEvents {
  std::function<void(const EventText&)> event;           // what kubectl describe would show
  std::function<void(const std::string&)> trouble;       // what could not be done, once each
  std::function<void(const std::string& path)> ignored;  // a field that is not honoured, once each
  std::function<void(const std::string& what)> drill;    // what a drill has done
  WantedLines lines;                                     // of output
  std::function<void()> changed;                         // the job's state or a pod's may be another one now
  std::function<void()> over;                            // the job has ended, and no process of it is left
};

// A pod that has ended.
struct PodEnd {
  std::string host;  // stays when a pod is made anew
  int exit_code = 0;
  Duration lived{};
};

class LocalRun {
 public:
  // `world` has the objects of the user's files; it and `job` outlive the run.
  LocalRun(PodMeans means, World* world, LocalJob* job, LocalRunOptions options, LocalRunEvents events);
  ~LocalRun();

  // Unavailable: the output cannot be watched for drills.
  Status Begin();
  // All pods get SIGTERM, and SIGKILL after their grace; then it is over. A second call kills at once.
  void Stop();

  const std::vector<PodEnd>& ends() const;     // in their order
  const std::vector<PodRecord>& pods() const;  // all that have begun, in their order

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::controller
