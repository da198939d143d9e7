// SPDX-License-Identifier: Apache-2.0
#include "local/drill_run.h"

#include "base/exit_codes.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/pytorch_job.h"
#include "controller/plan/pod_fields.h"
#include "local/pod/names.h"
#include "local/state/recorded_rank.h"

namespace muster::local {

using namespace controller;

namespace {

// An entry of the environment that identifies a worker: of torchrun, of Open MPI, of MPICH and Intel MPI.
constexpr const char* kRankVariables[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};

// One try of a drill: at the process of `container` that is `sought`, or at the pod's network.
struct Try {
  const DrillTarget& target;
  PodNetwork* network;
  std::string_view container;
  const Sought& sought;
  const std::string& whom;
  const DrillTold& tell;
};

// All return false if there is no such process.
bool Do(const Drill::Signal& signal, const Try& at) {
  if (!at.target.run.Signal(at.container, signal.number, at.sought)) return false;
  at.tell(absl::OkStatus(), fmt::format("{} to {}", SignalName(signal.number), at.whom));
  return true;
}

bool Do(const Drill::Exit& exit, const Try& at) {
  const auto ended = [tell = at.tell, code = exit.code, whom = at.whom](const Status& status) {
    tell(status.ok() ? status : Annotate(status, whom + " goes on"), fmt::format("{} ends with {}", whom, code));
  };
  const Status begun = at.target.run.EndWith(at.container, exit.code, at.sought, ended);
  if (!begun.ok() && !absl::IsNotFound(begun)) ended(begun);
  return !absl::IsNotFound(begun);
}

bool Do(Drill::Link link, const Try& at) {
  const bool cut = link == Drill::Link::kCut;
  if (at.target.own_network) {
    at.tell(at.network->Cut(HostOf(at.target.pod), cut),
            fmt::format("node {} {}", at.target.number, cut ? "is cut off" : "is reached again"));
  } else {
    at.tell(absl::FailedPreconditionError("hosts share this machine's network; it needs --network private"), "");
  }
  return true;
}

// The processes that the drill may mean in a pod, the likeliest first. A worker that began in a standby was not started
// with its RANK, but its children may be. Workers of MPI are in no record.
std::vector<Sought> Choices(const Drill& drill, const DrillTarget& target) {
  if (drill.target == Drill::Target::kNode) return {Sought()};
  std::vector<Sought> choices;
  if (const auto worker = RecordedRank(target.attempts, drill.number)) {
    choices.push_back({.entries = {fmt::format("LOCAL_RANK={}", worker->local_rank)}, .inside = worker->pid});
  }
  for (const char* variable : kRankVariables) {
    choices.push_back({.entries = {fmt::format("{}={}", variable, drill.number)}});
  }
  return choices;
}

}  // namespace

void CarryOutDrill(const Drill& drill, const std::vector<DrillTarget>& targets, PodNetwork* network,
                   const DrillTold& tell) {
  const bool by_rank = drill.target == Drill::Target::kRank;
  const char* kind = by_rank ? "rank" : "node";
  for (const DrillTarget& target : targets) {
    if (target.number < 0 || (!by_rank && target.number != drill.number)) continue;
    const std::string whom = fmt::format("{} {} on {}", kind, drill.number, NameOf(target.pod));
    const std::vector<Sought> choices = Choices(drill, target);
    for (const char* container : {kTrainerContainer, kPyTorchContainer}) {
      for (const Sought& sought : choices) {
        const Try at{target, network, container, sought, whom, tell};
        if (std::visit([&at](const auto& action) { return Do(action, at); }, drill.action)) return;
      }
    }
  }
  tell(absl::NotFoundError(fmt::format("no {} {} runs", kind, drill.number)), "");
}

}  // namespace muster::local
