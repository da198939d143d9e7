// `muster run --nodes-on-this-machine N`: N agents here, each a node of its own, so that nobody needs N terminals.
//
// This process serves the rendezvous (on loopback, at the endpoint's port where one was given, else the kernel chooses)
// and starts N times itself with the same arguments; each node has its own log folder (<log-dir>/node-<i>), its lines
// start with "[node-<i>] ", node-<i> has rank i where all of them are there, one Ctrl-C stops all, a second one kills.
#pragma once

#include <string>
#include <vector>

#include "agent/torch/torchrun_flag_table.h"
#include "agent/torch/torchrun_flags.h"

namespace muster::agent {

// `parsed`: of `arguments`, what the user gave, --nodes-on-this-machine included. Ends with the code of the node that
// ended last, which is the job's verdict: a node killed on the way does not count.
int RunLocalNodes(const ParsedRun& parsed, const std::vector<std::string>& arguments, CalledAs called_as);

// Pure: the arguments of node `index`. The user's options first but for --standalone, which no later one takes back,
// then ours (the last one wins), then script and its own.
std::vector<std::string> LocalNodeArguments(const ParsedRun& parsed, const std::vector<std::string>& arguments,
                                            CalledAs called_as, int index, int port);

}  // namespace muster::agent
