// What keeps the hosts of a run apart on this machine. Blocking.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "controller/local/pod_network.h"

namespace muster::controller {

// --network. kAuto: a private one where it can be had.
enum class NetworkMode { kAuto, kPrivate, kShared };
// InvalidArgument: it is none of "auto", "private", "shared".
StatusOr<NetworkMode> ParseNetworkMode(const std::string& text);

struct Isolation {
  std::string bwrap;                    // the path of bubblewrap; empty: pods share this machine's files
  bool own_pids = false;                // a container has processes of its own, all of which end with it
  std::unique_ptr<PodNetwork> network;  // null: pods share this machine's, each with an address of 127.0.0.0/8
  std::string said;                     // in one line: what is each host's own, what is shared, and why
};

// `bwrap`: where bubblewrap lies; empty: it is not installed. FailedPrecondition: kPrivate cannot be had; says why.
StatusOr<Isolation> Isolate(NetworkMode mode, const std::string& bwrap);

}  // namespace muster::controller
