// SPDX-License-Identifier: Apache-2.0
// Texts for people: the status report, and the phrases of the reasons.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "rendezvous/membership_machine.h"

namespace muster::rendezvous {
namespace {

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kGathering:
      return "gathering";
    case Phase::kReforming:
      return "re-forming";
    case Phase::kRunning:
      return "running";
    case Phase::kStopping:
      return "stopping";
    case Phase::kFinished:
      return "finished";
  }
  return "unknown";
}

const char* StateName(const State& state, const Member& member) {
  if (member.leaving) return "leaving";
  if (member.in_round && member.state == NodeState::kSucceeded) return "succeeded";
  if (member.peer == 0) return "lost";
  if (member.ready && state.phase != Phase::kRunning) return "waiting";
  if (member.ready) return member.preparing ? "preparing" : "spare";
  if (state.phase != Phase::kRunning || !member.in_round) return "stopping";
  return "running";
}

const char* PolicyName(RestartPolicy policy) {
  switch (policy) {
    case RestartPolicy::kNever:
      return "never";
    case RestartPolicy::kOnFailure:
      return "on-failure";
    case RestartPolicy::kAlways:
      return "always";
    case RestartPolicy::kExitCode:
      return "exit-code";
  }
  return "unknown";
}

std::string Codes(const std::set<int>& codes) {
  std::vector<std::string> parts;
  for (int code : codes) parts.push_back(fmt::format("{}", code));
  return parts.empty() ? "none" : Join(parts, ",");
}

}  // namespace

StatusReport Describe(const State& state, TimePoint now) {
  StatusReport report;
  report.run_id = state.given.run_id;
  report.phase = PhaseName(state.phase);
  report.round = state.round.id;
  report.restart_count = state.restarts.count;
  if (state.options) {
    report.max_restarts = state.options->max_restarts;
    report.min_nodes = state.options->min_nodes;
    report.max_nodes = state.options->max_nodes;
    report.heartbeat_timeout = state.options->heartbeat_timeout;
  }
  report.reason = state.reason;
  if (state.overcome) {
    report.overcome = *state.overcome;  // the line that explains it, without the texts that it was chosen from
    report.overcome->stderr_reason = OwnLine(*state.overcome);
    report.overcome->message.clear();
    report.overcome->stderr_tail.clear();
  }
  for (const auto& [name, member] : state.members) {
    StatusLine line;
    line.node = name;
    line.host = member.node.host;
    line.state = StateName(state, member);
    if (member.in_round && state.phase != Phase::kGathering) line.rank = member.rank;
    line.slots = member.node.slots;
    line.pid = member.node.pid;
    line.control_address = member.node.control_address;
    line.last_heard = std::max(Duration{}, now - member.last_heard);
    if (auto slow = state.slow.find(name); slow != state.slow.end() && member.in_round) {
      line.remark = fmt::format("slow: {}", slow->second);
    }
    report.nodes.push_back(std::move(line));
  }
  for (const State::Lost& lost : state.lost) {
    report.lost.push_back(
        {lost.node.name, lost.node.host, lost.node.control_address, lost.closed, now - lost.at, now - lost.last_heard});
  }
  report.cut_off = state.silent.AreMajority(state.round);
  std::stable_sort(report.nodes.begin(), report.nodes.end(), [](const StatusLine& a, const StatusLine& b) {
    return a.rank.value_or(1 << 30) < b.rank.value_or(1 << 30);
  });
  return report;
}

std::string NodeName(const Node& node) {
  if (node.host.empty() || node.host == node.name) return fmt::format("node {}", node.name);
  return fmt::format("node {} (host {})", node.name, node.host);
}

std::string Seconds(Duration duration) {
  double millis = std::round(std::chrono::duration<double, std::milli>(duration).count());
  return fmt::format("{:.10g} s", std::max(0.0, millis) / 1000);
}

Difference FirstDifference(const JobOptions& ours, const JobOptions& theirs) {
  auto nodes = [](const JobOptions& o) { return fmt::format("{}:{}", o.min_nodes, o.max_nodes); };
  auto window = [](const JobOptions& o) { return o.restart_window ? Seconds(*o.restart_window) : std::string("none"); };
  auto scale = [](const JobOptions& o) { return std::string(o.scale_up == ScaleUp::kNow ? "now" : "at-restart"); };
  auto kind = [](const JobOptions& o) { return std::string(o.indexed ? "static" : "dynamic"); };
  auto number = [](int value) { return fmt::format("{}", value); };
  const Difference all[] = {
      {"nnodes", nodes(ours), nodes(theirs)},
      {"rendezvous", kind(ours), kind(theirs)},
      {"max restarts", number(ours.max_restarts), number(theirs.max_restarts)},
      {"restart policy", PolicyName(ours.policy), PolicyName(theirs.policy)},
      {"scale-up", scale(ours), scale(theirs)},
      {"retry codes", Codes(ours.overrides.retry), Codes(theirs.overrides.retry)},
      {"fatal codes", Codes(ours.overrides.fatal), Codes(theirs.overrides.fatal)},
      {"restart window", window(ours), window(theirs)},
      {"no-progress limit", number(ours.no_progress_limit), number(theirs.no_progress_limit)},
      {"join timeout", Seconds(ours.join_timeout), Seconds(theirs.join_timeout)},
      {"last call timeout", Seconds(ours.last_call), Seconds(theirs.last_call)},
      {"heartbeat timeout", Seconds(ours.heartbeat_timeout), Seconds(theirs.heartbeat_timeout)},
  };
  for (const Difference& difference : all) {
    if (difference.ours != difference.theirs) return difference;
  }
  return {};
}

}  // namespace muster::rendezvous
