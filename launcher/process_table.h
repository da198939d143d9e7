// Looks at /proc where no descriptor tells: who is left of a process group, and who escaped from it. Pure reading.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::launcher {

// Processes of these groups that are not zombies. One pass over /proc.
std::vector<pid_t> LivingMembers(const std::set<pid_t>& groups);

// Our children, of every thread; empty where the kernel does not list them (CONFIG_PROC_CHILDREN).
std::vector<pid_t> OwnChildren();

// The user that `pid` belongs to; nullopt where it is gone.
std::optional<uid_t> OwnerOf(pid_t pid);

// Whether the environment `pid` was started with holds each of `entries` ("KEY=VALUE"). kNo where it cannot be read and
// when `entries` is empty; kStarting while it is in execve, when the kernel has the new program's memory and not yet
// its environment: ask again soon.
enum class Holds { kNo, kYes, kStarting };
Holds StartedWith(pid_t pid, const std::vector<std::string>& entries);

// The entries of `environment` that this process has not: what tells a worker's descendants from everybody else.
std::vector<std::string> OwnEntries(const std::vector<std::string>& environment);

}  // namespace muster::launcher
