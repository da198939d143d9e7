// Passes over the jobs of one kind: one at a time for a job, each a coroutine, begun by a work queue; and what a
// decision comes to, carried out in its order. Loop thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/kube/actions.h"
#include "controller/kube/event_recorder.h"
#include "controller/kube/work_queue.h"

namespace muster::controller {

inline constexpr char kNotLeading[] = "another controller leads now";

// What a kind of job needs to be served.
struct ServingMeans {
  boost::asio::io_context& loop;
  ApiClient& client;
  EventRecorder& events;
  std::function<bool()> may_act;  // asked before each write
};

class Passes : public std::enable_shared_from_this<Passes> {
 public:
  // One pass over the job `key`. `spent`: how long it held up the loop.
  using Reconcile = std::function<boost::asio::awaitable<Status>(std::string key, Duration* spent)>;

  // `kind`: for messages: "TrainJob".
  Passes(ServingMeans means, WorkQueue::Options options, std::string kind, Reconcile reconcile);

  void Add(const std::string& key, bool urgent) { queue_.Add(key, urgent); }
  void Forget(const std::string& key) { queue_.Forget(key); }

  // The actions of `steps` (pods, and Services, that follow one another are created several at a time), the status
  // where it has changed, the events, and when the next pass is due. `status`: the whole object to apply; none: it has
  // not changed.
  boost::asio::awaitable<Status> CarryOut(ActionOwner owner, const Steps& steps, std::optional<Json> status,
                                          ObjectCache& cache);

  struct Counts {
    uint64_t all = 0, failed = 0;
  };
  Counts counts() const { return counts_; }

 private:
  void Begin(const std::string& key, WorkQueue::Done done);
  boost::asio::awaitable<void> Pass(std::string key, WorkQueue::Done done);
  struct Batch;
  boost::asio::awaitable<Status> Act(const ActionOwner& owner, const std::vector<Action>& actions, ObjectCache& cache);
  boost::asio::awaitable<void> Lane(std::shared_ptr<Batch> batch);
  boost::asio::awaitable<Status> Write(const ActionOwner& owner, const Steps& steps, const Json& status,
                                       ObjectCache& cache);
  void Tell(const ActionOwner& owner, const Steps& steps);

  const ServingMeans means_;
  const std::string kind_;
  const Reconcile reconcile_;
  Counts counts_;
  std::map<std::string, std::shared_ptr<void>> passes_;  // under way
  WorkQueue queue_;
};

// {apiVersion, kind, metadata, status} to apply.
Json StatusOf(const ActionOwner& owner, Json status);

}  // namespace muster::controller
