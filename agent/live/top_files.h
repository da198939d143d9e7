// SPDX-License-Identifier: Apache-2.0
// What of a rank is on this machine: its process, and the files of its output. Reads /proc and log folders; blocks for
// no longer than they do. Nothing here is needed: what is not found is empty.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "agent/live/top_rows.h"

namespace muster::agent {

// The worker's process, if it runs on this machine and is a descendant of the agent that tells of it; else 0: it may be
// of another machine, or of a container whose pids are others.
pid_t LocalProcessOf(const TopRow& row);

// Regular files that have the worker's output: those that its agent writes for it, or that it writes itself.
// `job_folder`: of a job of `muster local`; empty: the run is none.
std::vector<std::string> LogFilesOf(const TopRow& row, const std::string& job_folder);

// The last lines of a file, at most `lines` and 64 KiB. Empty: it cannot be read, or is empty.
std::vector<std::string> LastLinesOf(const std::string& path, size_t lines);

}  // namespace muster::agent
