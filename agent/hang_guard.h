// SPDX-License-Identifier: Apache-2.0
// Watches one attempt's workers for a hang, and records evidence before workers of a hanging job are stopped.
//
// Does the I/O for hang_rule.h: one timer, armed for the moment that the rule asks for. When it fires, the guard looks
// at the heartbeat files (stat, and the number in a file that has changed). It watches only if --hang-timeout or
// --hang-log-timeout is given. Gather() works without them, since another node may have seen the hang.
//
// Loop thread only. The Reaper and the options must outlive it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "agent/attempt.h"
#include "agent/workers/hang_rule.h"
#include "base/worker_failure.h"
#include "launcher/reaper.h"

namespace muster::agent {

// All are called on the loop, never from within a call of HangGuard.
struct HangEvents {
  // The failures of the workers that hang, the likeliest cause first. Called at most once for each Begin(). If the
  // whole job is silent, there is one failure, with rank -1.
  std::function<void(std::vector<WorkerFailure>)> hangs;
  // True: this node's workers have written nothing for the limit. False: they write again. For the coordinator.
  std::function<void(bool)> silent;
};

class HangGuard {
 public:
  HangGuard(boost::asio::io_context& loop, launcher::Reaper& reaper, const HangOptions& options, HangEvents events);
  ~HangGuard();
  HangGuard(const HangGuard&) = delete;
  HangGuard& operator=(const HangGuard&) = delete;

  // Begins to watch the workers of `attempt`, which must live until End() or the next Begin().
  void Begin(Attempt& attempt);
  // The coordinator has found that no worker of any node writes.
  void AllSilent();
  // Stops watching and gathering; `done` of a Gather() under way is not called.
  void End();

  // Stops watching, records evidence of the workers that still run (hang_evidence.h), writes its head to the log, then
  // calls `done`. If there is nothing to record (no worker runs, or the attempt has no folder), posts `done` at once.
  void Gather(Attempt& attempt, std::function<void()> done);
  bool gathering() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent
