// SPDX-License-Identifier: Apache-2.0
// Carries out a drill on the pods that run. Loop thread only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "local/container/pod_run.h"
#include "local/drills.h"
#include "local/network/pod_network.h"

namespace muster::local {

// A pod that runs. Borrowed for the call.
struct DrillTarget {
  const Json& pod;
  PodRun& run;
  int number;            // of the node
  bool own_network;      // its host has a network of its own, in `network`
  std::string attempts;  // folder of its agent's records
};

// OK: `done` says what was done to whom. Else the error says why nothing was done.
using DrillTold = std::function<void(const Status& status, const std::string& done)>;

// Calls `tell` once: at once, or after a process has been made to end. `tell` may outlive the call.
void CarryOutDrill(const Drill& drill, const std::vector<DrillTarget>& targets, PodNetwork* network,
                   const DrillTold& tell);

}  // namespace muster::local
