// SPDX-License-Identifier: Apache-2.0
#include "agent/standby/plan.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>

namespace muster::agent::standby {
namespace {

using Kind = Step::Kind;

// Variables whose values come with a round (workers/torch_env.cc, workers/flight_recorder.cc).
constexpr std::string_view kOfRound[] = {"RANK",
                                         "GROUP_RANK",
                                         "ROLE_RANK",
                                         "WORLD_SIZE",
                                         "GROUP_WORLD_SIZE",
                                         "ROLE_WORLD_SIZE",
                                         "MASTER_ADDR",
                                         "MASTER_PORT",
                                         "TORCHELASTIC_RESTART_COUNT",
                                         "TORCHELASTIC_MAX_RESTARTS",
                                         "TORCHELASTIC_ERROR_FILE",
                                         "MUSTER_ROUND",
                                         "MUSTER_HEARTBEAT_FILE",
                                         "TORCH_NCCL_DEBUG_INFO_PIPE_FILE",
                                         "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
                                         "TORCH_FR_DUMP_TEMP_FILE"};

bool IsOfRound(std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  return std::find(std::begin(kOfRound), std::end(kOfRound), name) != std::end(kOfRound);
}

constexpr size_t kMostImports = 20'000, kLongestName = 512, kMostLeftOut = 32;

bool IsBelow(std::string_view name, std::string_view module) {
  return name.starts_with(module) && (name.size() == module.size() || name[module.size()] == '.');
}

}  // namespace

Duration PauseAfter(int failures) {
  Duration pause = kFirstPause;
  for (int n = 1; n < failures && pause < kLongestPause; ++n) pause *= 2;
  return std::min(pause, kLongestPause);
}

Step NextStep(const View& view, Duration delay, TimePoint now) {
  if (!view.on || !view.quiet) return {};
  if (now < *view.quiet + delay) return {Kind::kLater, 0, *view.quiet + delay};
  std::optional<Step> due;         // kProbe or kStart
  std::optional<int> more;         // local rank
  std::optional<TimePoint> later;  // a limit, or the end of a pause
  int busy = 0;
  const auto look_at = [&later](TimePoint when) { later = std::min(later.value_or(when), when); };
  for (size_t rank = 0; rank < view.seats.size(); ++rank) {
    const Seat& seat = view.seats[rank];
    const int local_rank = static_cast<int>(rank);
    switch (seat.standby) {
      case Seat::Standby::kProbing:
      case Seat::Standby::kImporting:
      case Seat::Standby::kMore:
        if (now >= seat.limit) return {Kind::kEnd, local_rank, {}};
        look_at(seat.limit);
        ++busy;
        break;
      case Seat::Standby::kReady:
        if (seat.imports < view.imports && !more) more = local_rank;
        break;
      case Seat::Standby::kNone: {
        if (seat.proven && view.imports == 0) break;
        const TimePoint pause_ends = seat.failures == 0 ? now : seat.failed + PauseAfter(seat.failures);
        if (pause_ends > now) {
          look_at(pause_ends);
        } else if (!due) {
          due = Step{seat.proven ? Kind::kStart : Kind::kProbe, local_rank, {}};
        }
        break;
      }
    }
  }
  const bool free = busy < view.at_once;
  // A tenth more than one needs stays free: what the job needs for a moment must not end it.
  const int64_t needed = (busy + 1) * (view.standby_memory + view.standby_memory / 10);
  if (due && free && view.memory().value_or(needed) >= needed) return *due;
  if (more && free) return {Kind::kMore, *more, {}};
  if (due && free) look_at(now + kFirstPause);
  if (later) return {Kind::kLater, 0, *later};
  return {};
}

bool IsPrepared(const View& view, const Step& step, Duration delay, TimePoint now) {
  if (!view.on) return true;
  if (!view.quiet || now < *view.quiet + delay) return false;
  if (step.kind != Kind::kNothing && step.kind != Kind::kLater) return false;
  return std::none_of(view.seats.begin(), view.seats.end(), [](const Seat& seat) { return seat.busy(); });
}

std::optional<std::string> WhyNone(const RunOptions& options) {
  if (options.wire != Wire::kTorch) return "the command is not one of torchrun's";
  if (options.command.no_python || options.command.run_path) return "the command is not a Python script or module";
  const rendezvous::JobOptions& job = options.job.shared;
  if (job.max_restarts == 0 && job.min_nodes == job.max_nodes) return "restarts are not allowed";
  return std::nullopt;
}

std::vector<std::string> LocalPart(const std::vector<std::string>& environment) {
  std::vector<std::string> local;
  for (const std::string& entry : environment) {
    if (!IsOfRound(entry)) local.push_back(entry);
  }
  return local;
}

std::vector<std::string> NamesOfRound(const std::vector<std::string>& environment) {
  std::vector<std::string> names;
  for (const std::string& entry : environment) {
    if (IsOfRound(entry)) names.push_back(entry.substr(0, entry.find('=')));
  }
  return names;
}

void Imports::Add(const std::string& entry) {
  constexpr std::string_view kEnd = "=end:";
  const bool is_name = entry[0] != '=';  // of a module: it has no spaces
  const bool plain = std::all_of(entry.begin(), entry.end(),
                                 [is_name](unsigned char c) { return c != 0x7f && (is_name ? c > ' ' : c >= ' '); });
  if (entry.empty() || entry.size() > kLongestName || !plain || names_.size() >= kMostImports || !end_.empty()) return;
  for (const std::string& module : left_out_) {
    if (IsBelow(entry, module)) return;
  }
  if (entry.starts_with(kEnd)) end_ = entry.substr(kEnd.size());
  const bool counts = is_name ? known_.insert(entry).second : names_.empty() || names_.back() != entry;
  if (counts) names_.push_back(entry);
}

void Imports::EndAt(const std::string& module, const std::string& what) {
  names_.erase(std::find(names_.begin(), names_.end(), module), names_.end());
  end_ = what;
}

void Imports::Clear() {
  names_.clear();
  known_.clear();
  end_.clear();
}

bool Imports::LeaveOut(const std::string& module) {
  const bool known = !left_out_.insert(module).second;
  std::erase_if(names_, [&](const std::string& name) { return IsBelow(name, module); });
  return !known && left_out_.size() <= kMostLeftOut;
}

std::vector<std::string> ProbeCommand(const std::vector<std::string>& worker) {
  auto at = std::find(worker.begin(), worker.end(), "-u");
  if (at == worker.end()) return {};
  std::vector<std::string> probe(worker.begin(), ++at);
  probe.insert(probe.end(), {"-c", "pass"});
  if (at != worker.end() && *at == "-m") ++at;
  if (at != worker.end()) ++at;  // the script
  probe.insert(probe.end(), at, worker.end());
  return probe;
}

std::string ScriptFolder(const RunOptions::Command& command) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (command.module) return here.string();
  const std::filesystem::path script = std::filesystem::weakly_canonical(command.script, error);
  return error ? here.string() : script.parent_path().string();
}

}  // namespace muster::agent::standby
