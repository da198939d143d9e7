// The moment when a run's files take their names in the target.
//
// A rename for each file between two states of .muster: "next.json" names what is to be there; it becomes
// "manifest.json" when all of it is. A start that finds next.json finishes that first.
//
// Nothing is touched before all of it is known to fit: an obstacle (a folder where a file has to be, a link where a
// folder has to be) leaves manifest and files as they were. One that comes between two renames leaves next.json: each
// start says what it is, and finishes once it is gone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "initializers/manifest.h"
#include "initializers/staging.h"

namespace muster::initializers {

// Everything of `manifest`, sorted by path, that is not there yet is `staged`, whole under its NameOf, and on the disk
// (Sync). The times of change are filled in. `then`: kThenName's text (after_publish.h), from now on due; empty: none.
// `meanwhile` is called before each file, and its errors end it there, as a kill would. FailedPrecondition: an
// obstacle. Aborted: what was to be kept has changed meanwhile. DataLoss: something is not there afterwards.
Status Publish(Staging& staging, const std::string& target, Manifest manifest, const std::string& then,
               const Staging::Meanwhile& meanwhile);

// An earlier start was killed while it renamed.
bool IsHalfPublished(const std::string& target);

// What this start is to bring in.
struct Plan {
  std::string source, selection;  // as in the manifest
};
// What is still staged goes where it belongs. False: nothing was left to finish; else `staging` has to be opened anew.
// What cannot be finished, as something of it is gone, is said and dropped, and who called begins anew: the manifest is
// there if nothing was renamed. FailedPrecondition: an obstacle, and it is `plan`'s; another's is dropped.
StatusOr<bool> FinishPublication(Staging& staging, const std::string& target, const Plan& plan,
                                 const std::function<void(const std::string&)>& say,
                                 const Staging::Meanwhile& meanwhile);

}  // namespace muster::initializers
