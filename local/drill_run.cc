#include "local/drill_run.h"

#include "base/exit_codes.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/pytorch_job.h"
#include "controller/plan/pod_fields.h"
#include "local/pod/names.h"

namespace muster::local {

using namespace controller;

namespace {

// An entry of the environment that identifies a worker: of torchrun, of Open MPI, of MPICH and Intel MPI.
constexpr const char* kRankVariables[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};

using Entries = std::vector<std::string>;

// One try of a drill: at the process of `container` that has `entries` in its environment, or at the pod's network.
struct Try {
  const DrillTarget& target;
  PodNetwork* network;
  std::string_view container;
  const Entries& entries;
  const std::string& whom;
  const DrillTold& tell;
};

// All return false if there is no such process.
bool Do(const Drill::Signal& signal, const Try& at) {
  if (!at.target.run.Signal(at.container, signal.number, at.entries)) return false;
  at.tell(absl::OkStatus(), fmt::format("{} to {}", SignalName(signal.number), at.whom));
  return true;
}

bool Do(const Drill::Exit& exit, const Try& at) {
  const auto ended = [tell = at.tell, code = exit.code, whom = at.whom](const Status& status) {
    tell(status.ok() ? status : Annotate(status, whom + " goes on"), fmt::format("{} ends with {}", whom, code));
  };
  const Status begun = at.target.run.EndWith(at.container, exit.code, at.entries, ended);
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

}  // namespace

void CarryOutDrill(const Drill& drill, const std::vector<DrillTarget>& targets, PodNetwork* network,
                   const DrillTold& tell) {
  const bool by_rank = drill.target == Drill::Target::kRank;
  const char* kind = by_rank ? "rank" : "node";
  std::vector<Entries> choices;
  if (!by_rank) choices.emplace_back();
  for (const char* variable : kRankVariables) {
    if (by_rank) choices.push_back({fmt::format("{}={}", variable, drill.number)});
  }
  for (const DrillTarget& target : targets) {
    if (target.number < 0 || (!by_rank && target.number != drill.number)) continue;
    const std::string whom = fmt::format("{} {} on {}", kind, drill.number, NameOf(target.pod));
    for (const char* container : {kTrainerContainer, kPyTorchContainer}) {
      for (const Entries& entries : choices) {
        const Try at{target, network, container, entries, whom, tell};
        if (std::visit([&at](const auto& action) { return Do(action, at); }, drill.action)) return;
      }
    }
  }
  tell(absl::NotFoundError(fmt::format("no {} {} runs", kind, drill.number)), "");
}

}  // namespace muster::local
