// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/train_job_cache.h"

namespace muster::controller {

// A job may have a megabyte of patches.
void TrainJobKind::Trim(TrainJob* job) {
  job->dataset.reset();
  job->model.reset();
  job->trainer.reset();
  job->patches.clear();
  job->meta.labels.clear();
  std::erase_if(job->meta.annotations, [](const auto& one) { return one.first != kAfterAnnotation; });
}

TrainJobCache::TrainJobCache(boost::asio::io_context& loop, ApiClient& client, Events events, std::string ns,
                             RuntimeCache& runtimes)
    : JobCache(loop, client, std::move(events), std::move(ns),
               {{kJobs, kJobSetNameLabel},
                {kPods, kJobSetNameLabel},
                {kServices, kJobSetNameLabel},
                {kConfigMaps, kJobSetNameLabel},
                {kAutoscalers, kJobSetNameLabel},
                {kJobSets, ""}}),
      runtimes_(runtimes) {}

void TrainJobCache::Begin() {
  if (!runtimes_.synced()) AwaitList();
  runtimes_.Listen({.changed =
                        [this](const Meta& meta) {
                          for (const auto& [key, known] : jobs()) {  // wakes the jobs that wait for this runtime
                            if (!known.plan && known.job.runtime.name == meta.name) Wake(key);
                          }
                        },
                    .synced = [this] { Synced(); }});
  runtimes_.Begin();
  JobCache::Begin();
  FollowEvents("involvedObject.kind=Job,reason=FailedCreate");
}

void TrainJobCache::Complete(const TrainJob& job, Observed* observed) {
  observed->hold = HoldOf(job, [&](const std::string& name) {
    const auto found = jobs().find(KeyOf(job.meta.ns, name));
    return found == jobs().end() ? nullptr : &found->second.job;
  });
}

// Wakes the other jobs that may wait for this one, or with which it may close or break a cycle.
void TrainJobCache::Changed(const std::string& key, const TrainJob& before, const TrainJob* now) {
  if (now != nullptr) NoteWaits(key, *now);
  if (now == nullptr || before.meta.uid != now->meta.uid || before.status.Finished() != now->status.Finished() ||
      before.meta.Annotation(kAfterAnnotation) != now->meta.Annotation(kAfterAnnotation)) {
    WakeWaiting(key);
  }
}

void TrainJobCache::NoteWaits(const std::string& key, const TrainJob& job) {
  if (job.status.start_time) return;
  const auto awaited = ReadAfter(job);
  if (!awaited.ok()) return;
  for (const Awaited& each : *awaited) waiting_[KeyOf(job.meta.ns, each.job)].insert(key);
}

// Forgets jobs that have begun or are gone.
void TrainJobCache::WakeWaiting(const std::string& key) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  std::erase_if(found->second, [this](const std::string& waits) {
    const auto job = jobs().find(waits);
    return job == jobs().end() || job->second.job.status.start_time;
  });
  for (const std::string& waits : found->second) Wake(waits);
  if (found->second.empty()) waiting_.erase(found);
}

}  // namespace muster::controller
