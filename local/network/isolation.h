// SPDX-License-Identifier: Apache-2.0
// Decides how the hosts of a run are isolated from one another on this machine. Blocking.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "local/network/pod_network.h"

namespace muster::local {

// --network. kAuto: a private network if that is possible, else the shared one.
enum class NetworkMode { kAuto, kPrivate, kShared };
// InvalidArgument: `text` is none of "auto", "private", "shared".
StatusOr<NetworkMode> ParseNetworkMode(const std::string& text);

struct Isolation {
  std::string bwrap;                    // the path of bubblewrap; empty: pods share this machine's files
  bool own_pids = false;                // a container has its own PID namespace: all its processes end with it
  std::unique_ptr<PodNetwork> network;  // null: pods share this machine's network, with addresses of 127.0.0.0/8
  std::string why_shared;               // the reason, if they share it
  std::string said;                     // one line for the user: what each host has of its own, what is shared, and why
};

// `bwrap`: the path of bubblewrap; empty: it is not installed. FailedPrecondition: kPrivate is impossible; says why.
StatusOr<Isolation> Isolate(NetworkMode mode, const std::string& bwrap);

}  // namespace muster::local
