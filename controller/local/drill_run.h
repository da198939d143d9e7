// Carries out a drill on the pods that run. Loop thread only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "controller/local/drills.h"
#include "controller/local/pod_network.h"
#include "controller/local/pod_run.h"

namespace muster::controller {

// A pod that runs. Borrowed for the call.
struct DrillTarget {
  const Json& pod;
  PodRun& run;
  bool own_network;  // its host has a network of its own, in `network`
};

// `say` gets one sentence on what was done, or why not: at once, or after a process has been made to end. It may
// outlive the call.
void CarryOutDrill(const Drill& drill, const std::vector<DrillTarget>& targets, PodNetwork* network,
                   const std::function<void(const std::string&)>& say);

}  // namespace muster::controller
