// SPDX-License-Identifier: Apache-2.0
// What the script imports, as far as it is known. Loop thread only.
//
// It comes from --standby-imports; else from the best source so far: a worker of this script, here or on another node,
// in this run or its last one (kept_imports.h); else the script's text (probe.py). A better source replaces a worse
// one. A worker here tells it while it runs (learner.py), and its list is kept for the next run.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/standby/frames.h"
#include "agent/standby/kept_imports.h"
#include "agent/standby/plan.h"
#include "agent/standby/python_channel.h"
#include "agent/workers/run_options.h"
#include "launcher/worker_group.h"

namespace muster::agent::standby {

class Learning {
 public:
  struct Events {
    std::function<void()> told;      // the worker that runs has told more
    std::function<void()> replaced;  // the names that were known do not count any more
  };
  // `options` must outlive it.
  Learning(boost::asio::io_context& loop, const RunOptions& options, Events events)
      : loop_(loop), options_(options), events_(std::move(events)) {
    for (const std::string& name : options.standby.imports) imports_.Add(name);
  }
  Learning(const Learning&) = delete;
  Learning& operator=(const Learning&) = delete;

  // In order, with the entries of learner.py.
  const std::vector<std::string>& names() const { return imports_.names(); }
  // A worker of this node has told them in this run.
  bool from_worker() const { return source_ == Source::kWorker; }
  // Some worker has told them: also one of another node, or of the last run.
  bool from_run() const { return source_ >= Source::kLastRun; }

  // --- from the worker with local rank 0 ---

  // The worker that tells, if one does, is not heard any more.
  void Stop() { learner_.reset(); }
  // A worker is still to tell what it imports.
  bool wants_worker() const { return !complete_; }
  // Workers were to tell and did not run sitecustomize.py.
  bool unseen() const;
  // A cold worker: changes it so that it tells. Borrows `archive` (start_archive.h) until it has been started.
  void Ask(launcher::WorkerSpec* worker, int archive);
  // The worker with this pid began in a standby, and tells through `channel` what the standby has not imported. So what
  // is known stays, and is the beginning of its list.
  void Follow(std::unique_ptr<PythonChannel> channel, pid_t pid);
  // Standbys have been made of what it has told: no further worker is to tell.
  void Complete() { complete_ = true; }

  // --- from elsewhere ---

  // A list of another node would be better than what is known.
  bool wants_imports() const { return source_ < Source::kOtherNode && options_.standby.imports.empty(); }
  void HearNode(const std::vector<std::string>& names);
  void HearText(const std::vector<std::string>& names);
  // What the probe of this Python has found: reads the list of the last run, if that would be better.
  void HearFacts(const StatusOr<ScriptFacts>& facts);

  // --- what standbys say ---

  // Importing `module` does what only the script may do. It is left out (kUnfit), or it and all that comes after it
  // (kEnd). False: that were too many modules.
  bool LeaveOut(Letter letter, const std::string& module, const std::string& does);
  // Keeps the list of a worker for the next run, if it has grown.
  void Keep();

 private:
  // A later one is better.
  enum class Source { kNone, kText, kLastRun, kOtherNode, kWorker };
  struct Learner {
    std::unique_ptr<PythonChannel> channel;
    pid_t pid = -1;
  };

  PythonChannel::Events LearnerEvents();
  void OnFrame(const Frame& frame);
  void Take(Source source, const std::vector<std::string>& names);

  boost::asio::io_context& loop_;
  const RunOptions& options_;
  const Events events_;
  std::optional<Learner> learner_;  // the worker that tells
  int tries_ = 0;
  bool seen_ = false;  // a worker's Python has run sitecustomize.py
  bool complete_ = false;
  Source source_ = Source::kNone;
  Imports imports_;
  std::optional<ScriptFacts> facts_;
  size_t kept_ = 0;  // names, in the file
};

}  // namespace muster::agent::standby
