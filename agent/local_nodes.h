// `muster run --nodes-on-this-machine N`: N agents here, each a node of its own, so that nobody needs N terminals.
//
// This process serves the rendezvous (port by the kernel, loopback) and starts N times itself with the same
// arguments; each node has its own log folder (<log-dir>/node-<i>), its lines start with "[node-<i>] ", one Ctrl-C
// stops all.
#pragma once

#include <string>
#include <vector>

#include "agent/run_options.h"
#include "agent/torchrun_flag_table.h"

namespace muster::agent {

// `arguments`: what the user gave, --nodes-on-this-machine included. Ends with the code of the node that ended last,
// which is the job's verdict: a node killed on the way does not count.
int RunLocalNodes(const RunOptions& options, const std::vector<std::string>& arguments, CalledAs called_as);

// Pure: the arguments of node `index`. The user's options first, then ours (the last one wins), then script and its
// own.
std::vector<std::string> LocalNodeArguments(const RunOptions& options, const std::vector<std::string>& arguments,
                                            CalledAs called_as, int index, int port);

}  // namespace muster::agent
