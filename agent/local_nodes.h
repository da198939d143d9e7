// SPDX-License-Identifier: Apache-2.0
// `muster run --nodes-on-this-machine N`: runs N agents on this machine, each as a node of its own.
//
// This process serves the rendezvous on loopback, at the endpoint's port or one that the kernel chooses, and starts
// itself N times with the same arguments. Each node has its own log folder (<log-dir>/node-<i>) and starts its lines
// with "[node-<i>] "; it has rank i if all nodes are there. One Ctrl-C stops all nodes, a second one kills them.
#pragma once

#include <string>
#include <vector>

#include "agent/flags/torchrun_flag_table.h"
#include "agent/flags/torchrun_flags.h"

namespace muster::agent {

// `parsed`: ParseRun() of the user's `arguments`, with --nodes-on-this-machine. Returns the exit code of the node that
// ended last, the job's verdict (not that of a node killed earlier), or 128 + signal if this process was told to end.
int RunLocalNodes(const ParsedRun& parsed, const std::vector<std::string>& arguments, CalledAs called_as);

// The arguments of node `index`: the user's options without --standalone (no later option can undo it), then ours (the
// last of two equal options wins), then the script and its arguments. Pure.
std::vector<std::string> LocalNodeArguments(const ParsedRun& parsed, const std::vector<std::string>& arguments,
                                            CalledAs called_as, int index, int port);

}  // namespace muster::agent
