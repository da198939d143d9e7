// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/lease.h"

#include <algorithm>

#include "base/iso_time.h"
#include "controller/api/lenient.h"

namespace muster::controller {
namespace {

int64_t Seconds(Duration duration) {
  return std::max<int64_t>(1, std::chrono::ceil<std::chrono::seconds>(duration).count());
}

int NumberIn(const Json& spec, const char* name) {
  JsonFields fields(spec, "");
  return static_cast<int>(fields.Number(name, 0, 1'000'000'000).value_or(0));
}

const Json& SpecOf(const Json& lease) {
  static const Json kNone = Json::object();
  const Json& spec = PartOf(lease, "spec");
  return spec.is_object() ? spec : kNone;
}

}  // namespace

void See(const Json& lease, TimePoint now, SeenLease* seen) {
  if (!lease.is_object()) {
    *seen = {};
    return;
  }
  const Json& spec = SpecOf(lease);
  const std::string holder = TextField(spec, "holderIdentity"), renewed = TextField(spec, "renewTime");
  if (!seen->there || holder != seen->holder || renewed != seen->renew_time) seen->changed = now;
  seen->there = true;
  seen->holder = holder;
  seen->renew_time = renewed;
  seen->duration = std::chrono::seconds(NumberIn(spec, "leaseDurationSeconds"));
}

LeaseStep NextLeaseStep(const SeenLease& seen, const std::string& self, const LeaseRules& rules, TimePoint now) {
  if (!seen.there || seen.holder.empty()) return LeaseStep::kAcquire;
  if (seen.holder == self) return LeaseStep::kRenew;
  const Duration duration = seen.duration > Duration::zero() ? seen.duration : rules.duration;
  return now - seen.changed >= duration ? LeaseStep::kAcquire : LeaseStep::kWait;
}

Json HeldLease(const Json& lease, const std::string& ns, const std::string& name, const std::string& self,
               const LeaseRules& rules, WallTime now) {
  Json held = lease;
  if (!held.is_object()) {
    held = {
        {"apiVersion", "coordination.k8s.io/v1"}, {"kind", "Lease"}, {"metadata", {{"name", name}, {"namespace", ns}}}};
  }
  Json spec = SpecOf(held);
  if (TextField(spec, "holderIdentity") != self) {
    spec["leaseTransitions"] = lease.is_object() ? NumberIn(spec, "leaseTransitions") + 1 : 0;
    spec["holderIdentity"] = self;
    spec["acquireTime"] = IsoMicroTime(now);
  }
  spec["renewTime"] = IsoMicroTime(now);
  spec["leaseDurationSeconds"] = Seconds(rules.duration);
  held["spec"] = std::move(spec);
  return held;
}

Json ReleasedLease(const Json& lease, WallTime now) {
  Json released = lease;
  Json spec = SpecOf(lease);
  spec.erase("holderIdentity");  // an empty text is not valid
  spec["acquireTime"] = spec["renewTime"] = IsoMicroTime(now);
  spec["leaseDurationSeconds"] = 1;
  released["spec"] = std::move(spec);
  return released;
}

Duration PauseAfterFailure(bool leads, bool unanswered, const LeaseRules& rules) {
  return leads && unanswered ? Duration::zero() : rules.retry;
}

}  // namespace muster::controller
