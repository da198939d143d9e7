// SPDX-License-Identifier: Apache-2.0
// TrainJobs as a kind of job (job_cache.h), and their cache, which also knows the runtimes and the jobs that wait for
// others. Loop thread only.
#pragma once

#include <map>
#include <set>
#include <string>

#include "controller/api/labels.h"
#include "controller/kube/jobs/job_cache.h"
#include "controller/kube/jobs/runtime_cache.h"
#include "controller/plan/plan.h"
#include "controller/reconcile/train_job_decide.h"

namespace muster::controller {

struct TrainJobKind {
  using Job = TrainJob;
  using Plan = TrainJobPlan;
  using Decision = TrainJobDecision;
  struct Known : KnownJob<Job, Plan> {
    PackedJson runtime;  // by which it was planned last; null: not planned yet
    // Of status.trainerStatus: what it is to say, and what Muster has written.
    std::optional<TrainingFacts> training, told;
    WallTime training_at{};  // when `training` was new
    bool posts = false;      // its pods post it themselves
  };
  static constexpr char kName[] = "TrainJob";
  static constexpr bool kKeepsWhole = false;
  static constexpr const Resource& kResource = kTrainJobs;
  static std::string JobOf(const Meta& object) { return TrainJobOf(object); }
  static bool IsManaged(const Json& object) { return IsManagedByMuster(object); }
  static StatusOr<Job> Read(const Json& object) { return ReadTrainJob(object); }
  static TrainJobStatus ReadStatus(const Json& status) { return ReadTrainJobStatus(status); }
  static Json WriteStatus(const TrainJobStatus& status) { return WriteTrainJobStatus(status); }
  static void Trim(Job* job);
  static std::string StateOf(const Job& job) { return job.status.state; }
};

class TrainJobCache final : public JobCache<TrainJobKind> {
 public:
  // `runtimes` must outlive the cache.
  TrainJobCache(boost::asio::io_context& loop, ApiClient& client, Events events, std::string ns,
                RuntimeCache& runtimes);
  ~TrainJobCache() override { runtimes_.Listen({}); }

  void Begin() override;

 private:
  void Complete(const TrainJob& job, Observed* observed) override;
  void Changed(const std::string& key, const TrainJob& before, const TrainJob* now) override;
  void NoteWaits(const std::string& key, const TrainJob& job);
  void WakeWaiting(const std::string& key);

  RuntimeCache& runtimes_;
  std::map<std::string, std::set<std::string>> waiting_;  // keys of the jobs that wait for a job, by its key
};

}  // namespace muster::controller
