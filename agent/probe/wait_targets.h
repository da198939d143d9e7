// SPDX-License-Identifier: Apache-2.0
// The targets of `muster wait`: how they are read, when to try again, when a reason is new. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace muster::agent {

enum class WaitKind {
  kDns,         // the name resolves
  kTcp,         // a process listens at host:port
  kRendezvous,  // a Muster coordinator answers at host:port
};

struct WaitTarget {
  WaitKind kind = WaitKind::kTcp;
  std::string host;  // without brackets
  int port = 0;      // 0: none (only kDns)

  std::string Address() const;  // "host:port", "[::1]:80"; without a port the host alone
  std::string Name() const;     // for people: "tcp master-0:29500"
  bool operator==(const WaitTarget&) const = default;
};

// "host", "host:port", "1.2.3.4:80", "::1", "[::1]:80". Without `kind`: kTcp if there is a port, else kDns. kDns needs
// no port and ignores one; kRendezvous takes 29400 if none is given. InvalidArgument says what is wrong with `text`,
// also if it can never become a name (an empty label).
StatusOr<WaitTarget> ParseWaitTarget(std::string_view text, std::optional<WaitKind> kind);

// The pause after `failures` >= 1 failed tries in a row: 100 ms, doubled up to 2 s. The lower half is fixed; `share`
// (0..1, random) scales the upper half, so that a thousand pods do not ask in step.
Duration WaitPause(int failures, double share);

// `reason` with the parts between "; " sorted: a new order of a name's addresses is not a new reason.
std::string StableReason(std::string_view reason);

// "5 s", "500 ms".
std::string ForPeople(Duration duration);

}  // namespace muster::agent
