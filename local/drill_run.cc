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

void DrillLink(Drill::Link link, const DrillTarget& target, PodNetwork* network, const DrillTold& tell) {
  if (!target.own_network) {
    return tell(absl::FailedPreconditionError("hosts share this machine's network; it needs --network private"), "");
  }
  const bool cut = link == Drill::Link::kCut;
  tell(network->Cut(HostOf(target.pod), cut),
       fmt::format("node {} {}", target.number, cut ? "is cut off" : "is reached again"));
}

// False: there is no such process.
bool DrillProcess(const Drill& drill, PodRun& run, std::string_view container, const Entries& entries,
                  const std::string& whom, const DrillTold& tell) {
  if (const auto* signal = std::get_if<Drill::Signal>(&drill.action)) {
    if (!run.Signal(container, signal->number, entries)) return false;
    tell(absl::OkStatus(), fmt::format("{} to {}", SignalName(signal->number), whom));
    return true;
  }
  const int code = std::get<Drill::Exit>(drill.action).code;
  const auto ended = [tell, code, whom](const Status& status) {
    tell(status.ok() ? status : Annotate(status, whom + " goes on"), fmt::format("{} ends with {}", whom, code));
  };
  const Status begun = run.EndWith(container, code, entries, ended);
  if (!begun.ok() && !absl::IsNotFound(begun)) ended(begun);
  return !absl::IsNotFound(begun);
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
    if (const auto* link = std::get_if<Drill::Link>(&drill.action)) return DrillLink(*link, target, network, tell);
    const std::string whom = fmt::format("{} {} on {}", kind, drill.number, NameOf(target.pod));
    for (const char* container : {kTrainerContainer, kPyTorchContainer}) {
      for (const Entries& entries : choices) {
        if (DrillProcess(drill, target.run, container, entries, whom, tell)) return;
      }
    }
  }
  tell(absl::NotFoundError(fmt::format("no {} {} runs", kind, drill.number)), "");
}

}  // namespace muster::local
