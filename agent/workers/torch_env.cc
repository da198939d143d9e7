// SPDX-License-Identifier: Apache-2.0
#include "agent/workers/torch_env.h"

#include <map>
#include <string_view>
#include <unordered_set>

#include "agent/workers/flight_recorder.h"
#include "base/text.h"

namespace muster::agent {
namespace {

// Only with several workers: if each of them starts a thread per CPU, the machine is overloaded.
bool SetsOmp(const Environment& agent_environment, int nproc) {
  return nproc > 1 && !agent_environment.Get("OMP_NUM_THREADS");
}

// The device of a worker with --virtual-local-rank. FailedPrecondition: CUDA_VISIBLE_DEVICES has fewer devices.
StatusOr<std::string> VirtualDevice(const Environment& agent_environment, int local_rank) {
  auto list = agent_environment.Get("CUDA_VISIBLE_DEVICES");
  if (!list) return std::to_string(local_rank);
  std::vector<std::string_view> devices = Split(*list, ',');
  if (static_cast<size_t>(local_rank) >= devices.size()) {
    return absl::FailedPreconditionError(fmt::format(
        "--virtual-local-rank: CUDA_VISIBLE_DEVICES={} names {}, none for local rank {}; start fewer workers "
        "or make more devices visible",
        *list, Counted(static_cast<int64_t>(devices.size()), "device"), local_rank));
  }
  return std::string(Strip(devices[static_cast<size_t>(local_rank)]));
}

}  // namespace

StatusOr<std::vector<std::string>> WorkerEnvironment(const Environment& agent_environment, const RunOptions& options,
                                                     const rendezvous::Assignment& assignment, int local_rank,
                                                     const AttemptPaths& paths) {
  const rendezvous::Seat& seat = assignment.seat;
  std::map<std::string, std::string, std::less<>> own = {
      {"LOCAL_RANK", std::to_string(options.workers.virtual_local_rank ? 0 : local_rank)},
      {"RANK", std::to_string(seat.first_rank + local_rank)},
      {"GROUP_RANK", std::to_string(assignment.node_rank)},
      {"ROLE_RANK", std::to_string(seat.first_role_rank + local_rank)},
      {"ROLE_NAME", options.workers.role},
      {"LOCAL_WORLD_SIZE", std::to_string(seat.node.slots)},
      {"WORLD_SIZE", std::to_string(assignment.world_size)},
      {"GROUP_WORLD_SIZE", std::to_string(assignment.node_count)},
      {"ROLE_WORLD_SIZE", std::to_string(seat.role_world_size)},
      {"MASTER_ADDR", assignment.master_host},
      {"MASTER_PORT", std::to_string(assignment.master_port)},
      {"TORCHELASTIC_RESTART_COUNT", std::to_string(assignment.restart_count)},
      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(assignment.max_restarts)},
      {"TORCHELASTIC_RUN_ID", options.job.run_id},
      {"TORCHELASTIC_USE_AGENT_STORE", "True"},  // torch compares with exactly this text: the agent serves the store
      {"TORCHELASTIC_ERROR_FILE", paths.ErrorFile(local_rank)},
      {"TORCHELASTIC_SIGNALS_TO_HANDLE", options.signals.to_handle_text},
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", agent_environment.Get("TORCH_NCCL_ASYNC_ERROR_HANDLING").value_or("1")},
      {"MUSTER_ROUND", std::to_string(assignment.id.number)},
      {"MUSTER_NODE", seat.node.name},
  };
  if (SetsOmp(agent_environment, seat.node.slots)) own.emplace("OMP_NUM_THREADS", "1");
  if (options.workers.virtual_local_rank) {
    MUSTER_ASSIGN_OR_RETURN(own["CUDA_VISIBLE_DEVICES"], VirtualDevice(agent_environment, local_rank));
  }
  for (const auto& [name, value] :
       FlightRecorderVariables(agent_environment, paths.flight_recorder, options.workers.recorder_names)) {
    own.emplace(name, value);
  }
  std::string heartbeat = paths.HeartbeatFile(local_rank);
  if (!heartbeat.empty()) own["MUSTER_HEARTBEAT_FILE"] = heartbeat;

  std::unordered_set<std::string_view> seen = {"MUSTER_HEARTBEAT_FILE"};  // never that of an outer run
  std::vector<std::string> environment;
  environment.reserve(agent_environment.entries().size() + own.size());
  for (const std::string& entry : agent_environment.entries()) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (!own.contains(name) && seen.insert(name).second) environment.push_back(entry);
  }
  for (const auto& [name, value] : own) environment.push_back(name + "=" + value);
  return environment;
}

Status CheckDevices(const Environment& agent_environment, const RunOptions::Workers& workers) {
  if (!workers.virtual_local_rank) return absl::OkStatus();
  return VirtualDevice(agent_environment, workers.nproc - 1).status();
}

std::optional<std::string> OmpWarning(const Environment& agent_environment, const RunOptions& options) {
  if (options.wire != Wire::kTorch || !SetsOmp(agent_environment, options.workers.nproc)) return std::nullopt;
  return "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being "
         "overloaded, please further tune the variable for optimal performance in your application as needed.";
}

std::string BetweenStars(std::string_view text) {
  constexpr std::string_view kStars = "*****************************************";
  return fmt::format("{}\n{}\n{}\n", kStars, text, kStars);
}

}  // namespace muster::agent
