// TrainJobs kept as they ask to be: what belongs to them is watched, reconcile/decide.h decides, and its actions are
// carried out, one pass a job at a time. Loop thread only.
//
// What a pass goes by is never older than what an earlier pass has written: answers to writes count as events of a
// watch. A job that has ended costs no call.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "controller/kube/api_client.h"
#include "controller/kube/event_recorder.h"
#include "controller/kube/passes.h"
#include "controller/kube/runtime_cache.h"
#include "controller/plan/plan.h"

namespace muster::controller {

class TrainJobs {
 public:
  struct Options {
    PlanOptions plan;
    std::string ns;  // empty: all namespaces
    WorkQueue::Options queue;
  };
  struct Means {
    boost::asio::io_context& loop;
    ApiClient& client;
    RuntimeCache& runtimes;
    EventRecorder& events;
    std::function<bool()> may_act;  // asked before each write
  };

  TrainJobs(Means means, Options options);
  ~TrainJobs();
  TrainJobs(const TrainJobs&) = delete;
  TrainJobs& operator=(const TrainJobs&) = delete;

  void Begin();
  void PlanWith(PlanOptions options);  // jobs are planned so from now on
  bool synced() const;                 // all is listed; no pass begins before

  struct Counts {
    Passes::Counts passes;
    std::map<std::string, int> jobs_by_state;
  };
  Counts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::controller
