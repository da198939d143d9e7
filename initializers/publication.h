// The moment when a run's files take their names in the target.
//
// A rename for each file between two states of .muster: "next.json" names what is to be there; it becomes
// "manifest.json" when all of it is. A start that finds next.json finishes that first.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "initializers/manifest.h"
#include "initializers/staging.h"

namespace muster::initializers {

// Everything of `manifest` that is not there yet is in `places`, whole. The times of change are filled in. DataLoss:
// something is not there afterwards.
Status Publish(Staging& staging, const std::string& target, const Manifest& manifest,
               const std::vector<Staging::Place>& places);

// An earlier start was killed while it renamed.
bool IsHalfPublished(const std::string& target);
// What is still staged goes where it belongs. What cannot be finished is said, and begun anew by who called.
Status FinishPublication(Staging& staging, const std::string& target,
                         const std::function<void(const std::string&)>& say);

}  // namespace muster::initializers
