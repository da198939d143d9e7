// One pod as processes of this machine: what the kubelet does with its containers. Loop thread only.
//
// Folders and files are made, then the containers run as pod_lifecycle.h says, each in a session of its own; what a
// container leaves behind ends with it. Its probes are asked while it runs (probe_rule.h). Output goes to the console,
// each line with the pod's name before it, and to <folder>/logs/<container>.log; when it starts again, .1.log.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/local/agent_files.h"
#include "controller/local/pod_limits.h"
#include "controller/local/pod_network.h"
#include "controller/local/pod_program.h"
#include "launcher/console.h"
#include "launcher/reaper.h"

namespace muster::controller {

struct PodMeans {
  boost::asio::io_context& loop;
  launcher::Reaper& reaper;
  launcher::Console& console;
  std::string bwrap;              // the path of bubblewrap; empty: containers see this machine's files
  PodNetwork* network = nullptr;  // null: all pods have this machine's
  const AgentFiles* agent_files = nullptr;
  bool own_pids = false;        // SandboxSpec's
  PodLimits* limits = nullptr;  // null: none are set
};

struct PodView {
  std::vector<PodMount> files;       // that stand for /etc/hosts and /etc/resolv.conf
  std::vector<std::string> enter;    // the words before a command that runs in the pod's network; none: this machine's
  std::string prefix;                // before each line of output
  std::vector<std::string> filters;  // lines that have one of these are copied
  std::string filter_file;           // to this file
  // What a probe has found, for people; on the loop.
  std::function<void(const std::string& text)> found = [](const std::string&) {};
  // Why limits are not set.
  std::function<void(const std::string& text)> unlimited = [](const std::string&) {};
};

class PodRun {
 public:
  // `changed`: its status is another one now; called on the loop, never from inside a call. Errors: a folder or a file
  // cannot be made; names it.
  static StatusOr<std::unique_ptr<PodRun>> Start(PodMeans means, PodProgram program, const PodPlace& place,
                                                 PodView view, std::function<void()> changed);
  ~PodRun();  // kills what is left

  // It is deleted: its containers get SIGTERM, and SIGKILL after its grace.
  void Stop();
  // The same, with SIGKILL at once.
  void Kill();
  // To the command of the container `name`, or to the process below it that was started with all of `entries`
  // ("RANK=3"). False: there is none.
  bool Signal(std::string_view name, int signal, const std::vector<std::string>& entries = {});
  // The same process ends with `code`, as if by itself (forced_exit.h); `done` then. NotFound: there is none.
  absl::Status EndWith(std::string_view name, int code, const std::vector<std::string>& entries,
                       std::function<void(absl::Status)> done);
  // No container runs, and none starts again.
  bool over() const;
  // The pod's status, whole. `old`: the one before.
  Json Status(const Json& old) const;

 private:
  class Impl;
  explicit PodRun(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::controller
