// SPDX-License-Identifier: Apache-2.0
// The largest counts in an object of a user. A larger one would be refused by the API server in the end, or would take
// the memory and the time that the controller needs for other users' jobs.
#pragma once

#include <string_view>

namespace muster::controller {

inline constexpr int kMostPods = 100'000;      // of one job: Kubernetes' limit for an Indexed Job
inline constexpr int kMostMade = 10'000;       // Jobs of a TrainJob, pods of a PyTorchJob: Muster makes them one by one
inline constexpr int kMostProcesses = 65'536;  // of one node
inline constexpr std::string_view kNoProcesses = "is neither a whole number from 1 to 65536 nor auto, cpu or gpu";

}  // namespace muster::controller
