// The controller of TrainJobs. Watches them and what belongs to them, decides by reconcile/decide.h and carries the
// decisions out. A job has one pass at a time. Loop thread only.
//
// A pass never sees a state that is older than the writes of an earlier pass, because answers to writes count as events
// of a watch. A job that has ended costs no calls.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "controller/kube/client/api_client.h"
#include "controller/kube/jobs/event_recorder.h"
#include "controller/kube/jobs/passes.h"
#include "controller/kube/jobs/runtime_cache.h"
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
    std::function<bool()> may_act;  // called before each write
  };

  TrainJobs(Means means, Options options);
  ~TrainJobs();
  TrainJobs(const TrainJobs&) = delete;
  TrainJobs& operator=(const TrainJobs&) = delete;

  void Begin();
  void PlanWith(PlanOptions options);  // from now on jobs are planned with these options
  bool synced() const;                 // everything is listed; no pass begins before that

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
