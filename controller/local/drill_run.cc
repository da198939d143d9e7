#include "controller/local/drill_run.h"

#include "base/exit_codes.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/pytorch_job.h"
#include "controller/local/pod_names.h"
#include "controller/local/pod_reading.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

using Say = std::function<void(const std::string&)>;

void CutLink(const Drill& drill, const DrillTarget& target, PodNetwork* network, const Say& say) {
  Status done = absl::FailedPreconditionError("hosts share this machine's network; it needs --network private");
  const bool cut = drill.link == Drill::Link::kCut;
  if (target.own_network) done = network->Cut(HostOf(target.pod), cut);
  say(done.ok() ? fmt::format("{}: node {} {}", drill.said, drill.number, cut ? "is cut off" : "is reached again")
                : fmt::format("{}: {}", drill.said, Message(done)));
}

// False: there is no such process.
bool ForceEnd(const Drill& drill, PodRun& run, std::string_view container, const std::vector<std::string>& entries,
              const std::string& whom, const Say& say) {
  const auto tell = [say, said = drill.said, code = *drill.exit_code, whom](const Status& status) {
    say(status.ok() ? fmt::format("{}: {} ends with {}", said, whom, code)
                    : fmt::format("{}: {} goes on: {}", said, whom, Message(status)));
  };
  const Status begun = run.EndWith(container, *drill.exit_code, entries, tell);
  if (!begun.ok() && !absl::IsNotFound(begun)) tell(begun);
  return !absl::IsNotFound(begun);
}

}  // namespace

void CarryOutDrill(const Drill& drill, const std::vector<DrillTarget>& targets, PodNetwork* network, const Say& say) {
  const bool by_rank = drill.target == Drill::Target::kRank;
  const char* kind = by_rank ? "rank" : "node";
  const std::vector<std::string> entries =
      by_rank ? std::vector<std::string>{fmt::format("RANK={}", drill.number)} : std::vector<std::string>();
  for (const DrillTarget& target : targets) {
    if (!by_rank && NodeRankOf(target.pod) != drill.number) continue;
    if (drill.link != Drill::Link::kAsItIs) return CutLink(drill, target, network, say);
    const std::string whom = fmt::format("{} {} on {}", kind, drill.number, NameOf(target.pod));
    for (const char* container : {kTrainerContainer, kPyTorchContainer}) {
      if (drill.exit_code) {
        if (ForceEnd(drill, target.run, container, entries, whom, say)) return;
      } else if (target.run.Signal(container, drill.signal, entries)) {
        return say(fmt::format("{}: {} to {}", drill.said, SignalName(drill.signal), whom));
      }
    }
  }
  say(fmt::format("{}: no {} {} runs", drill.said, kind, drill.number));
}

}  // namespace muster::controller
