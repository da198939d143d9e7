// The notice that this node will be taken away soon: a file that appears (--preempt-file). A node agent of the cloud, a
// sidecar or a volume of the downward API writes it, earlier than the pod's SIGTERM comes.
//
// Loop thread only. Watches the file's folder by inotify; nothing is polled. A link counts, also one that is swapped as
// ConfigMap volumes swap theirs.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace muster::agent {

class PreemptNotice {
 public:
  // Calls `noticed` once, on the loop, when `path` exists; soon where it does already. An error names the folder that
  // cannot be watched. Destroying it ends the watch, also inside `noticed`.
  static StatusOr<std::unique_ptr<PreemptNotice>> Await(boost::asio::io_context& loop, const std::string& path,
                                                        std::function<void()> noticed);
  ~PreemptNotice();

 private:
  class Impl;
  explicit PreemptNotice(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent
