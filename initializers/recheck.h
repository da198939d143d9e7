// What is whole in the staging folder since an earlier start, read again: a machine that lost power may have kept its
// name and not its bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "initializers/digest.h"
#include "initializers/staging.h"

namespace muster::initializers {

struct RecheckWanted {
  uint64_t size = 0;
  std::optional<Expectation> expected;  // what the source publishes; counts before `noted`
  StagedHash noted;                     // Staging::HashOf
  bool verify = true;                   // false: its size only
};

// The hash of NAME's bytes, which are as they were. DataLoss and the like: they are not, or nothing says what they have
// to be. Cancelled: `stop` said so. Blocking; any thread.
StatusOr<StagedHash> Recheck(const Staging& staging, const std::string& name, const RecheckWanted& wanted,
                             std::span<char> buffer, const std::atomic<bool>& stop);

// For people, once in a run.
std::string DamageText(std::string_view shown, const Status& damage);

}  // namespace muster::initializers
