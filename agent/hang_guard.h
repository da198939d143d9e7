// Watches one attempt's workers for a hang, and keeps evidence before workers of a hanging job are stopped.
//
// The I/O around hang_rule.h: one timer, armed for the moment the rule asks for; then the heartbeat files are looked at
// (stat, and the number in a file that has changed). Off unless --hang-timeout or --hang-log-timeout is given; Gather
// works on every node all the same, for a hang that another node has seen.
//
// Loop thread only. The Reaper and the options must outlive it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "agent/attempt.h"
#include "agent/torch/run_options.h"
#include "base/worker_failure.h"
#include "launcher/reaper.h"

namespace muster::agent {

// All on the loop, never from inside a call.
struct HangEvents {
  // The failures of the workers that hang, the likeliest cause first; once for each Begin. Where the whole job is
  // silent it is one, of no rank (-1).
  std::function<void(std::vector<WorkerFailure>)> hangs;
  // This node's workers have written nothing for the limit, or write again. For the coordinator.
  std::function<void(bool)> silent;
};

class HangGuard {
 public:
  HangGuard(boost::asio::io_context& loop, launcher::Reaper& reaper, const RunOptions& options, HangEvents events);
  ~HangGuard();
  HangGuard(const HangGuard&) = delete;
  HangGuard& operator=(const HangGuard&) = delete;

  // The workers of `attempt` run. It must live until End or the next Begin.
  void Begin(Attempt& attempt);
  // No node's workers write anything any more.
  void AllSilent();
  // Looks no more, and gives up what is being gathered: its `done` is not called.
  void End();

  // Keeps evidence of the workers that live (hang_evidence.h), then calls `done`; at once, but never from inside, where
  // the attempt has no folder. Ends the looks.
  void Gather(Attempt& attempt, std::function<void()> done);
  bool gathering() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent
