// SPDX-License-Identifier: Apache-2.0
// Marks lines of output with their rank, if one container runs several: sets torchrun's --tee and a prefix. Pure.
#pragma once

#include <string>
#include <vector>

namespace muster::local {

// The beginning of each line of that rank: "[rank3]:".
std::string RankMark(int rank);

// Sets the variables that make torchrun mark its lines in the `environment` ("KEY=VALUE") of a container. False,
// without a change: torchrun runs one process, or the job itself sets where the output of ranks goes.
bool MarkRanks(std::vector<std::string>* environment);

// Sets OMP_NUM_THREADS to 1 where torchrun would, which says so in three lines on each node.
void LimitThreads(std::vector<std::string>* environment);

}  // namespace muster::local
