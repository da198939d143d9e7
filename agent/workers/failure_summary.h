// SPDX-License-Identifier: Apache-2.0
// How a failed job is shown to its user: torchrun's block (ChildFailedError of torch's elastic/multiprocessing/errors)
// with the coordinator's root cause and its last lines of stderr. The next line of the log is the reason.
#pragma once

#include <string>

#include "base/worker_failure.h"
#include "rendezvous/round.h"

namespace muster::agent {

// The block of `script`, ending in a newline; empty if no worker failed. Times are local. Says if an error file is not
// on `this_node`. A traceback is shown once: if the error file has it, the last lines of stderr leave it out.
std::string FailureSummary(const rendezvous::Verdict& verdict, const std::string& script, const std::string& this_node);

}  // namespace muster::agent
