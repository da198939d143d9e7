// SPDX-License-Identifier: Apache-2.0
// Reads again what an earlier start left whole in the staging folder: after a power loss a file may lack its bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "initializers/facts/digest.h"
#include "initializers/target/staging.h"

namespace muster::initializers {

struct RecheckWanted {
  uint64_t size = 0;
  std::optional<Expectation> expected;  // hash that the source publishes; it has precedence over `noted`
  StagedHash noted;                     // from Staging::HashOf
  bool verify = true;                   // false: check only the size
};

// Returns the hash of NAME's bytes if they are unchanged. DataLoss and other errors: they have changed, or no known
// hash tells what they must be. Cancelled: `stop` was set. Blocking; any thread.
StatusOr<StagedHash> Recheck(const Staging& staging, const std::string& name, const RecheckWanted& wanted,
                             std::span<char> buffer, const std::atomic<bool>& stop);

// A message about `damage`, for people; shown once in a run.
std::string DamageText(std::string_view shown, const Status& damage);

}  // namespace muster::initializers
