// SPDX-License-Identifier: Apache-2.0
// `muster top` on a terminal: draws what comes, obeys the keys. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "agent/live/live_view.h"
#include "agent/live/top_state.h"
#include "base/environment.h"
#include "base/status.h"

namespace muster::agent {

class TopSession {
 public:
  // `job_folder`: of a job of `muster local`, else empty. `quit` is called once, with the exit code: 0 for a key, 128 +
  // the number of a signal. It may not destroy the session.
  static StatusOr<std::unique_ptr<TopSession>> Begin(boost::asio::io_context& loop, TopFacts facts,
                                                     std::string job_folder, std::function<void(int)> quit);
  ~TopSession();  // the terminal is as it was before

  void Show(LiveView view);
  void Say(const std::string& trouble);
  void SetPods(std::map<std::string, std::string> pods);
  // The newest view; null: none has come.
  std::shared_ptr<const LiveView> view() const;

 private:
  class Impl;
  explicit TopSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::agent
