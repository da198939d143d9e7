// The notice that this node will be taken away soon (--preempt-file): a file that appears, or what a cloud's metadata
// service says. Either comes earlier than the pod's SIGTERM.
//
// Loop thread only. A file's folder is watched by inotify; nothing is polled. A link counts, also one that is swapped
// as ConfigMap volumes swap theirs. A URL is asked again and again, since the services tell nobody by themselves
// (preempt_rules.h has the rules and their sources).
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
  // Says what was noticed: "/etc/podinfo/preempt appeared", "http://...: terminate at 2026-01-01T00:00:00Z".
  using Noticed = std::function<void(const std::string& what)>;

  // Calls `noticed` once, on the loop: when the file `path` exists, soon where it does already; or when the service at
  // the URL `path` ("http://...") says so. An error names the folder that cannot be watched, or what is wrong with the
  // URL. That a service cannot be asked is no error: it is said once, when it changes, and asked again after
  // `interval`. Destroying it ends the watch, also inside `noticed`.
  static StatusOr<std::unique_ptr<PreemptNotice>> Await(boost::asio::io_context& loop, const std::string& path,
                                                        Duration interval, Noticed noticed);
  virtual ~PreemptNotice() = default;
};

}  // namespace muster::agent
