// SPDX-License-Identifier: Apache-2.0
// A Lease (coordination.k8s.io/v1) for leader election, by the rules of client-go: what was seen of it, what to do,
// what to write. Pure; untrusted input.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/json_fields.h"

namespace muster::controller {

struct LeaseRules {
  Duration duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry = std::chrono::seconds(2);
};

// The Lease as it was last seen.
struct SeenLease {
  std::string holder;
  bool there = false;
  TimePoint changed{};  // when the current holder and renewTime were first seen
  std::string renew_time;
  Duration duration{};  // leaseDurationSeconds, as the holder wrote it; 0: not set
};

// Updates `seen` from `lease`. JSON null: the Lease does not exist.
void See(const Json& lease, TimePoint now, SeenLease* seen);

// kAcquire: the Lease does not exist, has no holder, or has not changed for its duration since `seen.changed`.
enum class LeaseStep { kAcquire, kRenew, kWait };
LeaseStep NextLeaseStep(const SeenLease& seen, const std::string& self, const LeaseRules& rules, TimePoint now);

// How long to wait before the next try after one that failed. None if a leader's request got no answer in its time:
// that time was the pause, and the leadership ends soon.
Duration PauseAfterFailure(bool leads, bool unanswered, const LeaseRules& rules);

// The Lease to write so that `self` holds or renews it: `lease`, or a new one `ns`/`name` if `lease` is null. Fields
// that leader election does not use stay.
Json HeldLease(const Json& lease, const std::string& ns, const std::string& name, const std::string& self,
               const LeaseRules& rules, WallTime now);
// The Lease to write to release it: without a holder.
Json ReleasedLease(const Json& lease, WallTime now);

}  // namespace muster::controller
