// Whose line it is, where one container runs several ranks: torchrun's --tee with a prefix of ours. Pure.
#pragma once

#include <string>
#include <vector>

namespace muster::controller {

// What a line of that rank begins with: "[rank3]:".
std::string RankMark(int rank);

// Asks the torchrun of a container with this environment ("KEY=VALUE") for marks. False: it runs one process, or the
// job says itself where the output of ranks goes; nothing is changed then.
bool MarkRanks(std::vector<std::string>* environment);

}  // namespace muster::controller
