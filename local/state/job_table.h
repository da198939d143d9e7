// SPDX-License-Identifier: Apache-2.0
// The table of `muster ps`. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json_fields.h"
#include "local/state/job_folders.h"
#include "local/state/job_progress.h"

namespace muster::local {

// The time since `then`: "45 s", "3 min", "2 h", "5 d". If `then` is in the future: "0 s".
std::string Ago(WallTime then, WallTime now);

// A line for each job below a line of titles. A job whose record cannot be read has a line that says so.
std::string JobTable(const std::vector<FoundJob>& jobs, const ProgressByJob& progress, WallTime now);
// The records, each with `name`, `runs` and `lost` (FoundJob), and `training` if its progress is known. `error`
// replaces a record that is broken.
Json JobsAsJson(const std::vector<FoundJob>& jobs, const ProgressByJob& progress);

}  // namespace muster::local
