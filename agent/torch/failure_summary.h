// How a failed job is told to its user: torchrun's block (ChildFailedError of torch's elastic/multiprocessing/errors)
// with the root cause that the coordinator chose and its last lines of stderr. The reason is the line of the log behind
// it.
#pragma once

#include <string>

#include "agent/torch/run_options.h"
#include "base/worker_failure.h"
#include "rendezvous/round.h"

namespace muster::agent {

// The block, ending in a newline; empty where no worker failed. Times are local. An error file of another node than
// `this_node` says so. A traceback is shown once: where the error file has it, the last lines of stderr leave it out.
std::string FailureSummary(const rendezvous::Verdict& verdict, const RunOptions& options, const std::string& this_node);

}  // namespace muster::agent
