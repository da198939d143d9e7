// SPDX-License-Identifier: Apache-2.0
// Notices that this node will be taken away soon (--preempt-file): by a file that appears, or by the answer of a
// cloud's metadata service. Both come earlier than the pod's SIGTERM.
//
// Loop thread only. A file is not polled: inotify watches its folder. A symbolic link counts, also one that is replaced
// as in a ConfigMap volume. A URL is polled: the services notify nobody (rules and sources: preempt_rules.h).
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace muster::agent {

class PreemptNotice {
 public:
  // `what` was noticed: "/etc/podinfo/preempt appeared", "http://...: terminate at 2026-01-01T00:00:00Z".
  using Noticed = std::function<void(const std::string& what)>;

  // Calls `noticed` once, on the loop: when the file `path` exists (soon, if it does already), or when the service at
  // the URL `path` ("http://...") says that this node will end. An error names the folder that cannot be watched, or
  // what is wrong with the URL. A service that cannot be reached is logged, once until the trouble changes, and asked
  // again after `interval`. Destroying the object ends the watch, also inside `noticed`.
  static StatusOr<std::unique_ptr<PreemptNotice>> Await(boost::asio::io_context& loop, const std::string& path,
                                                        Duration interval, Noticed noticed);
  virtual ~PreemptNotice() = default;
};

}  // namespace muster::agent
