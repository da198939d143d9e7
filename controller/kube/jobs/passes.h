// SPDX-License-Identifier: Apache-2.0
// Passes over the jobs of one kind. A work queue begins them, each is a coroutine, and a job has one pass at a time.
// Also carries out the result of a decision, in order. Loop thread only.
//
// A large job delays no other tenant's: a pass carries out a bounded number of actions, and the next one of the job
// takes its turn in the queue and decides anew; and the jobs of one namespace share its objects that are created at the
// same time.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "controller/kube/jobs/actions.h"
#include "controller/kube/jobs/event_recorder.h"
#include "controller/kube/jobs/work_queue.h"

namespace muster::controller {

inline constexpr char kNotLeading[] = "another controller leads now";

// What the controller of one kind of job works with. All of it outlives the controller.
struct ControllerContext {
  boost::asio::io_context& loop;
  ApiClient& client;
  MasterKey& master_key;
  EventRecorder& events;
  std::function<bool()> may_act;  // called before each write
};

class Passes : public std::enable_shared_from_this<Passes> {
 public:
  // One pass over the job `key`. `spent`: set to the time for which it blocked the loop.
  using Reconcile = std::function<boost::asio::awaitable<Status>(std::string key, Duration* spent)>;

  // `kind`: for messages, such as "TrainJob".
  Passes(ControllerContext context, WorkQueue::Options options, std::string kind, Reconcile reconcile);

  void Add(const std::string& key, bool urgent) { queue_.Add(key, urgent); }
  void Forget(const std::string& key) { queue_.Forget(key); }

  // Carries out the first actions of `steps`, up to kMostActions, in order (Jobs, pods or Services that follow one
  // another at the same time), writes status and events, and plans the next pass, also if it fails. An error ends it,
  // that of the first action that has failed; after one that is forbidden (RBAC, a quota), the further actions that
  // start no pods are carried out, too. `status`: the whole object to apply; nullopt: it has not changed.
  boost::asio::awaitable<Status> CarryOut(ActionOwner owner, const Steps& steps, std::optional<Json> status,
                                          ObjectCache& cache);

  struct Counts {
    uint64_t all = 0, failed = 0;
    uint64_t waiting = 0, added = 0;  // keys in the queue now; how often one was added
  };
  Counts counts() const { return {counts_.all, counts_.failed, queue_.size(), queue_.added()}; }

  static constexpr size_t kMostActions = 512;  // of one pass; more than a decision's kMostCreations

 private:
  void Begin(const std::string& key, WorkQueue::Done done);
  boost::asio::awaitable<void> Pass(std::string key, WorkQueue::Done done);
  struct Batch;
  boost::asio::awaitable<Status> Act(const ActionOwner& owner, std::span<const Action> actions, ObjectCache& cache);
  boost::asio::awaitable<void> Lane(std::shared_ptr<Batch> batch);
  boost::asio::awaitable<Status> Write(const ActionOwner& owner, const Steps& steps, const Json& status,
                                       ObjectCache& cache);
  void RecordEvents(const ActionOwner& owner, const Steps& steps);

  const ControllerContext context_;
  const std::string kind_;
  const Reconcile reconcile_;
  Counts counts_;
  std::map<std::string, std::shared_ptr<void>> passes_;  // under way
  std::map<std::string, int> lanes_;                     // under way, by namespace
  WorkQueue queue_;
};

// For metrics.
struct JobCounts {
  Passes::Counts passes;
  std::map<std::string, int> jobs_by_state;
};

// The object {apiVersion, kind, metadata, status} to apply.
Json StatusOf(const ActionOwner& owner, Json status);

}  // namespace muster::controller
