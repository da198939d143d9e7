// SPDX-License-Identifier: Apache-2.0
// Reads /proc for facts that no descriptor reports: members of process groups, processes that left them. Read-only.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"

namespace muster::launcher {

// Processes in these process groups, without zombies. One pass over /proc.
std::vector<pid_t> LivingMembers(const std::set<pid_t>& groups);

// What the processes of a group use, with those of its processes that have ended and were waited for.
struct GroupUse {
  Duration cpu{};            // since their start
  int64_t memory_bytes = 0;  // resident
};
// By group; a group without a living process is left out. One pass over /proc.
std::map<pid_t, GroupUse> UseOf(const std::set<pid_t>& groups);

// Children of all threads of this process; empty if the kernel does not list them (CONFIG_PROC_CHILDREN).
std::vector<pid_t> OwnChildren();

// The user of process `pid`; nullopt if the process is gone.
std::optional<uid_t> OwnerOf(pid_t pid);

// Whether the environment that `pid` was started with has each of `entries` ("KEY=VALUE"). kNo also if it cannot be
// read or `entries` is empty. kStarting during execve, when the kernel has the new program's memory but not yet its
// environment: ask again soon.
enum class Holds { kNo, kYes, kStarting };
Holds StartedWith(pid_t pid, const std::vector<std::string>& entries);

// The entries of `environment` that this process does not have. They identify the descendants of a worker.
std::vector<std::string> OwnEntries(const std::vector<std::string>& environment);

}  // namespace muster::launcher
