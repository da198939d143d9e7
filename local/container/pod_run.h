// SPDX-License-Identifier: Apache-2.0
// Runs one pod as processes of this machine, as the kubelet runs its containers. Loop thread only.
//
// It makes the pod's folders and files, then runs the containers by the rules of pod_lifecycle.h, each in a session of
// its own, with its probes (probe_rule.h). When a container ends, the processes that it has left are killed. Output
// goes to the console with PodView::prefix, and to <folder>/logs/<container>.log; after a restart to .1.log.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "launcher/console.h"
#include "launcher/reaper.h"
#include "local/container/agent_files.h"
#include "local/container/limits.h"
#include "local/container/process_tree.h"
#include "local/network/pod_network.h"
#include "local/pod/program.h"

namespace muster::local {

struct PodContext {
  boost::asio::io_context& loop;
  launcher::Reaper& reaper;
  launcher::Console& console;
  std::string bwrap;              // the path of bubblewrap; empty: containers see this machine's files
  PodNetwork* network = nullptr;  // null: all pods use this machine's network
  const AgentFiles* agent_files = nullptr;
  bool own_pids = false;        // as in SandboxSpec
  PodLimits* limits = nullptr;  // null: no limits are set
  pid_t guard = 0;              // of run_guard.h; 0: none
};

struct PodView {
  std::vector<PodMount> files;       // replacements of /etc/hosts and /etc/resolv.conf
  std::vector<std::string> enter;    // put before a command to run it in the pod's network; empty: this machine's
  std::string prefix;                // put before each line of output
  std::vector<std::string> filters;  // lines that contain one of these are copied
  std::string filter_file;           // to this file
  // Gets results of probes, for people. Called on the loop.
  std::function<void(const std::string& text)> found = [](const std::string&) {};
  // Why a container is about to be stopped by its probe, in the words of the kubelet's Event.
  std::function<void(const std::string& text)> unhealthy = [](const std::string&) {};
  // Gets the pauses before a container starts again, for people. Called on the loop.
  std::function<void(const std::string& text)> waits = [](const std::string&) {};
  // Gets the reason if limits are not set.
  std::function<void(const std::string& text)> unlimited = [](const std::string&) {};
};

class PodRun {
 public:
  // `changed` is called when the pod's status may have changed: on the loop, never from inside a call of this class.
  // Errors: a folder or a file cannot be made; names it.
  static StatusOr<std::unique_ptr<PodRun>> Start(const PodContext& context, PodProgram program, const PodPlace& place,
                                                 PodView view, std::function<void()> changed);
  ~PodRun();  // kills all processes that are left

  // Stops the pod: SIGTERM to its containers, and SIGKILL after the grace.
  void Stop();
  // Stops the pod with SIGKILL at once.
  void Kill();
  // Sends `signal` to the process below the command of the container `name` that is `sought`; without entries, to the
  // command itself. False: there is no such process.
  bool Signal(std::string_view name, int signal, const Sought& sought = {});
  // Makes the same process end with `code`, as ForceExit() does (forced_exit.h). NotFound: there is no such process.
  absl::Status EndWith(std::string_view name, int code, const Sought& sought, std::function<void(absl::Status)> done);
  // True if no container runs, and none starts again.
  bool over() const;
  // The whole status of the pod. `old`: the previous status.
  Json Status(const Json& old) const;

 private:
  class Impl;
  explicit PodRun(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::local
