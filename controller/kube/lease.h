// A Lease (coordination.k8s.io/v1) as leader election uses it: what was seen of it, what to do about it, what to write.
// As client-go does it. Pure; outside bytes.
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
  TimePoint changed{};  // when its holder or renewTime was first seen as it is
  std::string renew_time;
  Duration duration{};  // leaseDurationSeconds, as its holder wrote it; 0: it does not say
};

// Looks at `lease` (null: there is none).
void See(const Json& lease, TimePoint now, SeenLease* seen);

// kAcquire: there is none, nobody holds it, or it has not changed for its duration since it was first seen so.
enum class LeaseStep { kAcquire, kRenew, kWait };
LeaseStep NextLeaseStep(const SeenLease& seen, const std::string& self, const LeaseRules& rules, TimePoint now);

// What makes `self` the holder, or renews it: `lease` (null: a new one called `ns`/`name`) with its spec filled. What
// others have in it stays.
Json HeldLease(const Json& lease, const std::string& ns, const std::string& name, const std::string& self,
               const LeaseRules& rules, WallTime now);
// What gives it back: nobody holds it.
Json ReleasedLease(const Json& lease, WallTime now);

}  // namespace muster::controller
