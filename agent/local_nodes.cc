// SPDX-License-Identifier: Apache-2.0
#include "agent/local_nodes.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <memory>
#include <set>

#include "agent/flags/early_signals.h"
#include "agent/flags/service_links.h"
#include "agent/start_check.h"
#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/host_names.h"
#include "base/log.h"
#include "base/text.h"
#include "launcher/reaper.h"
#include "launcher/worker_group.h"
#include "net/credentials.h"
#include "rendezvous/coordinator.h"
#include "rendezvous/coordinator_service.h"

namespace muster::agent {
namespace {

constexpr std::string_view kHere = "127.0.0.1";

// One simulated node. Has a WorkerGroup of its own, so that killing one node harms no other.
struct LocalNode {
  std::unique_ptr<launcher::WorkerGroup> group;
  bool gone = false;
};

std::string_view NameOf(CalledAs called_as) {
  if (called_as == CalledAs::kExec) return "exec";
  return called_as == CalledAs::kLaunch ? "launch" : "run";
}

// The environment of a node, for its subcommand and arguments `node`. Lacks the variables that say which node it is,
// and those that the arguments overrule, so that not every node warns. Only node 0 gets TORCHELASTIC_ERROR_FILE: one
// writer.
std::vector<std::string> NodeEnvironment(const std::vector<std::string>& node, CalledAs called_as, int index) {
  std::set<std::string_view> unheard = {"PET_STANDALONE", "PET_NODE_RANK"};
  if (index > 0) unheard.insert("TORCHELASTIC_ERROR_FILE");
  Environment environment = WithoutLinks(Environment::OfProcess());
  auto parsed = ParseRun({node.begin() + 1, node.end()}, environment, called_as);
  if (parsed.ok()) {
    for (const Overruled& one : parsed->overruled) unheard.insert(one.variable);
  }
  for (std::string_view name : unheard) environment.Unset(name);
  return environment.entries();
}

// True for --standalone in any spelling. No value of an option begins so.
bool IsStandalone(std::string_view argument, CalledAs called_as) {
  if (!argument.starts_with("--")) return false;
  auto flag = FindFlag(argument.substr(2), called_as);
  return flag.ok() && (*flag)->name == "standalone";
}

StatusOr<std::unique_ptr<rendezvous::CoordinatorService>> ServeNodes(boost::asio::io_context& loop,
                                                                     rendezvous::Coordinator& coordinator,
                                                                     const RunOptions::Job& job) {
  rendezvous::CoordinatorService::Options serving;
  serving.host = kHere;
  serving.port = job.endpoint.port;
  MUSTER_ASSIGN_OR_RETURN(serving.credentials, net::ReadCredentials(job.credentials));
  auto service = rendezvous::CoordinatorService::Serve(loop, coordinator, serving);
  if (service.ok()) return service;
  return Annotate(service.status(),
                  fmt::format("the nodes on this machine cannot meet at {}", JoinHostPort(kHere, serving.port)));
}

}  // namespace

std::vector<std::string> LocalNodeArguments(const ParsedRun& parsed, const std::vector<std::string>& arguments,
                                            CalledAs called_as, int index, int port) {
  const RunOptions& options = parsed.options;
  std::vector<std::string> node = {std::string(NameOf(called_as))};
  for (size_t i = 0; i < parsed.script_at; ++i) {
    if (arguments[i] != "--" && !IsStandalone(arguments[i], called_as)) node.push_back(arguments[i]);
  }
  auto add = [&](std::string_view flag, std::string value) { node.push_back(fmt::format("{}={}", flag, value)); };
  add("--nnodes", fmt::format("{}:{}", options.job.shared.min_nodes, options.job.shared.max_nodes));
  add("--nodes-on-this-machine", "0");
  add("--rdzv-backend", "c10d");
  add("--rdzv-endpoint", JoinHostPort(kHere, port));
  add("--rdzv-id", options.job.run_id);
  add("--rdzv-conf", options.job.rdzv_conf.empty() ? "is_host=0" : options.job.rdzv_conf + ",is_host=0");
  add("--local-addr", std::string(kHere));
  add("--node-name", fmt::format("node-{}", index));
  add("--node-rank", std::to_string(index));
  // A fixed port has room for one node; with port 0 each node gets a port of its own.
  if (options.http.on && options.http.required && options.http.port != 0 && index > 0) add("--http-port", "off");
  if (const std::string logs = options.logs.Folder(); !logs.empty()) {
    add("--log-dir", fmt::format("{}/node-{}", logs, index));
  }
  node.push_back("--");
  node.push_back(options.command.script);
  node.insert(node.end(), options.command.script_args.begin(), options.command.script_args.end());
  return node;
}

int RunLocalNodes(const ParsedRun& parsed, const std::vector<std::string>& arguments, CalledAs called_as) {
  const RunOptions& options = parsed.options;
  boost::asio::io_context loop(1);
  launcher::Reaper reaper(loop);
  launcher::Console console(loop);
  console.RouteLog();
  rendezvous::Coordinator coordinator(loop, {.self_node = "", .self_address = "", .only_run_id = options.job.run_id});
  auto service = ServeNodes(loop, coordinator, options.job);
  if (!service.ok()) {
    log::Error(Message(service.status()));
    return RefusalExitCode(service.status());
  }

  int count = options.job.nodes_on_this_machine;
  log::Info(fmt::format("{} on this machine; the rendezvous is at {}", Counted(count, "node"),
                        JoinHostPort(kHere, (*service)->port())));
  int running = count;
  int code = 0;
  std::vector<LocalNode> nodes(static_cast<size_t>(count));
  for (int index = 0; index < count; ++index) {
    LocalNode& node = nodes[static_cast<size_t>(index)];
    launcher::WorkerGroupEvents events;
    events.worker_exited = [&, index](const launcher::ExitRecord& record) {
      code = record.exit_code;
      if (code != 0) log::Info(fmt::format("node-{} ended: {}", index, DescribeEnd(code, record.signal)));
    };
    events.all_gone = [&, index] {
      nodes[static_cast<size_t>(index)].gone = true;
      if (--running == 0) loop.stop();
    };
    node.group = std::make_unique<launcher::WorkerGroup>(loop, reaper, console, std::move(events));
    launcher::WorkerSpec spec;
    spec.local_rank = index;
    spec.argv = LocalNodeArguments(parsed, arguments, called_as, index, (*service)->port());
    spec.environment = NodeEnvironment(spec.argv, called_as, index);
    spec.argv.insert(spec.argv.begin(), "/proc/self/exe");
    std::string prefix = fmt::format("[node-{}] ", index);
    spec.output.out.prefix = prefix;
    spec.output.err.prefix = prefix;
    if (Status status = node.group->Start({spec}); !status.ok()) {
      log::Error(Message(status));
      return StartExitCode(status);
    }
    log::Info(fmt::format("node-{} is process {}", index, node.group->pids().front()));
  }

  int interrupted = 0;
  const std::set<int> endings = {SIGINT, SIGTERM, SIGHUP};
  std::vector<int> heard(endings.begin(), endings.end());
  heard.insert(heard.end(), options.signals.to_forward.begin(), options.signals.to_forward.end());
  boost::asio::signal_set signals(loop);
  AddSignals(signals, heard);
  std::function<void()> await = [&] {
    signals.async_wait([&](boost::system::error_code error, int signal) {
      if (error) return;
      // The agents themselves tell a first signal from a second one.
      if (endings.contains(signal)) interrupted = signal;
      for (LocalNode& node : nodes) node.group->Signal(signal);
      await();
    });
  };
  await();
  ReleaseSignals(heard);
  loop.run();
  console.Drain(std::chrono::seconds(2));
  return interrupted != 0 ? 128 + interrupted : code;
}

}  // namespace muster::agent
