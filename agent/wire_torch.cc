// SPDX-License-Identifier: Apache-2.0
// The wiring of torchrun's workers: command line, environment, streams.
#include "agent/flags/inner_environment.h"
#include "agent/flags/service_links.h"
#include "agent/inner_status.h"
#include "agent/wiring.h"
#include "agent/workers/failure_summary.h"
#include "agent/workers/torch_command.h"
#include "agent/workers/torch_env.h"
#include "base/environment.h"

namespace muster::agent {

Wiring TorchWiring(const RunOptions& options) {
  Wiring wiring;
  wiring.workers = [&options](const rendezvous::Assignment& assignment,
                              const AttemptPaths& paths) -> StatusOr<std::vector<launcher::WorkerSpec>> {
    Environment agent_environment = WithoutLinks(Environment::OfProcess());
    // The port is this agent's, not that of a torchrun inside.
    if (options.http.on) PutForInside("MUSTER_HTTP_PORT", "off", &agent_environment);
    agent_environment.Unset(kStatusFileVariable);
    std::vector<launcher::WorkerSpec> specs;
    for (int local_rank = 0; local_rank < options.workers.nproc; ++local_rank) {
      launcher::WorkerSpec spec;
      spec.local_rank = local_rank;
      MUSTER_ASSIGN_OR_RETURN(spec.argv, WorkerCommand(options, local_rank));
      MUSTER_ASSIGN_OR_RETURN(spec.environment,
                              WorkerEnvironment(agent_environment, options, assignment, local_rank, paths));
      spec.output = WorkerOutput(options, assignment, local_rank, paths);
      spec.error_file = paths.ErrorFile(local_rank);
      specs.push_back(std::move(spec));
    }
    return specs;
  };
  wiring.summary = [&options](const rendezvous::Verdict& verdict, const std::string& this_node) {
    return FailureSummary(verdict, options.command.script, this_node);
  };
  return wiring;
}

}  // namespace muster::agent
