// SPDX-License-Identifier: Apache-2.0
// Publication: the files of a run take their names in the target.
//
// It is a rename for each file, between two states of .muster: the file "next.json" names what will be there; it
// becomes "manifest.json" when all files are in place. A start that finds next.json finishes that publication first.
//
// All obstacles are looked for before the first change. An obstacle (a folder where a file has to be, a link where a
// folder has to be) leaves manifest and files as they were. An obstacle that appears between two renames leaves
// next.json: each start reports the obstacle, and finishes once it is gone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "initializers/target/manifest.h"
#include "initializers/target/staging.h"

namespace muster::initializers {

// `manifest` is sorted by path. Each file not in place yet is `staged`: whole under its NameOf, and on the disk (Sync).
// Fills in the times of change. `then`: the text of kThenName (after_publish.h), due from now on; empty: none.
// `meanwhile` is called before each file; its error ends Publish there, as a kill would. FailedPrecondition: an
// obstacle. Aborted: a kept file has changed, or a staged one is gone. DataLoss: a file is missing afterwards.
Status Publish(Staging& staging, const std::string& target, Manifest manifest, const std::string& then,
               const Staging::Meanwhile& meanwhile);

// True if an earlier start did not finish its renames: next.json is there.
bool IsHalfPublished(const std::string& target);

// What this start wants to bring in.
struct Plan {
  std::string source, selection;  // as in the manifest
};
// Finishes the renames. False: there was nothing to finish; true: `staging` must be opened anew. A publication that
// cannot be finished (next.json is damaged, a file of it gone or changed) is reported and dropped: the caller begins
// anew. FailedPrecondition: an obstacle to the publication of `plan`; one of another plan is dropped instead.
StatusOr<bool> FinishPublication(Staging& staging, const std::string& target, const Plan& plan,
                                 const std::function<void(const std::string&)>& say,
                                 const Staging::Meanwhile& meanwhile);

}  // namespace muster::initializers
